from typing import Literal

CallbackRequestEventsItem = Literal[
    "delivery.cancelled",
    "delivery.delivered",
    "delivery.expired",
    "delivery.failed",
    "delivery.read",
    "delivery.sent",
    "delivery.suppressed",
    "delivery.unknown",
    "notification.completed",
]

CALLBACK_REQUEST_EVENTS_ITEM_VALUES: set[CallbackRequestEventsItem] = {
    "delivery.cancelled",
    "delivery.delivered",
    "delivery.expired",
    "delivery.failed",
    "delivery.read",
    "delivery.sent",
    "delivery.suppressed",
    "delivery.unknown",
    "notification.completed",
}


def check_callback_request_events_item(value: str) -> CallbackRequestEventsItem:
    if value in CALLBACK_REQUEST_EVENTS_ITEM_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {CALLBACK_REQUEST_EVENTS_ITEM_VALUES!r}"
    )
