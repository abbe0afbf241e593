from typing import Literal

ListRecipientNotificationsChannel = Literal["email", "in_app", "push", "whatsapp"]

LIST_RECIPIENT_NOTIFICATIONS_CHANNEL_VALUES: set[ListRecipientNotificationsChannel] = {
    "email",
    "in_app",
    "push",
    "whatsapp",
}


def check_list_recipient_notifications_channel(value: str) -> ListRecipientNotificationsChannel:
    if value in LIST_RECIPIENT_NOTIFICATIONS_CHANNEL_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_RECIPIENT_NOTIFICATIONS_CHANNEL_VALUES!r}"
    )
