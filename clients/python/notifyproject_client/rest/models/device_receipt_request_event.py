from typing import Literal

DeviceReceiptRequestEvent = Literal["delivered", "opened"]

DEVICE_RECEIPT_REQUEST_EVENT_VALUES: set[DeviceReceiptRequestEvent] = {
    "delivered",
    "opened",
}


def check_device_receipt_request_event(value: str) -> DeviceReceiptRequestEvent:
    if value in DEVICE_RECEIPT_REQUEST_EVENT_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {DEVICE_RECEIPT_REQUEST_EVENT_VALUES!r}"
    )
