"""Keyset paging: reads pages from a cursor on by an index, and encodes cursors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic

from bson import ObjectId
from django.core import signing

from .collections import D, Documents, Filter, collection

Position = Mapping[str, Any]
"""A document's values of the order's fields."""
Order = Sequence[tuple[str, int]]
MAX_PAGE = 100
_TIME, _ID = "t", "o"


class InvalidCursorError(ValueError):
    """A text that isn't a cursor of this list."""


@dataclass(frozen=True, slots=True)
class Page(Generic[D]):
    """Part of a list, and whether there is more on either side."""

    documents: Sequence[D]
    has_next: bool
    has_previous: bool
    is_backwards: bool = False
    scanned_to: Position | None = None
    """Where the read ended, if that was before the page was full and before the end of the list."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a document in a list: its values of the order's fields."""

    values: tuple[Any, ...]
    backwards: bool = False
    """The page ends before this position instead of beginning after it."""


def cursor_of_row(row: Any, fields: Sequence[str], *, backwards: bool = False) -> Cursor:
    """Return the position of a model instance in a list; ``fields`` is the order as in Django."""
    names = [name.lstrip("-") for name in fields]
    return Cursor(
        tuple(row.pk if name == "id" else getattr(row, name) for name in names), backwards
    )


def cursor_of_document(document: Position, order: Order, *, backwards: bool = False) -> Cursor:
    """Return the position of a document in a list with this order."""
    return Cursor(tuple(document[name] for name, _ in order), backwards)


def order_of(fields: Sequence[str]) -> list[tuple[str, int]]:
    """Convert an order from Django's form, such as ``-created_at``, to MongoDB's."""
    return [
        ("_id" if name.lstrip("-") == "id" else name.lstrip("-"), -1 if name[0] == "-" else 1)
        for name in fields
    ]


def encode_cursor(cursor: Cursor, *, list_name: str) -> str:
    """Return a cursor as text, signed for the list ``list_name`` alone."""
    values = [_encode_value(value) for value in cursor.values]
    return signing.dumps([int(cursor.backwards), *values], salt=_salt(list_name))


def decode_cursor(text: str, *, list_name: str) -> Cursor:
    """Return the cursor that a text encodes. Raises InvalidCursorError."""
    try:
        backwards, *values = signing.loads(text, salt=_salt(list_name))
    except signing.BadSignature:
        raise InvalidCursorError("not a cursor of this list") from None
    return Cursor(tuple(_decode_value(value) for value in values), backwards=bool(backwards))


def page(
    documents: Documents[D],
    match: Filter,
    *,
    order: Order,
    limit: int,
    cursor: Cursor | None = None,
    fields: Mapping[str, int] | None = None,
    index: str | None = None,
) -> Page[D]:
    """Return up to ``limit`` documents of a collection from a cursor on. Raises PyMongoError."""
    if cursor is not None:
        # Combined by $and, because ``match`` may bound the order's first field, too.
        beyond = match_beyond(cursor, order)
        match = {"$and": [match, beyond]} if match else beyond
    backwards = cursor is not None and cursor.backwards
    fetch_limit = limit + 1
    read = documents().find(match, fields, batch_size=fetch_limit, hint=index)
    ordered = read.sort(reversed_order(order) if backwards else list(order))
    found: list[D] = list(ordered.limit(fetch_limit))
    has_more = len(found) > limit
    found = found[:limit]
    if backwards:
        return Page(found[::-1], has_next=True, has_previous=has_more)
    return Page(found, has_next=has_more, has_previous=cursor is not None)


