"""Part of a list in an order that an index keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .collections import collection

Document = Mapping[str, Any]
Order = Sequence[tuple[str, int]]
"""Fields and directions, one field or two; the last is the key."""

MAX_PAGE = 100


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list, and whether there is more on either side."""

    documents: Sequence[Document]
    has_next: bool
    has_previous: bool


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a document in a list: its values of the fields of the order."""

    values: tuple[Any, ...]
    backwards: bool = False
    """What lies before it is asked for, not what lies behind it."""


def page(
    name: str,
    wanted: Mapping[str, Any],
    *,
    order: Order,
    limit: int,
    place: Place | None = None,
    fields: Mapping[str, int] | None = None,
) -> Page:
    """Return up to ``limit`` documents of a collection, from a place on; ``fields``: projected.

    Raises PyMongoError.
    """
    backwards = place is not None and place.backwards
    turned = [(field, -direction if backwards else direction) for field, direction in order]
    beyond = _beyond(turned, place.values) if place is not None else {}
    one_more = limit + 1
    read = collection(name).find({**wanted, **beyond}, fields, batch_size=one_more)
    found: list[Document] = list(read.sort(turned).limit(one_more))
    more = len(found) > limit
    found = found[:limit]
    if backwards:
        return Page(found[::-1], has_next=True, has_previous=more)
    return Page(found, has_next=more, has_previous=place is not None)


def _beyond(order: Order, values: Sequence[Any]) -> dict[str, Any]:
    """Return what holds for documents behind a place.

    Of two fields the first condition says less than the second: it gives the scan its bound.
    """
    operators = ["$gt" if direction > 0 else "$lt" for _, direction in order]
    (first, _), *rest = order
    if not rest:
        return {first: {operators[0]: values[0]}}
    (key, _) = rest[0]
    return {
        first: {f"{operators[0]}e": values[0]},
        "$or": [
            {first: {operators[0]: values[0]}},
            {first: values[0], key: {operators[1]: values[1]}},
        ],
    }
