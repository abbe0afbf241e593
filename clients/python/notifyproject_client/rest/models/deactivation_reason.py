from typing import Literal

DeactivationReason = Literal[
    "by_operator", "by_user", "replaced", "sender_mismatch", "suspect", "unregistered"
]

DEACTIVATION_REASON_VALUES: set[DeactivationReason] = {
    "by_operator",
    "by_user",
    "replaced",
    "sender_mismatch",
    "suspect",
    "unregistered",
}


def check_deactivation_reason(value: str) -> DeactivationReason:
    if value in DEACTIVATION_REASON_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DEACTIVATION_REASON_VALUES!r}")
