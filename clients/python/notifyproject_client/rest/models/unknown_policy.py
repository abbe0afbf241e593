from typing import Literal

UnknownPolicy = Literal["fail", "retry"]

UNKNOWN_POLICY_VALUES: set[UnknownPolicy] = {
    "fail",
    "retry",
}


def check_unknown_policy(value: str) -> UnknownPolicy:
    if value in UNKNOWN_POLICY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {UNKNOWN_POLICY_VALUES!r}")
