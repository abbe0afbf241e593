from typing import Literal

SuppressionRequestReason = Literal["complaint", "hard_bounce", "manual", "unsubscribed"]

SUPPRESSION_REQUEST_REASON_VALUES: set[SuppressionRequestReason] = {
    "complaint",
    "hard_bounce",
    "manual",
    "unsubscribed",
}


def check_suppression_request_reason(value: str) -> SuppressionRequestReason:
    if value in SUPPRESSION_REQUEST_REASON_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {SUPPRESSION_REQUEST_REASON_VALUES!r}"
    )
