"""Places of lists in addresses, and in an order as Django writes it: ``-created_at``. Pure."""

import base64
import binascii
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId

from . import paging
from .paging import Cursor

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEY = "id"


class InvalidCursorError(ValueError):
    """A text that names no place in this list."""


def encode_cursor(cursor: Cursor) -> str:
    """Return a place as it stands in an address; the address says which way to go from there."""
    plain = json.dumps([_encode_value(value) for value in cursor.values], separators=(",", ":"))
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def decode_cursor(text: str, *, backwards: bool = False) -> Cursor:
    """Return the place a text names; raises InvalidCursorError."""
    try:
        padded = text + "=" * (-len(text) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        return Cursor(tuple(_decode_value(kind, encoded) for kind, encoded in values), backwards)
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        raise InvalidCursorError("no such place") from error


def cursor_of_row(row: Any, order: Sequence[str]) -> Cursor:
    """Return where a row of a list with this order stands."""
    names = [name.lstrip("-") for name in order]
    return Cursor(tuple(row.pk if name == _KEY else getattr(row, name) for name in names))


def match_beyond(cursor: Cursor, order: Sequence[str]) -> dict[str, Any]:
    """Return what holds for the documents behind a place, or before it; raises InvalidCursorError."""
    if len(cursor.values) != len(order):
        raise InvalidCursorError("a place in another list")
    return paging.match_beyond(cursor, mongodb_order(order))


def mongodb_order(order: Sequence[str]) -> list[tuple[str, int]]:
    """Return an order in MongoDB's own words."""
    return [
        ("_id" if name.lstrip("-") == _KEY else name.lstrip("-"), -1 if name[0] == "-" else 1)
        for name in order
    ]


def _encode_value(value: Any) -> list[Any]:
    if isinstance(value, datetime):
        return ["t", (value - _EPOCH) // timedelta(milliseconds=1)]
    if isinstance(value, ObjectId):
        return ["o", str(value)]
    return ["s", str(value)]


def _decode_value(kind: str, text: Any) -> Any:
    if kind == "t":
        return _EPOCH + timedelta(milliseconds=int(text))
    if kind == "o" and ObjectId.is_valid(text):
        return ObjectId(text)
    if kind == "s" and isinstance(text, str):
        return text
    raise InvalidCursorError("no such value")
