"""Reads devices. Each query uses an index and needs no sort, which a test checks."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from domain.web_push import SealedSubscription
from notifyproject.db import paging
from notifyproject.db.collections import Filter
from notifyproject.db.paging import Cursor, Page
from notifyproject.db.trips import MAX_FEW, find_few

from . import subscriptions
from .documents import DEVICES, DeviceDocument
from .models import Platform
from .preferences import Preferences, from_document

MAX_TARGETS = 20  # Devices per recipient that a notification goes to, the most recently seen first
MAX_PAGE = paging.MAX_PAGE
READ_BATCH_SIZE = 5_000  # MongoDB batch size: all devices that a hundred recipients can have
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
ACTIVE_OR_INACTIVE = {"$in": [True, False]}
"""Matches active and inactive devices. Naming both lets an index sort by creation."""
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
_PROJECTION = (
    "user_id",
    "device_token",
    "subscription",
    "platform",
    "notification_preferences",
    "language",
    "timezone",
    "last_seen",
    "is_active",
    "replaced_by",
    "replaces",
)
_MAX_STEPS = 5
"""Successors that are followed. A rotation points earlier devices to the newest: one is usual."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTarget:
    """A device that can receive a push message."""

    device_id: str
    user_id: str
    token: str | None = field(repr=False)
    subscription: SealedSubscription | None = None
    platform: Platform
    preferences: Preferences
    earlier_ids: tuple[str, ...] = ()
    """Devices of earlier tokens: what was sent to one of them reached this device."""
    language: str | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PushTargets:
    """The devices that can receive the pushes of a batch of notifications."""

    by_user: Mapping[str, tuple[PushTarget, ...]]
    """The most recently seen first, at most MAX_TARGETS."""
    by_device: Mapping[str, PushTarget]
    """By the ID that a notification names, also if another device has replaced that one."""

    def for_notification(
        self, *, user_id: str | None, device_ids: Sequence[str]
    ) -> tuple[PushTarget, ...]:
        """Return the devices of one notification: those it names, or all of its recipient's."""
        # A named device that another recipient owns by now is left out.
        if not device_ids:
            return self.by_user.get(user_id, ()) if user_id is not None else ()
        selected = (self.by_device.get(device_id) for device_id in device_ids)
        found = {t.device_id: t for t in selected if t is not None and user_id in (None, t.user_id)}
        return tuple(found.values())


def find_push_targets(
    *, user_ids: Iterable[str] = (), device_ids: Iterable[str] = ()
) -> PushTargets:
    """Return the active devices of these users and with these IDs. Raises PyMongoError."""
    users, named = set(user_ids), set(device_ids)
    conditions: list[dict[str, Any]] = []
    if users:
        conditions.append({"user_id": {"$in": sorted(users)}, "is_active": True})
    if named:
        conditions.append({"_id": {"$in": sorted(named)}})
    if not conditions:
        return PushTargets(by_user={}, by_device={})
    if len(conditions) == 1 and len(users) <= 1:
        found = _read(conditions[0], most=len(named) or MAX_FEW, fields=_PROJECTION)
    else:
        match = conditions[0] if len(conditions) == 1 else {"$or": conditions}
        found = list(DEVICES().find(match, _PROJECTION, batch_size=READ_BATCH_SIZE))
    by_user: dict[str, tuple[PushTarget, ...]] = {}
    owned = {
        device["_id"]: device
        for device in found
        if device["is_active"] and device["user_id"] in users
    }
    # Between two writes of a rotation both devices are active. The new one alone gets the push, or
    # nobody once its user has signed out of it.
    latest = {device["_id"]: device for device in _follow(owned, _PROJECTION).values()}
    newest_first = sorted(
        (device for device in latest.values() if device["is_active"]),
        key=lambda device: (device.get("last_seen") or _LONG_AGO, device["_id"]),
        reverse=True,
    )
    for document in newest_first:
        user_targets = by_user.get(document["user_id"], ())
        if len(user_targets) < MAX_TARGETS:
            by_user[document["user_id"]] = (*user_targets, _build_target(document))
    current = _follow(
        {device["_id"]: device for device in found if device["_id"] in named}, _PROJECTION
    )
    active = {name: device for name, device in current.items() if device["is_active"]}
    by_device = {name: _build_target(device) for name, device in active.items()}
    return PushTargets(by_user=by_user, by_device=by_device)


