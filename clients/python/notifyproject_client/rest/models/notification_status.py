from typing import Literal

NotificationStatus = Literal[
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

NOTIFICATION_STATUS_VALUES: set[NotificationStatus] = {
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


def check_notification_status(value: str) -> NotificationStatus:
    if value in NOTIFICATION_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {NOTIFICATION_STATUS_VALUES!r}")
