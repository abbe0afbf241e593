from typing import Literal

SuppressionReason = Literal["complaint", "hard_bounce", "manual", "unsubscribed"]

SUPPRESSION_REASON_VALUES: set[SuppressionReason] = {
    "complaint",
    "hard_bounce",
    "manual",
    "unsubscribed",
}


def check_suppression_reason(value: str) -> SuppressionReason:
    if value in SUPPRESSION_REASON_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {SUPPRESSION_REASON_VALUES!r}")
