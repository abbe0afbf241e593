"""Operations on rooms, and the cache of all of them: there are few, and they seldom change."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog
from django.conf import settings
from pymongo.errors import DuplicateKeyError

from domain import signing
from domain.rooms import InvalidTargetError, RoomKind, RoomTarget, check_target, mask_target
from notifyproject.platform import endpoints
from notifyproject.platform.cache import SharedCache
from notifyproject.platform.encryption import decrypt, encrypt, reencrypt

from .documents import ROOMS, RoomDocument
from .models import REASON_LENGTH

log = structlog.get_logger(__name__)
MAX_ROOMS = 1_000
MAX_SECRETS = 2
"""The newest signs, and the one before it."""
ACCEPTED_INTERVAL = timedelta(minutes=1)
"""Least time between two writes of when a room last accepted a message."""
REMOVED = "The room was removed."
BY_STAFF = "Disabled by staff."


class UnknownRoomError(LookupError):
    """There is no room with this ID."""


class RoomExistsError(Exception):
    """There is a room with this ID already."""


class TooManyRoomsError(Exception):
    """There are MAX_ROOMS rooms already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room as messages to it need it."""

    slug: str
    kind: str
    """A RoomKind, or one of another version."""
    name: str
    encrypted_target: str
    encrypted_secrets: tuple[str, ...]
    min_gap: timedelta
    obstacle: str | None
    """Why it takes no messages, as a sentence. None: it does."""
    is_gone: bool
    """Whether its provider's answer disabled it, rather than staff."""

    def target(self) -> RoomTarget:
        """Return where it is. Raises DecryptionError."""
        return RoomTarget(
            address=_decrypt(self.slug, self.encrypted_target),
            secrets=tuple(_decrypt(self.slug, secret) for secret in self.encrypted_secrets),
        )


def find_rooms() -> Mapping[str, Room]:
    """Return all rooms by ID, as of this request or batch. Raises PyMongoError."""
    return _rooms.get()


def takes_messages(slug: str | None) -> bool:
    """Return whether there is a room with this ID, and it is enabled. Raises PyMongoError."""
    room = find_rooms().get(slug or "")
    return room is not None and room.obstacle is None


def disabled_reason_of(document: RoomDocument) -> str | None:
    """Return why a room is disabled, as a sentence. None: it is enabled."""
    return None if document["enabled"] else document.get("disabled_reason") or BY_STAFF


def all_rooms() -> list[RoomDocument]:
    """Return all rooms as stored, by ID. Raises PyMongoError."""
    return list(ROOMS().find().sort("_id", 1).limit(MAX_ROOMS))


def create(
    *,
    slug: str,
    kind: RoomKind,
    name: str,
    target: str,
    min_gap_seconds: int,
    now: datetime,
) -> str | None:
    """Store a new room, and return its secret if it has one.

    Raises InvalidTargetError, RoomExistsError, or TooManyRoomsError.
    """
    if is_full():
        raise TooManyRoomsError
    address = check(kind, target)
    secret = signing.new_secret() if kind is RoomKind.WEBHOOK else None
    document: RoomDocument = {
        "_id": slug,
        "kind": kind.value,
        "name": name,
        "target": _encrypt(slug, address),
        "masked_target": mask_target(kind, address),
        "secrets": [] if secret is None else [_encrypt(slug, secret)],
        "min_gap_seconds": min_gap_seconds,
        "enabled": True,
        "created_at": now,
        "updated_at": now,
    }
    try:
        ROOMS().insert_one(document)
    except DuplicateKeyError:
        raise RoomExistsError from None
    _rooms.invalidate()
    return secret


def change(
    slug: str,
    *,
    name: str | None = None,
    target: str | None = None,
    min_gap_seconds: int | None = None,
    now: datetime,
) -> None:
    """Change a room. A new target enables it. Raises UnknownRoomError or InvalidTargetError."""
    document = get(slug)
    kind = document["kind"]
    fields: dict[str, object] = {"updated_at": now}
    unset: dict[str, str] = {}
    if name is not None:
        fields["name"] = name
    if min_gap_seconds is not None:
        fields["min_gap_seconds"] = min_gap_seconds
    if target:
        address = check(kind, target)
        fields |= {
            "target": _encrypt(slug, address),
            "masked_target": mask_target(kind, address),
            "enabled": True,
        }
        unset = {"disabled_reason": "", "disabled_at": ""}
    _update({"_id": slug}, {"$set": fields, **({"$unset": unset} if unset else {})})


def rotate(slug: str, *, now: datetime) -> str:
    """Create and return a new secret of a webhook; the previous one signs along.

    Raises UnknownRoomError, also for a room of another kind, since nothing of it is signed.
    """
    secret = signing.new_secret()
    pushed = {"$each": [_encrypt(slug, secret)], "$position": 0, "$slice": MAX_SECRETS}
    change: Mapping[str, object] = {"$push": {"secrets": pushed}, "$set": {"updated_at": now}}
    _update({"_id": slug, "kind": RoomKind.WEBHOOK.value}, change)
    return secret


