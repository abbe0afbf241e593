"""Registers, changes, and removes devices. All calls are idempotent and raise PyMongoError."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import structlog
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError, PyMongoError

from domain.web_push import Subscription

from . import queries, subscriptions, tokens
from .documents import DEVICES, DeviceDocument
from .models import BY_PROVIDER, DeactivationReason, Platform
from .preferences import DevicePreferenceChanges
from .status import DEACTIVATION_FIELDS, Evidence, deactivation

log = structlog.get_logger(__name__)
MAX_DEVICES = 50  # Devices per recipient; a further registration evicts one
HEARTBEAT_INTERVAL = timedelta(minutes=5)  # Heartbeats within this time are stored once
MAX_EARLIER = 20  # Earlier tokens of an installation that are kept, to recognize what was sent
_MAX_TRIES = 3
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class ConflictError(PyMongoError):
    """Calls that registered and removed the same token collided. The call may be repeated."""


Credential = str | Subscription
"""What reaches a device: a token of Firebase, or a browser's subscription."""


def id_of(credential: Credential) -> str:
    """Return the device ID of a credential."""
    return tokens.device_id(credential if isinstance(credential, str) else credential.endpoint)


def _stored(credential: Credential) -> dict[str, Any]:
    """Return the fields of a device that has a credential."""
    if isinstance(credential, str):
        return {"device_token": credential, "subscription": None}
    return {"device_token": None, "subscription": dict(subscriptions.stored(credential))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """A device to register. Its credential is secret, since it suffices to send a push message."""

    user_id: str
    token: Credential = field(repr=False)
    platform: Platform
    app_version: str | None = None
    device_model: str | None = None
    os_version: str | None = None
    language: str | None = None
    timezone: str | None = None


DESCRIPTIVE_FIELDS = tuple(item.name for item in fields(Registration) if item.default is None)
"""The optional fields, which describe the device. They may change without a new registration."""


def register(
    new: Registration,
    *,
    preferences: Mapping[str, Any] | None = None,
    kept: Collection[str] = (),
    now: datetime,
) -> DeviceDocument:
    """Store a device as active and return it. The same token replaces the stored device.

    Fields that aren't given are removed, except those in ``kept``, which the caller can't know.
    They and, without ``preferences``, the stored preferences stay, unless the token moves from
    another recipient.

    Beyond MAX_DEVICES, one of the recipient's devices is removed: the longest inactive or, if all
    are active, the longest unseen. Idempotent. Raises PyMongoError.
    """
    device_id = id_of(new.token)
    pipeline = _registration_pipeline(new, now=now, preferences=preferences, kept=kept)
    for _ in range(_MAX_TRIES):
        try:
            stored: Any = DEVICES().find_one_and_update(
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


class TokenInUseError(Exception):
    """The token is registered for another user, whom a rotation doesn't replace."""


class OtherKindError(Exception):
    """The device is an app's and the credential a browser's, or the other way round."""


def replace_token(
    *, device_id: str, token: Credential, user_id: str | None = None, now: datetime
) -> DeviceDocument | None:
    """Make a new device of a new token, with the data and the state of the old one.

    The old device leads to the new one. A device that a person deactivated stays inactive, since
    only a registration says that its user is signed in. If the token is registered already, its
    device keeps its own state.

    ``user_id`` is the only one whose device is replaced; None: whoever's it is by then. Return the
    new device, or None if the old one is unknown or has become another user's. Idempotent.

    Raises TokenInUseError, OtherKindError, or PyMongoError.
    """
    new_id = id_of(token)
    for _ in range(_MAX_TRIES):
        old = _rotated(device_id, new_id=new_id)
        if old is None or user_id not in (None, old["user_id"]):
            return None
        if old["_id"] == new_id:
            return old
        if not _is_of_kind(old, token):
            raise OtherKindError
        known = DEVICES().find_one({"_id": new_id})
        if known is not None and known["user_id"] != old["user_id"]:
            raise TokenInUseError
        # First the old one: if its user has changed meanwhile, nobody gets the token of another. It
        # stays active until its successor is stored: a push in between still has a device.
        if not _mark_replaced(old, new_id=new_id, now=now):
            continue
        if _store_successor(old, known, token=token, now=now):
            _end_replaced(old, new_id=new_id, now=now)
            earlier = {"user_id": old["user_id"], "replaced_by": old["_id"]}
            DEVICES().update_many(earlier, {"$set": {"replaced_by": new_id}})
            _evict_excess(old["user_id"], keep=new_id)
            return DEVICES().find_one({"_id": new_id, "user_id": old["user_id"]})
    raise ConflictError("concurrent changes of the device")


def _is_of_kind(device: DeviceDocument, credential: Credential) -> bool:
    """Return whether a credential can be the next one of a device."""
    if isinstance(credential, Subscription):
        # Also of a browser with a token of Firebase, which would get each push by both.
        return device["platform"] == Platform.WEB
    return device.get("subscription") is None


def _rotated(device_id: str, *, new_id: str) -> DeviceDocument | None:
    """Return the device that a rotation begins from: the given one, or what replaced it."""
    given = queries.get(device_id)
    if (
        given is not None
        and given.get("replaced_by") == new_id
        and (given["is_active"] or queries.get(new_id) is None)
    ):
        # An earlier call ended between its writes.
        return given
    return queries.current(device_id)


def _mark_replaced(old: DeviceDocument, *, new_id: str, now: datetime) -> bool:
    """Point a device to its successor. Return False if it has changed meanwhile."""
    state = ("user_id", "is_active", "deactivation_reason", "replaced_by")
    unchanged = {name: old.get(name) for name in state}
    change = {"$set": {"replaced_by": new_id, "updated_at": now}}
    match = {"_id": old["_id"], **unchanged}
    return DEVICES().update_one(match, change).matched_count > 0


def _end_replaced(old: DeviceDocument, *, new_id: str, now: datetime) -> None:
    """Deactivate a device whose successor is stored, unless a person has deactivated it."""
    if _inherits_activity(old):
        evidence = Evidence(at=now, source="api")
        change = deactivation(DeactivationReason.REPLACED, evidence=evidence, now=now)
        match = {"_id": old["_id"], "user_id": old["user_id"], "replaced_by": new_id}
        DEVICES().update_one(match, [{"$set": change}])


def _store_successor(
    old: DeviceDocument, known: DeviceDocument | None, *, token: Credential, now: datetime
) -> bool:
    """Store the device of a new token. Return False if it has changed meanwhile."""
    new_id, earlier = id_of(token), [old["_id"], *(old.get("replaces") or [])]
    if known is not None:
        earlier += known.get("replaces") or []
    replaces = [earlier_id for earlier_id in dict.fromkeys(earlier) if earlier_id != new_id][
        :MAX_EARLIER
    ]
    copied = ["user_id", "platform", *DESCRIPTIVE_FIELDS, "notification_preferences"]
    if not _inherits_activity(old):
        copied += DEACTIVATION_FIELDS
    kept = {name: value for name, value in old.items() if name in copied and value is not None}
    given = {name: value for name, value in _stored(token).items() if value is not None}
    document = {
        **kept,
        **given,
        "_id": new_id,
        "is_active": _inherits_activity(old),
        "replaces": replaces,
        "token_rejections": 0,
        "proven_at": now,
        "created_at": now,
        "updated_at": now,
        "last_seen": now,
    }
    if known is None:
        try:
            DEVICES().insert_one(cast("DeviceDocument", document))
        except DuplicateKeyError:
            return False
        return True
    match = {name: known.get(name) for name in ("_id", "user_id", "is_active", "replaced_by")}
    stays = known["is_active"] or not _inherits_activity(known)
    if stays and known.get("replaced_by") is None:
        # Registered by itself, or deactivated by a person: it keeps that.
        inherited = old.get("notification_preferences")
        other = "$$REMOVE" if inherited is None else {"$literal": inherited}
        wishes = {"$ifNull": ["$notification_preferences", other]}
        change = {"replaces": replaces, "notification_preferences": wishes, "updated_at": now}
        return DEVICES().update_one(match, [{"$set": change}]).matched_count > 0
    return DEVICES().replace_one(match, document).matched_count > 0


def _inherits_activity(device: DeviceDocument) -> bool:
    """Return whether no person has deactivated a device: its new token is used."""
    reason = device.get("deactivation_reason")
    return bool(device["is_active"]) or reason in (*BY_PROVIDER, DeactivationReason.REPLACED)


def update(
    *, device_id: str, changes: Mapping[str, str | None], now: datetime
) -> DeviceDocument | None:
    """Change DESCRIPTIVE_FIELDS of a device and return it. None for an unknown device."""
    if not changes.keys() <= set(DESCRIPTIVE_FIELDS):
        raise ValueError(f"read-only: {sorted(changes.keys() - set(DESCRIPTIVE_FIELDS))}")
    set_fields = {name: value for name, value in changes.items() if value is not None}
    change: dict[str, Any] = {"$set": {**set_fields, "updated_at": now}}
    if removed := changes.keys() - set_fields.keys():
        change["$unset"] = dict.fromkeys(removed, "")
    return _update(device_id, change)


def set_preferences(
    *, device_id: str, changes: DevicePreferenceChanges, now: datetime
) -> DeviceDocument | None:
    """Change the preferences of a device, or of what replaced it, and return that device.

    None for an unknown device.
    """
    # One write, unless the device was replaced.
    stages = changes.as_stages("notification_preferences")
    pipeline = [*stages, {"$set": {"updated_at": now}}]
    changed = _update(device_id, pipeline, replaced_by=None)
    if changed is None and (document := queries.current(device_id)) is not None:
        changed = _update(document["_id"], pipeline)
    return changed


def heartbeat(*, device_id: str, now: datetime) -> DeviceDocument | None:
    """Record a heartbeat of a device, or of what replaced it, and return that device.

    None for an unknown device.
    """
    # Stored once per HEARTBEAT_INTERVAL. A heartbeat doesn't reactivate a device, because a running
    # app proves nothing about its token.
    document = queries.current(device_id)
    if document is None or (document.get("last_seen") or _LONG_AGO) > now - HEARTBEAT_INTERVAL:
        return document
    return _update(document["_id"], {"$max": {"last_seen": now}})


def remove(*, device_id: str) -> bool:
    """Delete a device with its token. Return False for an unknown device."""
    return DEVICES().delete_one({"_id": device_id}).deleted_count > 0


def _update(
    device_id: str, change: Mapping[str, Any] | Sequence[Mapping[str, Any]], **state: Any
) -> DeviceDocument | None:
    """Change a device in this state, and return it. None if there is none."""
    return DEVICES().find_one_and_update(
        {"_id": device_id, **state}, change, return_document=ReturnDocument.AFTER
    )


def _registration_pipeline(
    new: Registration,
    *,
    now: datetime,
    preferences: Mapping[str, Any] | None,
    kept: Collection[str],
) -> list[dict[str, Any]]:
    same_user = {"$eq": ["$user_id", {"$literal": new.user_id}]}
    described = {name: getattr(new, name) for name in ("user_id", *DESCRIPTIVE_FIELDS)}
    stored = described | _stored(new.token) | {"platform": new.platform.value}
    written: dict[str, Any] = {
        name: {"$literal": value} if value is not None else "$$REMOVE"
        for name, value in stored.items()
    }
    written["notification_preferences"] = (
        {"$literal": dict(preferences)}
        if preferences is not None
        else {"$cond": [same_user, "$notification_preferences", "$$REMOVE"]}
    )
    for name in ("last_accepted_at", "last_receipt_at", *kept):
        written[name] = {"$cond": [same_user, f"${name}", "$$REMOVE"]}
    written |= {
        "is_active": True,
        **dict.fromkeys((*DEACTIVATION_FIELDS, "replaced_by"), "$$REMOVE"),
        "replaces": {"$cond": [same_user, "$replaces", "$$REMOVE"]},
        "token_rejections": 0,
        "suspected_at": "$$REMOVE",
        "proven_at": {"$max": ["$proven_at", now]},
        "created_at": {"$cond": [same_user, "$created_at", now]},
        "updated_at": now,
        "last_seen": {"$max": ["$last_seen", now]},
    }
    return [{"$set": written}]


def _evict_excess(user_id: str, *, keep: str) -> None:
    """Remove a recipient's devices beyond MAX_DEVICES, unless they change meanwhile."""
    by_user = {"user_id": user_id}
    if DEVICES().count_documents(by_user, limit=MAX_DEVICES + 1) <= MAX_DEVICES:
        return
    projection = {"is_active": 1, "deactivated_at": 1, "last_seen": 1, "proven_at": 1}
    found = list(DEVICES().find(by_user, projection))
    others = sorted((device for device in found if device["_id"] != keep), key=_eviction_order)
    for device in others[: len(found) - MAX_DEVICES]:
        unchanged = {name: device.get(name) for name in ("is_active", "last_seen", "proven_at")}
        match = {"_id": device["_id"], **by_user, **unchanged}
        if DEVICES().delete_one(match).deleted_count:
            log.info("device_evicted", device_id=device["_id"], user_id=user_id)


def _eviction_order(device: DeviceDocument) -> tuple[bool, datetime, str]:
    since = device.get("last_seen") if device["is_active"] else device.get("deactivated_at")
    return device["is_active"], since or _LONG_AGO, device["_id"]
