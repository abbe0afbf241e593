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


class NoPlace(ValueError):
    """A text that names no place in this list."""


def as_text(place: Cursor) -> str:
    """Return a place as it stands in an address; the address says which way to go from there."""
    plain = json.dumps([_plain(value) for value in place.values], separators=(",", ":"))
    return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")


def parse(text: str, *, backwards: bool = False) -> Cursor:
    """Return the place a text names; raises NoPlace."""
    try:
        padded = text + "=" * (-len(text) % 4)
        values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        return Cursor(tuple(_value(kind, told) for kind, told in values), backwards)
    except (binascii.Error, ValueError, TypeError, OverflowError) as error:
        raise NoPlace("no such place") from error


def of_row(row: Any, order: Sequence[str]) -> Cursor:
    """Return where a row of a list with this order stands."""
    names = [name.lstrip("-") for name in order]
    return Cursor(tuple(row.pk if name == _KEY else getattr(row, name) for name in names))


def beyond(place: Cursor, order: Sequence[str]) -> dict[str, Any]:
    """Return what holds for the documents behind a place, or before it; raises NoPlace."""
    if len(place.values) != len(order):
        raise NoPlace("a place in another list")
    return paging.beyond(place, in_mongodb(order))


def in_mongodb(order: Sequence[str]) -> list[tuple[str, int]]:
    """Return an order in MongoDB's own words."""
    return [
        ("_id" if name.lstrip("-") == _KEY else name.lstrip("-"), -1 if name[0] == "-" else 1)
        for name in order
    ]


def _plain(value: Any) -> list[Any]:
    if isinstance(value, datetime):
        return ["t", (value - _EPOCH) // timedelta(milliseconds=1)]
    if isinstance(value, ObjectId):
        return ["o", str(value)]
    return ["s", str(value)]


def _value(kind: str, told: Any) -> Any:
    if kind == "t":
        return _EPOCH + timedelta(milliseconds=int(told))
    if kind == "o" and ObjectId.is_valid(told):
        return ObjectId(told)
    if kind == "s" and isinstance(told, str):
        return told
    raise NoPlace("no such value")
