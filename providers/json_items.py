"""Reads the items of a webhook one by one, so that an invalid one doesn't stop the others."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

LATEST_TIME = 10**11
"""End of the accepted times, in seconds since 1970."""

_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{},"]', re.DOTALL)
"""A text, a character of the structure, or the beginning of a text without an end."""


def split_array(raw: bytes) -> list[bytes]:
    """Return the items of a JSON list, undecoded. Raises ValueError if ``raw`` is no list.

    Items may be invalid JSON by themselves, such as NaN, or nested too deeply to be decoded.
    """
    try:
        return [bytes(item) for item in msgspec.json.decode(raw, type=list[msgspec.Raw])]
    except (ValueError, RecursionError):
        return list(_scan(raw.strip()))


def _scan(raw: bytes) -> Iterator[bytes]:
    if not (raw.startswith(b"[") and raw.endswith(b"]")):
        raise ValueError("expected a JSON list")
    depth, start = 0, 1
    for token in _TOKEN.finditer(raw):
        match token[0]:
            case b"[" | b"{":
                depth += 1
            case b"]" | b"}":
                depth -= 1
            case b'"':
                raise ValueError("the JSON list has a text without an end")
            case b"," if depth == 1:
                yield raw[start : token.start()]
                start = token.end()
            case _:
                continue
        if depth == 0:
            if token.end() != len(raw):
                raise ValueError("expected one JSON list")
            if last := raw[start : token.start()].strip():
                yield last
            return
    raise ValueError("the JSON list has no end")


def read_text(
    item: Mapping[str, Any], name: str, *, limit: int | None = None, is_prose: bool = False
) -> str | None:
    """Return a field that is a text, or None for any other value, an empty or a longer text.

    A text that was cut within an emoji is no identifier; prose is readable without it.
    """
    value = item.get(name)
    if not isinstance(value, str) or (limit is not None and len(value) > limit):
        return None
    repaired = value.encode(errors="replace").decode()
    return (repaired if is_prose or repaired == value else None) or None


def read_time(value: Any) -> datetime:
    """Return the UTC time of a number of seconds since 1970, or of its text, without a fraction.

    Raises ValueError.
    """
    is_readable = isinstance(value, str | int | float) and not isinstance(value, bool)
    seconds = float(value) if is_readable else math.nan
    if not 0 <= seconds < LATEST_TIME:
        raise ValueError("a time is a number of seconds after 1970")
    return datetime.fromtimestamp(int(seconds), UTC)


def read_iso_time(value: Any) -> datetime:
    """Return a time such as ``2026-07-01T12:00:00.000Z``. Raises ValueError."""
    if not isinstance(value, str) or not _ISO_TIME.fullmatch(value):
        raise ValueError("a time has a date, a time of day, and a zone")
    return datetime.fromisoformat(value)
