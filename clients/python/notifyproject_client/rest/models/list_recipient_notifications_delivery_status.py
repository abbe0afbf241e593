from typing import Literal

ListRecipientNotificationsDeliveryStatus = Literal[
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

LIST_RECIPIENT_NOTIFICATIONS_DELIVERY_STATUS_VALUES: set[
    ListRecipientNotificationsDeliveryStatus
] = {
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


def check_list_recipient_notifications_delivery_status(
    value: str,
) -> ListRecipientNotificationsDeliveryStatus:
    if value in LIST_RECIPIENT_NOTIFICATIONS_DELIVERY_STATUS_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_RECIPIENT_NOTIFICATIONS_DELIVERY_STATUS_VALUES!r}"
    )
