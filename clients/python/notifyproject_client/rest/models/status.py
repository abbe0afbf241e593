from typing import Literal

Status = Literal[
    "cancelled",
    "created",
    "delivered",
    "expired",
    "failed",
    "partially_delivered",
    "processing",
    "queued",
    "retrying",
    "sent",
]

STATUS_VALUES: set[Status] = {
    "cancelled",
    "created",
    "delivered",
    "expired",
    "failed",
    "partially_delivered",
    "processing",
    "queued",
    "retrying",
    "sent",
}


def check_status(value: str) -> Status:
    if value in STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {STATUS_VALUES!r}")
