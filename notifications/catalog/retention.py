"""How long what a notification says is kept, and how long that there was one: by category.

The days stand in the settings; a category that an operator has changed has its own. What follows
from them is done elsewhere: MongoDB deletes the document at its ``purge_at``, and
:mod:`privacy.content_removal` removes before that what it says.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from domain.states import Category
from notifyproject.db.collections import collection
from notifyproject.platform.cache import SharedCache

COLLECTION = "retention_policies"
MIN_CONTENT_DAYS, MIN_METADATA_DAYS, MAX_DAYS = 1, 14, 3_650
"""A secret is in the inbox for a day at most. A delivery may be open for ten, if its provider asks
for a day before each of ten tries, and none is to be deleted while it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What holds for one category."""

    category: Category
    content: timedelta
    """What it says goes so long after the last thing that happened to it; never more than
    ``metadata``."""
    metadata: timedelta
    """It is deleted so long after its send time."""
    removed_until: datetime | None = None
    """What was last touched before this has been looked at."""


def retention_of(category: Category) -> Retention:
    """Return a category's policy. Raises PyMongoError."""
    return _policies.get()[category]


def purge_at(category: Category, *, send_at: datetime) -> datetime:
    """Return when a notification that is to be sent then is deleted."""
    return send_at + retention_of(category).metadata


def read_all() -> list[Retention]:
    """Return the policies of all categories as they are now. Raises PyMongoError."""
    stored = {document["_id"]: document for document in collection("retention_policies").find()}
    return [_parse_policy(category, stored.get(category.value, {})) for category in Category]


def record_progress(category: Category, *, until: datetime) -> None:
    """Note how far a category's content has been removed; it never goes back."""
    collection("retention_policies").update_one(
        {"_id": category.value}, {"$max": {"removed_until": until}}, upsert=True
    )


def add_missing_policies() -> None:
    """Add a row for each category that has none, for operators to change."""
    for category in Category:
        collection("retention_policies").update_one(
            {"_id": category.value},
            {"$setOnInsert": {"content_days": None, "metadata_days": None}},
            upsert=True,
        )


def invalidate_retention() -> None:
    """Make every process read the policies again: one was changed. Raises PyMongoError."""
    _policies.invalidate()


def effective_days(content_days: int | None, metadata_days: int | None) -> tuple[int, int]:
    """Return the days of content and of metadata, those of the settings where none are given."""
    content = settings.RETENTION_CONTENT_DAYS if content_days is None else content_days
    metadata = settings.RETENTION_METADATA_DAYS if metadata_days is None else metadata_days
    return min(content, metadata), metadata


def _read_by_category() -> Mapping[Category, Retention]:
    return {one.category: one for one in read_all()}


def _parse_policy(category: Category, stored: Mapping[str, Any]) -> Retention:
    content, metadata = effective_days(stored.get("content_days"), stored.get("metadata_days"))
    return Retention(
        category=category,
        content=timedelta(days=content),
        metadata=timedelta(days=metadata),
        removed_until=stored.get("removed_until"),
    )


_policies = SharedCache("retention", _read_by_category)
