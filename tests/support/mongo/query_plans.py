"""Query plans from MongoDB's profiler."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from notifyproject.db.collections import database


@dataclass(frozen=True)
class Plan:
    """The profiled plan of a read or update, and the documents and keys examined."""

    summary: str
    examined: int
    keys: int
    returned: int
    sorts: bool
    command: dict[str, Any]

    @property
    def is_indexed(self) -> bool:
        uses_index = "IXSCAN" in self.summary or "DISTINCT_SCAN" in self.summary
        return uses_index and "COLLSCAN" not in self.summary

    @property
    def is_by_id(self) -> bool:
        return self.summary == "IDHACK" or self.summary.startswith("IXSCAN { _id: 1 }")


@contextmanager
def emptied(*names: str) -> Iterator[None]:
    """Empty collections before and after the block."""
    for name in names:
        database()[name].delete_many({})
    try:
        yield
    finally:
        for name in names:
            database()[name].delete_many({})


@contextmanager
def plans(collection: str) -> Iterator[list[Plan]]:
    """Collect the plans of the block's operations on a collection."""
    db = database()
    db.command("profile", 0)
    db.drop_collection("system.profile")
    found: list[Plan] = []
    db.command("profile", 2)
    try:
        yield found
    finally:
        db.command("profile", 0)
    found += [
        _plan(entry)
        for entry in db["system.profile"].find({"ns": f"{db.name}.{collection}"}).sort("ts", 1)
        if "planSummary" in entry
    ]
    db.drop_collection("system.profile")


def _plan(entry: dict[str, Any]) -> Plan:
    return Plan(
        summary=entry["planSummary"],
        examined=entry.get("docsExamined", 0),
        keys=entry.get("keysExamined", 0),
        returned=entry.get("nreturned", entry.get("nMatched", 0)),
        sorts=bool(entry.get("hasSortStage")),
        command=entry["command"],
    )
