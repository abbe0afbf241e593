from typing import Literal

ListNotificationsDeliveryStatus = Literal[
    "cancelled",
    "delivered",
    "expired",
    "failed",
    "pending",
    "read",
    "sending",
    "sent",
    "suppressed",
    "unknown",
]

LIST_NOTIFICATIONS_DELIVERY_STATUS_VALUES: set[ListNotificationsDeliveryStatus] = {
    "cancelled",
    "delivered",
    "expired",
    "failed",
    "pending",
    "read",
    "sending",
    "sent",
    "suppressed",
    "unknown",
}


def check_list_notifications_delivery_status(value: str) -> ListNotificationsDeliveryStatus:
    if value in LIST_NOTIFICATIONS_DELIVERY_STATUS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_NOTIFICATIONS_DELIVERY_STATUS_VALUES!r}"
    )
