"""Places in an ordered list: a page begins where the last one ended, however far that is.

Skipping reads all that is skipped; a place is found by the index that serves the order. Pure.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KEY = "id"


class NoPlace(ValueError):
    """A text that names no place in this list."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands: what it is ordered by, in the order's sequence."""

    values: tuple[Any, ...]

    def text(self) -> str:
        """Return the place as it stands in an address."""
        plain = json.dumps([_plain(value) for value in self.values], separators=(",", ":"))
        return base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> "Place":
        """Return the place a text names; raises NoPlace."""
        try:
            padded = text + "=" * (-len(text) % 4)
            values = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            return cls(tuple(_value(kind, told) for kind, told in values))
        except (binascii.Error, ValueError, TypeError, OverflowError) as error:
            raise NoPlace("no such place") from error


def of_row(row: Any, order: Sequence[str]) -> Place:
    """Return where a row of a list with this order (Django's, such as ``-created_at``) stands."""
    names = [name.lstrip("-") for name in order]
    return Place(tuple(row.pk if name == _KEY else getattr(row, name) for name in names))


def beyond(place: Place, order: Sequence[str], *, backwards: bool = False) -> Mapping[str, Any]:
    """Return what holds for the documents behind a place, or before it; raises NoPlace.

    The first condition says less than the others: it gives the index scan its bound.
    """
    if len(place.values) != len(order):
        raise NoPlace("a place in another list")
    paths = ["_id" if name.lstrip("-") == _KEY else name.lstrip("-") for name in order]
    operators = ["$lt" if name.startswith("-") is not backwards else "$gt" for name in order]
    first = {paths[0]: {f"{operators[0]}e": place.values[0]}}
    if len(order) == 1:
        return {paths[0]: {operators[0]: place.values[0]}}
    steps = [
        {
            **dict(zip(paths[:count], place.values[:count], strict=True)),
            paths[count]: {operators[count]: place.values[count]},
        }
        for count in range(len(order))
    ]
    return {"$and": [first, {"$or": steps}]}


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