def scanned_page(
    documents: Documents[D],
    match: Filter,
    wanted: Filter,
    *,
    order: Order,
    limit: int,
    scan: int,
    index: str,
    cursor: Cursor | None = None,
) -> Page[D]:
    """Return a page of the documents with ``wanted`` fields, which ``index`` doesn't have.

    ``order`` has two fields.

    At most ``scan`` documents that ``match`` are read for it, so that the page may have less than
    ``limit`` documents, or none, with more behind :attr:`Page.scanned_to`. Raises PyMongoError.
    """
    backwards = cursor is not None and cursor.backwards
    directed = reversed_order(order) if backwards else list(order)
    after = {}
    if cursor is not None:
        if len(cursor.values) != len(order):
            raise InvalidCursorError("a cursor of another list")
        after = _after(cursor.values, directed)
    # The position is read first, from the index alone: what comes and goes between the two reads
    # moves neither an omitted nor a repeated document into the next page.
    edge = _position(documents.name, match, after, directed, skip=scan - 1, index=index)
    if edge is not None:
        within = _up_to([edge[field] for field, _ in order], directed)
        match = {"$and": [match, within]}
    match = {"$and": [match, after]} if after else match
    found: list[D] = list(
        documents()
        .find({"$and": [match, wanted]}, batch_size=limit + 1, hint=index)
        .sort(directed)
        .limit(limit + 1)
    )
    is_full = len(found) > limit
    found = found[:limit]
    if is_full:
        edge = None
    has_more = is_full or edge is not None
    if backwards:
        return Page(
            found[::-1], has_next=True, has_previous=has_more, is_backwards=True, scanned_to=edge
        )
    return Page(found, has_next=has_more, has_previous=cursor is not None, scanned_to=edge)


def _position(
    name: str,
    match: Filter,
    after: Filter,
    directed: Order,
    *,
    skip: int,
    index: str,
) -> Position | None:
    """Return the position after ``skip`` matching documents, or None at the end of the list."""
    fields = {"_id": 0, **{field: 1 for field, _ in directed}}
    first = directed[0][0]

    def read(bound: Filter) -> Position | None:
        whole = {"$and": [match, bound]} if bound else match
        found = collection(name).find(whole, fields, hint=index).sort(list(directed))
        return next(iter(found.skip(skip).limit(1)), None)

    if not after:
        return read({})
    # With ties of the cursor, for which MongoDB would read documents, so up to as many fewer.
    found = read({first: after[first]})
    is_tie = found is not None and found[first] in after[first].values()
    return read(after) if is_tie else found


def _after(position: Sequence[Any], directed: Order) -> dict[str, Any]:
    """Return the filter for documents after a position in an order by two fields.

    Unlike :func:`match_beyond`, it has no ``$or``, for which MongoDB reads and sorts documents
    instead of walking through the index.
    """
    (first, direction), (second, second_direction) = directed
    value, tie = position
    operator = "$gte" if direction > 0 else "$lte"
    not_after = "$lte" if second_direction > 0 else "$gte"
    return {first: {operator: value}, "$nor": [{first: value, second: {not_after: tie}}]}


def _up_to(position: Sequence[Any], directed: Order) -> dict[str, Any]:
    """Return the filter for documents up to a position, inclusive; see :func:`_after`."""
    (first, direction), (second, second_direction) = directed
    value, tie = position
    operator = "$lte" if direction > 0 else "$gte"
    after = "$gt" if second_direction > 0 else "$lt"
    return {first: {operator: value}, "$nor": [{first: value, second: {after: tie}}]}


def match_beyond(cursor: Cursor, order: Order) -> dict[str, Any]:
    """Return the filter for documents after (or before) a cursor. Raises InvalidCursorError.

    Each branch of ``$or`` matches documents that equal the cursor up to a field and lie beyond it
    in that field. The range before ``$or`` follows from it, but bounds the index scan.
    """
    if len(cursor.values) != len(order):
        raise InvalidCursorError("a cursor of another list")
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
    """Return the order with every direction reversed."""
    return [(name, -direction) for name, direction in order]


def _salt(list_name: str) -> str:
    return f"{list_name}-cursor"


def _encode_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return [_TIME, round(value.timestamp() * 1000)]
    return [_ID, str(value)] if isinstance(value, ObjectId) else value


def _decode_value(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    kind, inner = value
    return datetime.fromtimestamp(inner / 1000, UTC) if kind == _TIME else ObjectId(inner)