def is_full() -> bool:
    """Return whether there are MAX_ROOMS rooms. Raises PyMongoError."""
    return ROOMS().count_documents({}, limit=MAX_ROOMS) >= MAX_ROOMS


def get(slug: str) -> RoomDocument:
    """Return a room as stored. Raises UnknownRoomError."""
    document = ROOMS().find_one({"_id": slug})
    if document is None:
        raise UnknownRoomError(slug)
    return document


def remove(slug: str) -> bool:
    """Remove a room. Return False if there is none."""
    removed = ROOMS().delete_one({"_id": slug}).deleted_count
    _rooms.invalidate()
    return removed > 0


def enable(slug: str, *, now: datetime) -> bool:
    """Enable a room. Return False if it is enabled already."""
    changed = ROOMS().update_one(
        {"_id": slug, "enabled": False},
        {
            "$set": {"enabled": True, "updated_at": now},
            "$unset": {"disabled_reason": "", "disabled_at": ""},
        },
    )
    _rooms.invalidate()
    return changed.modified_count == 1


def disable(
    slug: str, *, reason: str | None = None, target: str | None = None, now: datetime
) -> bool:
    """Disable a room, unless it has another ``target`` by now. Return False if nothing changed.

    ``reason`` is the provider's, as a sentence without the target. None: staff disable it.
    """
    match: dict[str, object] = {"_id": slug, "enabled": True}
    if target is not None:
        match["target"] = target
    fields: dict[str, object] = {"enabled": False, "disabled_at": now, "updated_at": now}
    if reason is not None:
        fields["disabled_reason"] = reason[:REASON_LENGTH]
    changed = ROOMS().update_one(match, {"$set": fields}).modified_count == 1
    if changed:
        _rooms.invalidate()
        log.warning("room_disabled", room=slug, by="provider" if reason else "staff")
    return changed


def record_accepted(slugs: set[str], *, now: datetime) -> None:
    """Record that these rooms accepted messages, to the minute."""
    before = {"$not": {"$gt": now - ACCEPTED_INTERVAL}}
    ROOMS().update_many(
        {"_id": {"$in": sorted(slugs)}, "last_accepted_at": before},
        {"$set": {"last_accepted_at": now}},
    )


def encrypted_values() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each encrypted value, and a function that re-encrypts it: False if it changed."""
    for document in ROOMS().find({}, {"target": 1, "secrets": 1}):
        slug, target = document["_id"], document["target"]
        yield target, partial(_reencrypt, slug, "target", "target", target)
        for secret in document["secrets"]:
            yield secret, partial(_reencrypt, slug, "secrets", "secrets.$", secret)


def _reencrypt(slug: str, match: str, field: str, stored: str) -> bool:
    changed = reencrypt(stored, associated_data=_associated_data(slug))
    result = ROOMS().update_one({"_id": slug, match: stored}, {"$set": {field: changed}})
    _rooms.invalidate()
    return result.modified_count == 1


def _update(match: Mapping[str, object], change: Mapping[str, object]) -> None:
    if not ROOMS().update_one(match, change).matched_count:
        raise UnknownRoomError(match["_id"])
    _rooms.invalidate()


def check(kind: str, target: str) -> str:
    """Return a target as it is stored. Raises InvalidTargetError."""
    address = check_target(kind, target)
    if kind == RoomKind.WEBHOOK:
        try:
            endpoints.parse_url(address, allow_loopback=settings.CALLBACK_LOOPBACK)
        except endpoints.InvalidUrlError as error:
            raise InvalidTargetError(str(error)) from error
    return address


def _associated_data(slug: str) -> str:
    return f"room:{slug}"


def _encrypt(slug: str, text: str) -> str:
    return encrypt(text.encode(), associated_data=_associated_data(slug))


def _decrypt(slug: str, encrypted: str) -> str:
    return decrypt(encrypted, associated_data=_associated_data(slug)).decode()


def _load() -> Mapping[str, Room]:
    return {document["_id"]: _room(document) for document in ROOMS().find().limit(MAX_ROOMS)}


def _room(document: RoomDocument) -> Room:
    reason = disabled_reason_of(document)
    return Room(
        slug=document["_id"],
        kind=document["kind"],
        name=document["name"],
        encrypted_target=document["target"],
        encrypted_secrets=tuple(document["secrets"]),
        min_gap=timedelta(seconds=document["min_gap_seconds"]),
        obstacle=None if reason is None else f"The room is disabled: {reason}",
        is_gone=reason not in (None, BY_STAFF),
    )


_rooms: SharedCache[Mapping[str, Room]] = SharedCache("rooms", _load)
