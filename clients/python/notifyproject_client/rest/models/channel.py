from typing import Literal

Channel = Literal["email", "in_app", "push", "whatsapp"]

CHANNEL_VALUES: set[Channel] = {
    "email",
    "in_app",
    "push",
    "whatsapp",
}


def check_channel(value: str) -> Channel:
    if value in CHANNEL_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CHANNEL_VALUES!r}")
