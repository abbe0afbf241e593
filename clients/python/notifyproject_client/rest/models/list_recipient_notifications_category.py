from typing import Literal

ListRecipientNotificationsCategory = Literal["alert", "marketing", "transactional"]

LIST_RECIPIENT_NOTIFICATIONS_CATEGORY_VALUES: set[ListRecipientNotificationsCategory] = {
    "alert",
    "marketing",
    "transactional",
}


def check_list_recipient_notifications_category(value: str) -> ListRecipientNotificationsCategory:
    if value in LIST_RECIPIENT_NOTIFICATIONS_CATEGORY_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_RECIPIENT_NOTIFICATIONS_CATEGORY_VALUES!r}"
    )
