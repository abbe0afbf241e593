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
    match: Mapping[str, Any],
    *,
    order: Order,
    limit: int,
    cursor: Cursor | None = None,
    fields: Mapping[str, int] | None = None,
    index: str | None = None,
) -> Page:
    """Return up to ``limit`` documents of a collection, from a place on.

    ``fields``: projected. ``hint``: the index to go by. Raises PyMongoError.
    """
    if cursor is not None:
        # Side by side: what is wanted may bound the first field of the order too.
        match = (
            {"$and": [match, match_beyond(cursor, order)]} if match else match_beyond(cursor, order)
        )
    backwards = cursor is not None and cursor.backwards
    fetch_limit = limit + 1
    read = collection(name).find(match, fields, batch_size=fetch_limit, hint=index)
    ordered = read.sort(reversed_order(order) if backwards else list(order))
    found: list[Document] = list(ordered.limit(fetch_limit))
    has_more = len(found) > limit
    found = found[:limit]
    if backwards:
        return Page(found[::-1], has_next=True, has_previous=has_more)
    return Page(found, has_next=has_more, has_previous=cursor is not None)


def match_beyond(cursor: Cursor, order: Order) -> dict[str, Any]:
    """Return what holds for the documents behind a place, or before it.

    Each step is a document that is the same up to a field and lies beyond the place in that one.
    The range before them says less than they do: it gives the index scan its bound.
    """
    directed_order = reversed_order(order) if cursor.backwards else order
    operators = ["$gt" if direction > 0 else "$lt" for _, direction in directed_order]
    fields = list(zip([name for name, _ in directed_order], operators, cursor.values, strict=True))
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
