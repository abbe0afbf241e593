"""Part of a list in an order that an index keeps: it begins where another part ended.

Skipping reads all that is skipped; a place is found by the index that serves the order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .collections import collection

Document = Mapping[str, Any]
Order = Sequence[tuple[str, int]]
"""Fields and directions; the last is the key."""
MAX_PAGE = 100


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list, and whether there is more on either side."""

    documents: Sequence[Document]
    has_next: bool
    has_previous: bool


@dataclass(frozen=True, slots=True)
class Cursor:
    """The place of a document in a list: its values of the fields of the order."""

    values: tuple[Any, ...]
    backwards: bool = False
    """What lies before it is asked for, not what lies behind it."""


def cursor_of(
    *, after: tuple[Any, ...] | None = None, before: tuple[Any, ...] | None = None
) -> Cursor | None:
    """Return the place behind ``after``, or else before ``before``; None for the beginning."""
    if after is not None:
        return Cursor(after)
    return Cursor(before, backwards=True) if before is not None else None


def page(
    name: str,
    wanted: Mapping[str, Any],
    *,
    order: Order,
    limit: int,
    place: Cursor | None = None,
    fields: Mapping[str, int] | None = None,
    hint: str | None = None,
) -> Page:
    """Return up to ``limit`` documents of a collection, from a place on.

    ``fields``: projected. ``hint``: the index to go by. Raises PyMongoError.
    """
    if place is not None:
        # Side by side: what is wanted may bound the first field of the order too.
        wanted = {"$and": [wanted, beyond(place, order)]} if wanted else beyond(place, order)
    backwards = place is not None and place.backwards
    one_more = limit + 1
    read = collection(name).find(wanted, fields, batch_size=one_more, hint=hint)
    ordered = read.sort(reversed_order(order) if backwards else list(order))
    found: list[Document] = list(ordered.limit(one_more))
    more = len(found) > limit
    found = found[:limit]
    if backwards:
        return Page(found[::-1], has_next=True, has_previous=more)
    return Page(found, has_next=more, has_previous=place is not None)


def beyond(place: Cursor, order: Order) -> dict[str, Any]:
    """Return what holds for the documents behind a place, or before it.

    Each step is a document that is the same up to a field and lies beyond the place in that one.
    The range before them says less than they do: it gives the index scan its bound.
    """
    way = reversed_order(order) if place.backwards else order
    operators = ["$gt" if direction > 0 else "$lt" for _, direction in way]
    fields = list(zip([name for name, _ in way], operators, place.values, strict=True))
    (first, operator, value), *others = fields
    if not others:
        return {first: {operator: value}}
    steps = [
        {**{name: same for name, _, same in fields[:count]}, name: {operator: value}}
        for count, (name, operator, value) in enumerate(fields)
    ]
    return {"$and": [{first: {f"{operator}e": value}}, {"$or": steps}]}


def reversed_order(order: Order) -> list[tuple[str, int]]:
    """Return the order the other way round."""
    return [(name, -direction) for name, direction in order]
