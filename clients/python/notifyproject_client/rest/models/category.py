from typing import Literal

Category = Literal["alert", "marketing", "transactional"]

CATEGORY_VALUES: set[Category] = {
    "alert",
    "marketing",
    "transactional",
}


def check_category(value: str) -> Category:
    if value in CATEGORY_VALUES:
        return value
    raise TypeError(f"Unexpected value {value!r}. Expected one of {CATEGORY_VALUES!r}")
