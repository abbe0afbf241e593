"""What a request reads of MongoDB, and how: the server's own profile of what really ran."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from notifyproject.db.collections import database

PROFILE = "system.profile"
PROFILE_BYTES = 64 * 2**20
SMALL_COLLECTION = 1_000
"""So few are read whole without anybody noticing: types, roles, what is paused."""
MAX_SORTED = 10_000
"""No page looks at more than that at once, and what it may sort is bounded by it."""


@dataclass(frozen=True, kw_only=True)
class Read:
    """One command, and how its documents were found."""

    collection: str
    plan: str
    examined: int
    keys: int
    has_sort: bool
    milliseconds: int
    command: Mapping[str, Any]

    @property
    def is_collection_scan(self) -> bool:
        """Whether it went through more than a small collection without an index."""
        return "COLLSCAN" in self.plan and self.examined > SMALL_COLLECTION

    @property
    def is_unbounded_sort(self) -> bool:
        """Whether it sorted without a bound on how much."""
        return self.has_sort and max(self.examined, self.keys) > MAX_SORTED

    @property
    def summary(self) -> str:
        """The read in a line."""
        sort = ", sorted" if self.has_sort else ""
        return (
            f"{self.collection} {self.plan}{sort}: {self.keys:,} keys, "
            f"{self.examined:,} documents, {self.milliseconds} ms"
        )


@contextmanager
def profile_reads() -> Iterator[list[Read]]:
    """Collect what is asked of the database in the block, by whichever process."""
    db = database()
    db.command("profile", 0)
    db.drop_collection(PROFILE)
    db.create_collection(PROFILE, capped=True, size=PROFILE_BYTES)
    found: list[Read] = []
    db.command("profile", 2)
    try:
        yield found
    finally:
        db.command("profile", 0)
    found += [
        _read(entry)
        for entry in db[PROFILE].find({"ns": {"$ne": f"{db.name}.{PROFILE}"}}).sort("ts", 1)
        if "planSummary" in entry
    ]
    db.drop_collection(PROFILE)


def _read(entry: Mapping[str, Any]) -> Read:
    return Read(
        collection=entry["ns"].partition(".")[2],
        plan=entry["planSummary"],
        examined=entry.get("docsExamined", 0),
        keys=entry.get("keysExamined", 0),
        has_sort=bool(entry.get("hasSortStage")),
        milliseconds=entry.get("millis", 0),
        command=entry.get("originatingCommand") or entry["command"],
    )
