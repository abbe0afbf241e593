"""Reads devices. Each query uses an index and needs no sort, which a test checks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page

from .models import Document, Platform
from .preferences import Preferences, from_document

MAX_TARGETS = 20  # Devices per recipient that a notification goes to, the most recently seen first
MAX_PAGE = paging.MAX_PAGE
READ_BATCH_SIZE = 5_000  # MongoDB batch size: all devices that a hundred recipients can have
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
ACTIVE_OR_INACTIVE = {"$in": [True, False]}
"""Matches active and inactive devices. Naming both lets an index sort by creation."""
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_PROJECTION = (
    *("user_id", "device_token", "platform", "notification_preferences"),
    *("language", "timezone", "last_seen"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTarget:
    """A device that can receive a push message."""

    device_id: str
    user_id: str
    token: str = field(repr=False)
    platform: Platform
    preferences: Preferences
    language: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTargets:
    """The devices that can receive the pushes of a batch of notifications."""

    by_user: Mapping[str, tuple[PushTarget, ...]]
    """The most recently seen first, at most MAX_TARGETS."""
    by_device: Mapping[str, PushTarget]

    def for_notification(
        self, *, user_id: str | None, device_ids: Sequence[str]
    ) -> tuple[PushTarget, ...]:
        """Return the devices of one notification: those it names, or all of its recipient's."""
        # A named device that another recipient owns by now is left out.
        if not device_ids:
            return self.by_user.get(user_id, ()) if user_id is not None else ()
        selected = (self.by_device.get(one) for one in dict.fromkeys(device_ids))
        return tuple(t for t in selected if t is not None and user_id in (None, t.user_id))


def find_push_targets(
    *, user_ids: Iterable[str] = (), device_ids: Iterable[str] = ()
) -> PushTargets:
    """Return the active devices of these users and with these IDs. Raises PyMongoError."""
    wanted = {"user_id": set(user_ids), "_id": set(device_ids)}
    conditions: list[dict[str, Any]] = [
        {name: {"$in": sorted(ids)}, "is_active": True} for name, ids in wanted.items() if ids
    ]
    if not conditions:
        return PushTargets(by_user={}, by_device={})
    match = conditions[0] if len(conditions) == 1 else {"$or": conditions}
    found = collection("devices").find(match, _PROJECTION, batch_size=READ_BATCH_SIZE)
    by_user: dict[str, tuple[PushTarget, ...]] = {}
    by_device: dict[str, PushTarget] = {}
    newest_first = sorted(
        found, key=lambda one: (one.get("last_seen") or _LONG_AGO, one["_id"]), reverse=True
    )
    for document in newest_first:
        target = _build_target(document)
        if target.device_id in wanted["_id"]:
            by_device[target.device_id] = target
        user_targets = by_user.get(target.user_id, ())
        if target.user_id in wanted["user_id"] and len(user_targets) < MAX_TARGETS:
            by_user[target.user_id] = (*user_targets, target)
    return PushTargets(by_user=by_user, by_device=by_device)


def find_owners(user_ids: Iterable[str]) -> frozenset[str]:
    """Return which of these users have an active device. The index alone answers this.

    Used for a page of a broadcast. Raises PyMongoError.
    """
    found = collection("devices").find(
        {"user_id": {"$in": sorted(set(user_ids))}, "is_active": True},
        {"_id": 0, "user_id": 1},
        batch_size=READ_BATCH_SIZE,
    )
    return frozenset(document["user_id"] for document in found)


def find_users(device_ids: Iterable[str]) -> dict[str, str]:
    """Return the user IDs of these devices, active or not, by device ID. Raises PyMongoError."""
    ids = sorted(set(device_ids))
    if not ids:
        return {}
    found = collection("devices").find({"_id": {"$in": ids}}, {"user_id": 1}, batch_size=len(ids))
    return {document["_id"]: document["user_id"] for document in found}


def get(device_id: str) -> Document | None:
    """Return a device, active or not. Raises PyMongoError."""
    return collection("devices").find_one({"_id": device_id})


def page(*, user_id: str, limit: int, cursor: Cursor | None = None) -> Page:
    """Return up to ``limit`` devices of a user, newest first, from a cursor on."""
    return paging.page(
        "devices",
        {"user_id": user_id, "is_active": ACTIVE_OR_INACTIVE},
        order=NEWEST_FIRST,
        limit=limit,
        cursor=cursor,
    )


def _build_target(document: Document) -> PushTarget:
    return PushTarget(
        device_id=document["_id"],
        user_id=document["user_id"],
        token=document["device_token"],
        platform=Platform(document["platform"]),
        preferences=from_document(document.get("notification_preferences")),
        language=document.get("language"),
        timezone=document.get("timezone"),
    )
