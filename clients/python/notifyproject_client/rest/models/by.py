from typing import Literal

By = Literal["channel", "status", "type"]

BY_VALUES: set[By] = {
    "channel",
    "status",
    "type",
}


def check_by(value: str) -> By:
    if value in BY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {BY_VALUES!r}")
