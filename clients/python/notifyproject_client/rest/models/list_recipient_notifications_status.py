from typing import Literal

ListRecipientNotificationsStatus = Literal[
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

LIST_RECIPIENT_NOTIFICATIONS_STATUS_VALUES: set[ListRecipientNotificationsStatus] = {
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


def check_list_recipient_notifications_status(value: str) -> ListRecipientNotificationsStatus:
    if value in LIST_RECIPIENT_NOTIFICATIONS_STATUS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_RECIPIENT_NOTIFICATIONS_STATUS_VALUES!r}"
    )
