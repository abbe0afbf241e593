from typing import Literal

ListNotificationsChannel = Literal["email", "in_app", "push", "whatsapp"]

LIST_NOTIFICATIONS_CHANNEL_VALUES: set[ListNotificationsChannel] = {
    "email",
    "in_app",
    "push",
    "whatsapp",
}


def check_list_notifications_channel(value: str) -> ListNotificationsChannel:
    if value in LIST_NOTIFICATIONS_CHANNEL_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_NOTIFICATIONS_CHANNEL_VALUES!r}"
    )
