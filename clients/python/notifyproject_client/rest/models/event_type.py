from typing import Literal

EventType = Literal[
    "delivery.cancelled",
    "delivery.delivered",
    "delivery.expired",
    "delivery.failed",
    "delivery.read",
    "delivery.sent",
    "delivery.suppressed",
    "delivery.unknown",
    "notification.completed",
    "test",
]

EVENT_TYPE_VALUES: set[EventType] = {
    "delivery.cancelled",
    "delivery.delivered",
    "delivery.expired",
    "delivery.failed",
    "delivery.read",
    "delivery.sent",
    "delivery.suppressed",
    "delivery.unknown",
    "notification.completed",
    "test",
}


def check_event_type(value: str) -> EventType:
    if value in EVENT_TYPE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {EVENT_TYPE_VALUES!r}")
