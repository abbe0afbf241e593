from typing import Literal

LiftSuppressionReason = Literal["complaint", "hard_bounce", "manual", "unsubscribed"]

LIFT_SUPPRESSION_REASON_VALUES: set[LiftSuppressionReason] = {
    "complaint",
    "hard_bounce",
    "manual",
    "unsubscribed",
}


def check_lift_suppression_reason(value: str) -> LiftSuppressionReason:
    if value in LIFT_SUPPRESSION_REASON_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIFT_SUPPRESSION_REASON_VALUES!r}"
    )
