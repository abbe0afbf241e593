from typing import Literal

AttemptStatus = Literal["expired", "failed", "sent", "started", "unknown"]

ATTEMPT_STATUS_VALUES: set[AttemptStatus] = {
    "expired",
    "failed",
    "sent",
    "started",
    "unknown",
}


def check_attempt_status(value: str) -> AttemptStatus:
    if value in ATTEMPT_STATUS_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {ATTEMPT_STATUS_VALUES!r}")
