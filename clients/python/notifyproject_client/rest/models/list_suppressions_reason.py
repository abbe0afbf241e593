from typing import Literal

ListSuppressionsReason = Literal["complaint", "hard_bounce", "manual", "unsubscribed"]

LIST_SUPPRESSIONS_REASON_VALUES: set[ListSuppressionsReason] = {
    "complaint",
    "hard_bounce",
    "manual",
    "unsubscribed",
}


def check_list_suppressions_reason(value: str) -> ListSuppressionsReason:
    if value in LIST_SUPPRESSIONS_REASON_VALUES:
        return value
    raise TypeError(
        f"Unexpected value {value!r}. Expected one of {LIST_SUPPRESSIONS_REASON_VALUES!r}"
    )
