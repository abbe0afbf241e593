from typing import Literal

ListNotificationsCategory = Literal["alert", "marketing", "transactional"]

LIST_NOTIFICATIONS_CATEGORY_VALUES: set[ListNotificationsCategory] = {
    "alert",
    "marketing",
    "transactional",
}


def check_list_notifications_category(value: str) -> ListNotificationsCategory:
    if value in LIST_NOTIFICATIONS_CATEGORY_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_NOTIFICATIONS_CATEGORY_VALUES!r}"
    )
