"""Registers, changes, and removes devices. All calls are idempotent and raise PyMongoError."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import structlog
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError, PyMongoError

from notifyproject.db.collections import collection

from .models import DeactivationReason, Document, Platform
from .preferences import Preferences, to_document
from .status import DEACTIVATION_FIELDS, Evidence, deactivate
from .tokens import device_id as id_of

log = structlog.get_logger(__name__)
MAX_DEVICES = 50  # Devices per recipient; a further registration evicts one
HEARTBEAT_INTERVAL = timedelta(minutes=5)  # Heartbeats within this time are stored once
DESCRIPTIVE_FIELDS = ("app_version", "device_model", "os_version", "language", "timezone")
"""Fields that may change without a new registration."""
_MAX_TRIES = 3
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ConflictError(PyMongoError):
    """Calls that registered and removed the same token collided. The call may be repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A device to register. The token is secret, since it suffices to send a push message."""

    user_id: str
    token: str = field(repr=False)
    platform: Platform
    app_version: str | None = None
    device_model: str | None = None
    os_version: str | None = None
    language: str | None = None
    timezone: str | None = None


def register(
    new: Registration, *, preferences: Mapping[str, Any] | None = None, now: datetime
) -> Document:
    """Store a device as active and return it. The same token replaces the stored device.

    Fields that aren't given are removed. Without ``preferences``, the stored preferences stay,
    unless the token moves from another recipient.

    Beyond MAX_DEVICES, one of the recipient's devices is removed: the longest inactive or, if all
    are active, the longest unseen. Idempotent. Raises PyMongoError.
    """
    device_id = id_of(new.token)
    pipeline = _registration_pipeline(new, now=now, preferences=preferences)
    for _ in range(_MAX_TRIES):
        try:
            stored: Any = collection("devices").find_one_and_update(
                {"_id": device_id}, pipeline, upsert=True, return_document=ReturnDocument.AFTER
            )
        except DuplicateKeyError:
            # A concurrent first registration; the next iteration finds it.
            log.info("device_registration_conflicted", device_id=device_id)
        else:
            _evict_excess(new.user_id, keep=device_id)
            return stored
    # Not chained: the driver's error quotes the token.
    raise ConflictError("concurrent registrations and removals of the device")


def replace_token(*, device_id: str, token: str, now: datetime) -> Document | None:
    """Register a new token as a new device with the old one's data, and deactivate the old one.

    Return the new device, or None if the old one is unknown. Idempotent. Raises PyMongoError.
    """
    old = collection("devices").find_one({"_id": device_id})
    if old is None or token == old["device_token"]:
        return old
    new = Registration(
        user_id=old["user_id"],
        token=token,
        platform=Platform(old["platform"]),
        **{name: old.get(name) for name in DESCRIPTIVE_FIELDS},
    )
    document = register(new, preferences=old.get("notification_preferences"), now=now)
    evidence = Evidence(at=now, source="api")
    reason = DeactivationReason.REPLACED
    deactivate(device_ids=[device_id], reason=reason, evidence=evidence, now=now)
    return document


def update(*, device_id: str, changes: Mapping[str, str | None], now: datetime) -> Document | None:
    """Change DESCRIPTIVE_FIELDS of a device and return it. None for an unknown device."""
    if not changes.keys() <= set(DESCRIPTIVE_FIELDS):
        raise ValueError(f"read-only: {sorted(changes.keys() - set(DESCRIPTIVE_FIELDS))}")
    set_fields = {name: value for name, value in changes.items() if value is not None}
    change: dict[str, Any] = {"$set": {**set_fields, "updated_at": now}}
    if removed := changes.keys() - set_fields.keys():
        change["$unset"] = dict.fromkeys(removed, "")
    return _update(device_id, change)


def set_preferences(*, device_id: str, preferences: Preferences, now: datetime) -> Document | None:
    """Replace a device's preferences and return the device. None for an unknown device."""
    stored = {"notification_preferences": to_document(preferences), "updated_at": now}
    return _update(device_id, {"$set": stored})


def heartbeat(*, device_id: str, now: datetime) -> Document | None:
    """Record a heartbeat and return the device. None for an unknown device."""
    # Stored once per HEARTBEAT_INTERVAL. A heartbeat doesn't reactivate a device, because a running
    # app proves nothing about its token.
    document = collection("devices").find_one({"_id": device_id})
    if document is None or (document.get("last_seen") or _LONG_AGO) > now - HEARTBEAT_INTERVAL:
        return document
    return _update(device_id, {"$max": {"last_seen": now}})


def remove(*, device_id: str) -> bool:
    """Delete a device with its token. Return False for an unknown device."""
    return collection("devices").delete_one({"_id": device_id}).deleted_count > 0


def _update(device_id: str, change: Mapping[str, Any]) -> Document | None:
    return collection("devices").find_one_and_update(
        {"_id": device_id}, change, return_document=ReturnDocument.AFTER
    )


def _registration_pipeline(
    new: Registration, *, now: datetime, preferences: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    same_user = {"$eq": ["$user_id", {"$literal": new.user_id}]}
    stored = asdict(new)
    stored |= {"device_token": stored.pop("token"), "platform": new.platform.value}
    fields: dict[str, Any] = {
        name: {"$literal": value} if value is not None else "$$REMOVE"
        for name, value in stored.items()
    }
    fields["notification_preferences"] = (
        {"$literal": dict(preferences)}
        if preferences is not None
        else {"$cond": [same_user, "$notification_preferences", "$$REMOVE"]}
    )
    for name in ("last_accepted_at", "last_receipt_at"):
        fields[name] = {"$cond": [same_user, f"${name}", "$$REMOVE"]}
    fields |= {
        "is_active": True,
        **dict.fromkeys(DEACTIVATION_FIELDS, "$$REMOVE"),
        "suspicions": 0,
        "suspected_at": "$$REMOVE",
        "proven_at": {"$max": ["$proven_at", now]},
        "created_at": {"$cond": [same_user, "$created_at", now]},
        "updated_at": now,
        "last_seen": {"$max": ["$last_seen", now]},
    }
    return [{"$set": fields}]


def _evict_excess(user_id: str, *, keep: str) -> None:
    """Remove a recipient's devices beyond MAX_DEVICES, unless they change meanwhile."""
    by_user = {"user_id": user_id}
    if collection("devices").count_documents(by_user, limit=MAX_DEVICES + 1) <= MAX_DEVICES:
        return
    projection = {"is_active": 1, "deactivated_at": 1, "last_seen": 1, "proven_at": 1}
    found = list(collection("devices").find(by_user, projection))
    others = sorted((device for device in found if device["_id"] != keep), key=_eviction_order)
    for device in others[: len(found) - MAX_DEVICES]:
        unchanged = {name: device.get(name) for name in ("is_active", "last_seen", "proven_at")}
        match = {"_id": device["_id"], **by_user, **unchanged}
        if collection("devices").delete_one(match).deleted_count:
            log.info("device_evicted", device_id=device["_id"], user_id=user_id)


def _eviction_order(device: Document) -> tuple[bool, datetime, str]:
    since = device.get("last_seen" if device["is_active"] else "deactivated_at")
    return device["is_active"], since or _LONG_AGO, device["_id"]
