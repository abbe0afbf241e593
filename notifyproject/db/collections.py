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
