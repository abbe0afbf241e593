"""Small reads and inserts of one document, which the requests of a step make together."""

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bson import ObjectId
from bson.errors import BSONError
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    DuplicateKeyError,
    PyMongoError,
    WriteConcernError,
    WriteError,
)

from .. import lockstep
from ..lockstep import Trip
from .collections import (
    CODEC,
    DUPLICATE_KEY,
    D,
    Document,
    Documents,
    Filter,
    collection,
    database,
)

MAX_FEW = 100
"""Documents that :func:`find_in_several` returns at most."""
Found = dict[str, list[Any]]
"""Documents by collection."""


def find_few(documents: Documents[D], wanted: Filter, *, limit: int) -> list[D]:
    """Return up to ``limit`` documents, which fit into one response.

    The bare command uses two thirds of the CPU time of a find with its cursor.
    """
    found = _find(_Read({documents.name: wanted}, limit))
    return found[documents.name]


def find_in_several(wanted: Mapping[str, Filter], *, limit: int = MAX_FEW) -> Found:
    """Return matching documents of several collections, ``limit`` at most, read in one request.

    ``wanted`` has a filter for each collection. Two finds cost twice the CPU time, here and in
    MongoDB.
    """
    return _find(_Read(wanted, limit))


def insert_shared(documents: Documents[D], document: D) -> None:
    """Store a document. Raises PyMongoError, such as DuplicateKeyError."""
    _insert((documents.name, document))


@dataclass(frozen=True, slots=True)
class _Read:
    wanted: Mapping[str, Filter]
    """By collection."""
    limit: int


def _read(read: _Read) -> Found:
    if len(read.wanted) > 1:
        found, _is_complete = _aggregate(read)
        return found
    ((name, wanted),) = read.wanted.items()
    try:
        reply = database().command(
            "find", name, filter=wanted, limit=read.limit, singleBatch=True, codec_options=CODEC
        )
    except AutoReconnect:
        # While a primary is elected, the driver retries a find but not a command.
        return {name: list(collection(name).find(wanted).limit(read.limit))}
    return {name: reply["cursor"]["firstBatch"]}


def _aggregate(read: _Read) -> tuple[Found, bool]:
    """Return what fits into one response, and whether that is all."""
    (first, match), *others = read.wanted.items()
    pipeline: list[dict[str, Any]] = [{"$match": match}, _tagged(first)]
    for name, match in others:
        pipeline.append(
            {"$unionWith": {"coll": name, "pipeline": [{"$match": match}, _tagged(name)]}}
        )
    try:
        reply = database().command(
            "aggregate",
            first,
            pipeline=pipeline,
            cursor={"batchSize": read.limit},
            codec_options=CODEC,
        )
        rows, is_complete = reply["cursor"]["firstBatch"], not reply["cursor"]["id"]
    except AutoReconnect:
        # As in _read.
        rows, is_complete = list(collection(first).aggregate(pipeline)), True
    found: Found = {name: [] for name in read.wanted}
    for row in rows:
        found[row["from"]].append(row["document"])
    return found, is_complete


def _tagged(name: str) -> dict[str, Any]:
    return {"$replaceWith": {"from": name, "document": "$$ROOT"}}


def _read_together(reads: Sequence[_Read]) -> Sequence[Found | Exception]:
    """Make several reads as one, if that is possible."""
    if len(reads) == 1:
        return [_read(reads[0])]
    shares = _read_joined(reads)
    return lockstep.for_each(_read, reads) if shares is None else shares


