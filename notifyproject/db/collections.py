"""pymongo's view of a model's collection, on the ORM's own connection pool."""

from datetime import UTC, datetime
from typing import Any

from bson.codec_options import CodecOptions
from django.db import connections
from pymongo import WriteConcern
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import AutoReconnect, BulkWriteError, PyMongoError, WriteConcernError
from pymongo.read_concern import ReadConcern

Document = dict[str, Any]

DUPLICATE_KEY = 11_000
"""MongoDB's code for a write that a unique index refuses."""
CODEC = CodecOptions[Document](tz_aware=True, tzinfo=UTC)
# What is acknowledged is on the disks of a majority: it outlives any one server.
MAJORITY = WriteConcern(w="majority", j=True)


def database() -> Database[Document]:
    """Return the default database with aware datetimes and majority writes."""
    connection = connections["default"]
    connection.ensure_connection()
    client = connection.connection
    return client.get_database(
        connection.settings_dict["NAME"],
        codec_options=CODEC,
        write_concern=MAJORITY,
        read_concern=ReadConcern("local"),
    )


def collection(name: str) -> Collection[Document]:
    """Return one collection by name; see :func:`database`."""
    return database()[name]


def unclaimed(*, now: datetime) -> dict[str, Any]:
    """Return the filter of documents whose ``claim`` holds no lease, or an expired one."""
    return {"$or": [{"claim": None}, {"claim.lease_until": {"$lte": now}}]}


def is_duplicate(error: BulkWriteError) -> bool:
    """Return whether all that went wrong is that some documents were stored before.

    A write that no majority has acknowledged is not among it: it may be undone.
    """
    return _has_only_duplicates(error) and not error.details["writeConcernErrors"]


def is_transient(error: PyMongoError) -> bool:
    """Return whether a write that may be repeated is to be repeated after this error.

    Its answer was lost, or no majority has acknowledged it: because the time for that was over, or
    because the primary steps down.
    """
    if isinstance(error, BulkWriteError):
        # Of a write of many the driver makes one error of all kinds: its details say which.
        return _has_only_duplicates(error) and bool(error.details["writeConcernErrors"])
    if isinstance(error, (AutoReconnect, WriteConcernError)):
        return True
    return error.has_error_label("RetryableWriteError")


def _has_only_duplicates(error: BulkWriteError) -> bool:
    problems = error.details["writeErrors"]
    return all(problem["code"] == DUPLICATE_KEY for problem in problems)
