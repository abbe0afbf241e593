"""What MongoDB cannot keep, or had better not: in whatever comes from outside."""

import math
import re
from typing import Any

from .problems import Collector

MAX_KEY_LENGTH = 128
FREE_FORM = frozenset({"attributes", "data", "payload", "example_data"})
"""Fields whose keys the caller chooses: they become field names in MongoDB."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_INT, _MIN_INT = 2**63 - 1, -(2**63)


def check(value: Any, at: str, problems: Collector, *, in_data: bool) -> int:
    """Note what cannot be kept anywhere in ``value``; return its number of properties.

    ``in_data``: its keys are the caller's own.
    """
    if isinstance(value, str):
        _check_text(value, at, problems)
    elif isinstance(value, int) and not _MIN_INT <= value <= _MAX_INT:
        problems.add(at, "integer_too_large", "An integer has at most 64 bits.")
    elif isinstance(value, float) and not math.isfinite(value):
        problems.add(at, "no_number", "NaN and Infinity are not JSON.")
    elif isinstance(value, list):
        return sum(
            check(item, f"{at}/{i}", problems, in_data=in_data) for i, item in enumerate(value)
        )
    elif isinstance(value, dict):
        count = len(value)
        for key, item in value.items():
            below = f"{at}/{pointer_token(key)}"
            _check_key(key, below, problems, in_data=in_data)
            count += check(item, below, problems, in_data=in_data or key in FREE_FORM)
        return count
    return 0


def pointer_token(key: str) -> str:
    """Return a key as part of a JSON Pointer, cut to a sane length."""
    escaped = key[:MAX_KEY_LENGTH].replace("~", "~0").replace("/", "~1")
    return escaped.encode(errors="replace").decode()


def _check_text(text: str, at: str, problems: Collector) -> None:
    if "\x00" in text:
        problems.add(at, "nul_character", "A text holds the character NUL.")
    if _SURROGATE.search(text):
        problems.add(at, "lone_surrogate", "A text holds half of a surrogate pair.")


def _check_key(key: str, at: str, problems: Collector, *, in_data: bool) -> None:
    _check_text(key, at, problems)
    if len(key) > MAX_KEY_LENGTH:
        problems.add(at, "key_too_long", f"A key has over {MAX_KEY_LENGTH} characters.")
    if in_data and (key.startswith("$") or "." in key or key == "__proto__" or not key):
        problems.add(at, "forbidden_key", "A key is empty, begins with $, or holds a dot.")
