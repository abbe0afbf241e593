from typing import Literal

DeliveryStatus = Literal[
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

DELIVERY_STATUS_VALUES: set[DeliveryStatus] = {
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


def check_delivery_status(value: str) -> DeliveryStatus:
    if value in DELIVERY_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DELIVERY_STATUS_VALUES!r}")
