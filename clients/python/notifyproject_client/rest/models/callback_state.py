from typing import Literal

CallbackState = Literal["active", "disabled"]

CALLBACK_STATE_VALUES: set[CallbackState] = {
    "active",
    "disabled",
}


def check_callback_state(value: str) -> CallbackState:
    if value in CALLBACK_STATE_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CALLBACK_STATE_VALUES!r}")
