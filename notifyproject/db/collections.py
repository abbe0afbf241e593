"""pymongo collections on the ORM's connection pool."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache, partial
from typing import Any, Generic, TypeVar

from bson import Timestamp
from bson.codec_options import CodecOptions
from django.db import connections
from pymongo import MongoClient, WriteConcern
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    OperationFailure,
    PyMongoError,
    WriteConcernError,
)
from pymongo.read_concern import ReadConcern

Document = dict[str, Any]
Filter = Mapping[str, Any]
"""A filter of MongoDB: its values are of any type, as PyMongo says."""
T = TypeVar("T")
D = TypeVar("D", bound=Mapping[str, Any])

DUPLICATE_KEY = 11_000
"""MongoDB's error code of a violated unique index."""
SNAPSHOT_GONE = frozenset({239, 246})
"""MongoDB's error codes of a snapshot that is older than its history, or than a collection."""
SNAPSHOT_ATTEMPTS = 5
"""Snapshots that :func:`read_snapshot` tries."""
CODEC = CodecOptions[Document](tz_aware=True, tzinfo=UTC)
MAX_FEW = 100
"""Documents that :func:`find_in_several` returns at most."""
# An acknowledged write is on the disks of a majority, so it survives the loss of a server.
MAJORITY = WriteConcern(w="majority", j=True)


@dataclass(frozen=True, slots=True)
class Documents(Generic[D]):
    """A collection, and the type of its documents."""

    name: str
    document: type[D]

    def __call__(self) -> Collection[D]:
        """Return the collection of :func:`database`."""
        return database()[self.name]


def database() -> Database[Any]:
    """Return the default database with aware datetimes and majority writes."""
    connection = connections["default"]
    connection.ensure_connection()
    return _database(connection.connection, connection.settings_dict["NAME"])


@lru_cache(maxsize=4)
def _database(client: MongoClient[Document], name: str) -> Database[Any]:
    return client.get_database(
        name,
        codec_options=CODEC,
        write_concern=MAJORITY,
        read_concern=ReadConcern("local"),
    )


def collection(name: str) -> Collection[Document]:
    """Return a collection by name, for results of pipelines and documents of any type."""
    return database()[name]


def find_few(documents: Documents[D], wanted: Filter, *, limit: int) -> list[D]:
    """Return up to ``limit`` documents, which fit into one response.

    The bare command uses two thirds of the CPU time of a find with its cursor.
    """
    found: list[D] = _single_batch(documents.name, wanted, limit)
    return found


def _single_batch(name: str, wanted: Filter, limit: int) -> list[Any]:
    try:
        reply = database().command(
            "find", name, filter=wanted, limit=limit, singleBatch=True, codec_options=CODEC
        )
    except AutoReconnect:
        # While a primary is elected, the driver retries a find but not a command.
        return list(collection(name).find(wanted).limit(limit))
    return list(reply["cursor"]["firstBatch"])


def find_in_several(
    wanted: Mapping[str, Mapping[str, Any]], *, limit: int = MAX_FEW
) -> dict[str, list[Any]]:
    """Return matching documents of several collections, ``limit`` at most, read in one request.

    ``wanted`` has a filter for each collection. Two finds cost twice the CPU time, here and in
    MongoDB.
    """
    (first, match), *others = wanted.items()
    if not others:
        return {first: _single_batch(first, match, limit)}
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
            cursor={"batchSize": limit},
            codec_options=CODEC,
        )
        rows = reply["cursor"]["firstBatch"]
    except AutoReconnect:
        # As in find_few.
        rows = list(collection(first).aggregate(pipeline))
    found: dict[str, list[Any]] = {name: [] for name in wanted}
    for row in rows:
        found[row["from"]].append(row["document"])
    return found


class Snapshot:
    """Aggregations that all read at one cluster time: the newest that a majority has written.

    Of two snapshots, also in different processes, the one with the later time saw more writes.
    """

    def __init__(self) -> None:
        self._at: Timestamp | None = None

    @property
    def time(self) -> Timestamp:
        """The cluster time. Raises RuntimeError before the first read."""
        if self._at is None:
            raise RuntimeError("nothing was read yet")
        return self._at

    def aggregate(
        self, name: str, pipeline: Sequence[Mapping[str, Any]], **options: Any
    ) -> list[Document]:
        """Return a pipeline's results, which must fit into one response. Raises PyMongoError."""
        at = {} if self._at is None else {"atClusterTime": self._at}
        run = partial(
            database().command,
            "aggregate",
            name,
            pipeline=list(pipeline),
            cursor={},
            readConcern={"level": "snapshot", **at},
            codec_options=CODEC,
            **options,
        )
        try:
            reply = run()
        except AutoReconnect:
            # As the driver does with a find, while a primary is elected.
            reply = run()
        # Only this command's response has the time; the driver's cursors don't.
        self._at = reply["cursor"]["atClusterTime"]
        return reply["cursor"]["firstBatch"]


def read_snapshot(read: Callable[[Snapshot], T]) -> T:
    """Return the result of ``read``, which gets a new snapshot at each attempt.

    Raises PyMongoError.
    """
    # The first write after a pause longer than `minSnapshotHistoryWindowInSeconds` ends all
    # snapshots from before the pause, those of concurrent reads too.
    for _ in range(SNAPSHOT_ATTEMPTS - 1):
        try:
            return read(Snapshot())
        except OperationFailure as error:
            if error.code not in SNAPSHOT_GONE:
                raise
    return read(Snapshot())


def _tagged(name: str) -> dict[str, Any]:
    return {"$replaceWith": {"from": name, "document": "$$ROOT"}}


def is_duplicate(error: BulkWriteError) -> bool:
    """Return whether all errors are duplicate keys, and the write has reached a majority."""
    return _has_only_duplicates(error) and not error.details["writeConcernErrors"]


def is_transient(error: PyMongoError) -> bool:
    """Return whether to retry an idempotent write, which got no response or no majority."""
    if isinstance(error, BulkWriteError):
        # The driver reports all errors of a bulk write as one error with details.
        return _has_only_duplicates(error) and bool(error.details["writeConcernErrors"])
    if isinstance(error, (AutoReconnect, WriteConcernError)):
        return True
    return error.has_error_label("RetryableWriteError")


def _has_only_duplicates(error: BulkWriteError) -> bool:
    problems = error.details["writeErrors"]
    return all(problem["code"] == DUPLICATE_KEY for problem in problems)
