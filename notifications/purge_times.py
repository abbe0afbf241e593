"""Giving notifications that are there already the time of deletion that retention says today.

A change of the days is for what is accepted from then on. To see to the others costs a write for
each of them and of their attempts: it is done when somebody asks for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from bson import ObjectId

from domain.states import Category
from notifyproject.db.collections import collection

from . import retention, store

log = structlog.get_logger(__name__)

BATCH = 500
INDEX = "ntf_category_created"
OLDEST_FIRST = [("created_at", 1), ("_id", 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What :func:`apply` would do."""

    notifications: int
    """Whose time of deletion would be another one."""
    deleted: int
    """Those of them that MongoDB would delete at once."""


def apply() -> int:
    """Give all that is over its time of deletion; return how many had another one.

    What is open keeps the one it has. May be stopped at any time and done again.
    """
    changed = 0
    for policy in retention.read():
        for ids in _batches(policy.category):
            changed += store.keep_for(ids=ids, metadata=policy.metadata)
    log.info("purge_times_applied", notifications=changed)
    return changed


def count(*, now: datetime) -> Changes:
    """Return what :func:`apply` would do; it looks at everything that is over."""
    changed = deleted = 0
    for policy in retention.read():
        new = store.purged_at(policy.metadata)
        other: dict[str, Any] = {**_over(policy.category), "$expr": {"$ne": ["$purge_at", new]}}
        changed += _count(other)
        deleted += _count({"$and": [other, {"$expr": {"$lte": [new, now]}}]})
    return Changes(notifications=changed, deleted=deleted)


def _batches(category: Category) -> Iterator[list[ObjectId]]:
    some: list[ObjectId] = []
    found = collection("notifications").find(_over(category), {"_id": 1, "created_at": 1})
    with found.sort(OLDEST_FIRST).hint(INDEX).batch_size(BATCH) as cursor:
        for document in cursor:
            some.append(document["_id"])
            if len(some) == BATCH:
                yield some
                some = []
    if some:
        yield some


def _over(category: Category) -> dict[str, Any]:
    return {"category": category.value, "due_at": None}


def _count(wanted: dict[str, Any]) -> int:
    return int(collection("notifications").count_documents(wanted, hint=INDEX))