def find_owners(user_ids: Iterable[str]) -> frozenset[str]:
    """Return which of these users have an active device. The index alone answers this.

    Used for a page of a broadcast. Raises PyMongoError.
    """
    found = DEVICES().find(
        {"user_id": {"$in": sorted(set(user_ids))}, "is_active": True},
        {"_id": 0, "user_id": 1},
        batch_size=READ_BATCH_SIZE,
    )
    return frozenset(document["user_id"] for document in found)


def find_users(device_ids: Iterable[str]) -> dict[str, str]:
    """Return the user IDs of these devices, active or not, by device ID. Raises PyMongoError.

    A device that was replaced counts if its successor is the same user's.
    """
    ids = sorted(set(device_ids))
    if not ids:
        return {}
    fields = ("user_id", "replaced_by", "is_active")
    found = _read({"_id": {"$in": ids}}, most=len(ids), fields=fields)
    current = _follow({document["_id"]: document for document in found}, fields)
    return {device_id: document["user_id"] for device_id, document in current.items()}


def get(device_id: str) -> DeviceDocument | None:
    """Return a device, active or not. Raises PyMongoError."""
    return DEVICES().find_one({"_id": device_id})


def current(device_id: str) -> DeviceDocument | None:
    """Return the device that an ID means now: itself, or what replaced it. Raises PyMongoError.

    None if the device is unknown, or if its successor is gone or another user's.
    """
    document = get(device_id)
    return None if document is None else _follow({device_id: document}, None).get(device_id)


def page(*, user_id: str, limit: int, cursor: Cursor | None = None) -> Page[DeviceDocument]:
    """Return up to ``limit`` devices of a user, newest first, from a cursor on."""
    return paging.page(
        DEVICES,
        {"user_id": user_id, "is_active": ACTIVE_OR_INACTIVE},
        order=NEWEST_FIRST,
        limit=limit,
        cursor=cursor,
    )


def _read(wanted: Filter, *, most: int, fields: Sequence[str] | None) -> list[DeviceDocument]:
    """Return devices, of which there are at most ``most``. Those of a request are few."""
    if most <= MAX_FEW:
        return find_few(DEVICES, wanted, limit=most)
    return list(DEVICES().find(wanted, fields, batch_size=READ_BATCH_SIZE))


def _build_target(document: DeviceDocument) -> PushTarget:
    return PushTarget(
        device_id=document["_id"],
        user_id=document["user_id"],
        token=document.get("device_token"),
        subscription=subscriptions.sealed(document),
        platform=Platform(document["platform"]),
        preferences=from_document(document.get("notification_preferences")),
        earlier_ids=tuple(document.get("replaces") or ()),
        language=document.get("language"),
        timezone=document.get("timezone"),
    )


def _follow(
    found: Mapping[str, DeviceDocument], fields: Sequence[str] | None
) -> dict[str, DeviceDocument]:
    """Replace each device by its successor. A device whose successor is another's is left out.

    An active device whose successor isn't stored yet stands for itself.
    """
    # Takes no read if no device was replaced.
    devices, rotating = dict(found), set[str]()
    for _ in range(_MAX_STEPS):
        successors = {
            name: device["replaced_by"]
            for name, device in devices.items()
            if _has_moved(device) and name not in rotating
        }
        if not successors:
            break
        wanted = sorted(set(successors.values()))
        read = _read({"_id": {"$in": wanted}}, most=len(wanted), fields=fields)
        by_id = {document["_id"]: document for document in read}
        for name, successor_id in successors.items():
            successor = by_id.get(successor_id)
            if successor is None and devices[name]["is_active"]:
                rotating.add(name)
            elif successor is None or successor["user_id"] != devices[name]["user_id"]:
                del devices[name]
            else:
                devices[name] = successor
    return {
        name: device
        for name, device in devices.items()
        if name in rotating or not _has_moved(device)
    }


def _has_moved(document: DeviceDocument) -> bool:
    return document.get("replaced_by") is not None
