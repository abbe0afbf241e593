from typing import Literal

CallbackStatus = Literal["delivered", "failed", "pending"]

CALLBACK_STATUS_VALUES: set[CallbackStatus] = {
    "delivered",
    "failed",
    "pending",
}


def check_callback_status(value: str) -> CallbackStatus:
    if value in CALLBACK_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CALLBACK_STATUS_VALUES!r}")
