from typing import Literal

ListNotificationsStatus = Literal[
    "cancelled",
    "created",
    "delivered",
    "expired",
    "failed",
    "partially_delivered",
    "processing",
    "queued",
    "retrying",
    "sent",
]

LIST_NOTIFICATIONS_STATUS_VALUES: set[ListNotificationsStatus] = {
    "cancelled",
    "created",
    "delivered",
    "expired",
    "failed",
    "partially_delivered",
    "processing",
    "queued",
    "retrying",
    "sent",
}


def check_list_notifications_status(value: str) -> ListNotificationsStatus:
    if value in LIST_NOTIFICATIONS_STATUS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_NOTIFICATIONS_STATUS_VALUES!r}"
    )
