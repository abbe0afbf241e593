"""Retention of content and of notifications by category, set by operators or in the settings.

:mod:`privacy.content_removal` removes the content. Later, MongoDB deletes the notification at
``purge_at``.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings

from domain.states import Category
from notifyproject.platform.cache import SharedCache

from ..documents.policies import RETENTION_POLICIES, RetentionPolicyDocument

MIN_CONTENT_DAYS, MIN_METADATA_DAYS, MAX_DAYS = 1, 14, 3_650
"""Bounds in days. The inbox shows sensitive content for up to 1 day. An open delivery must not be
deleted, and is open for 10 days if a provider requests a day's wait before each of 10 attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """The retention policy of one category."""

    category: Category
    content: timedelta  # Removed this long after the last change; never more than ``metadata``
    metadata: timedelta  # A notification is deleted this long after its send time
    removed_until: datetime | None = None  # Content last changed before this is removed


def retention_of(category: Category) -> Retention:
    """Return a category's policy. Raises PyMongoError."""
    return _policies.get()[category]


def purge_at(category: Category, *, send_at: datetime) -> datetime:
    """Return when to delete a notification with this send time."""
    return send_at + retention_of(category).metadata


def read_all() -> list[Retention]:
    """Return the current policies of all categories, uncached. Raises PyMongoError."""
    stored = {document["_id"]: document for document in RETENTION_POLICIES().find()}
    return [_parse_policy(category, stored.get(category.value)) for category in Category]


def record_progress(category: Category, *, until: datetime) -> None:
    """Record that content last changed before ``until`` is removed. Progress never goes back."""
    RETENTION_POLICIES().update_one(
        {"_id": category.value}, {"$max": {"removed_until": until}}, upsert=True
    )


def add_missing_policies() -> None:
    """Add a policy, for operators to change, for each category without one."""
    for category in Category:
        RETENTION_POLICIES().update_one(
            {"_id": category.value},
            {"$setOnInsert": {"content_days": None, "metadata_days": None}},
            upsert=True,
        )


def invalidate_retention() -> None:
    """Make every process reload the policies. Raises PyMongoError."""
    _policies.invalidate()


def effective_days(content_days: int | None, metadata_days: int | None) -> tuple[int, int]:
    """Return the days of content and metadata retention. None means the settings' default."""
    content = settings.RETENTION_CONTENT_DAYS if content_days is None else content_days
    metadata = settings.RETENTION_METADATA_DAYS if metadata_days is None else metadata_days
    return min(content, metadata), metadata


def _parse_policy(category: Category, stored: RetentionPolicyDocument | None) -> Retention:
    policy: RetentionPolicyDocument = stored or {"_id": category.value}
    content, metadata = effective_days(policy.get("content_days"), policy.get("metadata_days"))
    return Retention(
        category=category,
        content=timedelta(days=content),
        metadata=timedelta(days=metadata),
        removed_until=policy.get("removed_until"),
    )


_policies = SharedCache("retention", lambda: {policy.category: policy for policy in read_all()})