def _read_joined(reads: Sequence[_Read]) -> Sequence[Found] | None:
    """Return the documents of each of several reads, whose filters have the values of all.

    None if the filters can't be joined or encoded, or if the documents don't fit into one response.
    """
    joined: dict[str, _Joined] = {}
    for name in dict.fromkeys(name for read in reads for name in read.wanted):
        of_all = _join(
            {n: read.wanted[name] for n, read in enumerate(reads) if name in read.wanted}
        )
        if of_all is None:
            return None
        joined[name] = of_all
    # MongoDB leaves a cursor open after a full batch, even if there is nothing more.
    limit = sum(read.limit for read in reads) + 1
    filters = {name: of_all.filter for name, of_all in joined.items()}
    try:
        found, is_complete = _aggregate(_Read(filters, limit))
    except (BSONError, OverflowError, UnicodeError):
        # One of them has a value that BSON hasn't, and none was sent.
        return None
    if not is_complete:
        return None
    shares: list[Found] = [{name: [] for name in read.wanted} for read in reads]
    for name, documents in found.items():
        for document in documents:
            takers = joined[name].takers(document)
            for number, own in zip(takers, _copies(document), strict=False):
                shares[number][name].append(own)
    return [
        {name: list(islice(documents, read.limit)) for name, documents in share.items()}
        for read, share in zip(reads, shares, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Joined:
    """A filter that matches what several match, and who gets what it finds."""

    filter: Filter
    field: str | None
    """The one in which they differ. None: they are equal."""
    numbers: Sequence[int]
    by_value: Mapping[Any, Sequence[int]]

    def takers(self, document: Document) -> Sequence[int]:
        """Return the numbers of those whose filters match a document."""
        if self.field is None:
            return self.numbers
        value = document[self.field]
        # A list matches by each of its elements, and may have others, of any type.
        found = value if isinstance(value, list) else [value]
        values = [own for own in found if isinstance(own, str | ObjectId)]
        return list(dict.fromkeys(n for own in values for n in self.by_value.get(own, ())))


def _join(filters: Mapping[int, Filter]) -> _Joined | None:
    """Return a filter for all, or None if they differ in more than the values of one field."""
    first, *others = filters.values()
    differing = {name for other in others for name in other if other[name] != first.get(name)}
    if any(other.keys() != first.keys() for other in others) or len(differing) > 1:
        return None
    if not differing:
        return _Joined(first, None, list(filters), {})
    (field,) = differing
    if "." in field:
        return None
    by_value: dict[Any, list[int]] = {}
    for number, wanted in filters.items():
        values = _values(wanted[field])
        if values is None:
            return None
        for value in values:
            by_value.setdefault(value, []).append(number)
    return _Joined({**first, field: {"$in": list(by_value)}}, field, list(filters), by_value)


def _values(condition: object) -> set[Any] | None:
    """Return the values that a condition on a field accepts, or None if it is of another kind."""
    found = [condition]
    if isinstance(condition, dict) and condition.keys() == {"$in"}:
        found = condition["$in"]
    return set(found) if all(isinstance(value, str | ObjectId) for value in found) else None


def _copies(document: Document) -> Iterator[Document]:
    """Yield a document, and as many copies as are wanted, so that each has its own."""
    yield document
    is_flat = not any(isinstance(value, dict | list) for value in document.values())
    while True:
        yield dict(document) if is_flat else copy.deepcopy(document)


def _insert_together(inserts: Sequence[tuple[str, Any]]) -> list[Exception | None]:
    """Store documents, those of a collection in one write, in which each can fail by itself."""
    outcomes: list[Exception | None] = [None] * len(inserts)
    numbers: dict[str, list[int]] = {}
    for number, (name, _) in enumerate(inserts):
        numbers.setdefault(name, []).append(number)
    for name, some in numbers.items():
        stored = _insert_many(name, [inserts[number][1] for number in some])
        for number, outcome in zip(some, stored, strict=True):
            outcomes[number] = outcome
    return outcomes


def _insert_many(name: str, documents: Sequence[Document]) -> Sequence[Exception | None]:
    if len(documents) == 1:
        # It costs a third less than a bulk write of one.
        return _insert_each(name, documents)
    try:
        collection(name).insert_many(documents, ordered=False)
    except BulkWriteError as error:
        return _errors_of(error, len(documents))
    except PyMongoError as error:
        return lockstep.for_all(error, len(documents))
    except Exception:
        # One of them has a value that BSON hasn't, and none was sent.
        return _insert_each(name, documents)
    return [None] * len(documents)


def _insert_each(name: str, documents: Sequence[Document]) -> list[Exception | None]:
    def insert(document: Document) -> None:
        collection(name).insert_one(document)

    return lockstep.for_each(insert, documents)


def _errors_of(error: BulkWriteError, count: int) -> list[Exception | None]:
    """Return the error of each document of an unordered write, as it would be of one alone."""
    details = error.details
    problems = details["writeErrors"]
    outcomes: list[Exception | None] = [None] * count
    if concerns := details["writeConcernErrors"]:
        # Stored, but perhaps not by a majority.
        concern = concerns[-1]
        outcomes = [
            WriteConcernError(concern.get("errmsg"), concern.get("code"), concern)
            for _ in range(count)
        ]
    elif details["nInserted"] + len(problems) != count:
        # Of the others, nobody knows.
        outcomes = list(lockstep.for_all(error, count))
    for problem in problems:
        kind = DuplicateKeyError if problem["code"] == DUPLICATE_KEY else WriteError
        outcomes[problem["index"]] = kind(problem.get("errmsg"), problem["code"], problem)
    return outcomes


_find = Trip(_read_together)
_insert = Trip(_insert_together)
