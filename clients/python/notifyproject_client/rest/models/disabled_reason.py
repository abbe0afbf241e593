from typing import Literal

DisabledReason = Literal["by_operator", "failing", "gone"]

DISABLED_REASON_VALUES: set[DisabledReason] = {
    "by_operator",
    "failing",
    "gone",
}


def check_disabled_reason(value: str) -> DisabledReason:
    if value in DISABLED_REASON_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {DISABLED_REASON_VALUES!r}")
