from typing import Literal

GroupBy = Literal["channel", "status", "type"]

GROUP_BY_VALUES: set[GroupBy] = {
    "channel",
    "status",
    "type",
}


def check_group_by(value: str) -> GroupBy:
    if value in GROUP_BY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {GROUP_BY_VALUES!r}")
