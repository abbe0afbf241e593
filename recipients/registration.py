"""The only writer of profiles and preferences. Writes are idempotent and raise PyMongoError."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from notifyproject.db.collections import collection

Document = Mapping[str, Any]
PROFILE_FIELDS = ("email", "phone", "name", "locale", "timezone")
"""Contact details; a missing one is unknown."""


class _Unchanged:
    """Sentinel for quiet hours that a registration doesn't set."""


UNCHANGED = _Unchanged()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientProfile:
    """What a client registers about a recipient. None means unknown."""

    user_id: str
    email: str | None = field(default=None, repr=False)
    phone: str | None = field(default=None, repr=False)
    name: str | None = field(default=None, repr=False)
    locale: str | None = None
    timezone: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    quiet_hours: Mapping[str, Any] | _Unchanged | None = UNCHANGED


@dataclass(frozen=True, slots=True)
class Registration:
    """A stored recipient. ``is_new`` if it was not registered before."""

    document: Document
    is_new: bool


def register(profile: RecipientProfile, *, now: datetime) -> Registration:
    """Store a recipient's profile. Preferences stay, and so do quiet hours unless given."""
    fields = {name: getattr(profile, name) for name in PROFILE_FIELDS}
    if not isinstance(profile.quiet_hours, _Unchanged):
        fields["quiet_hours"] = profile.quiet_hours
    change: dict[str, Any] = {
        "$set": {
            **{name: value for name, value in fields.items() if value is not None},
            "attributes": dict(profile.attributes),
            "is_active": True,
            "updated_at": now,
        },
        "$setOnInsert": {"preferences": {}, "created_at": now},
    }
    if removed := [name for name, value in fields.items() if value is None]:
        change["$unset"] = dict.fromkeys(removed, "")
    try:
        stored = _upsert(profile.user_id, change)
    except DuplicateKeyError:
        # Two concurrent first registrations.
        stored = _upsert(profile.user_id, change)
    return Registration(stored, is_new=stored["created_at"] == stored["updated_at"] == now)


def get(user_id: str) -> Document | None:
    """Return a recipient, or None if unknown or being erased. Raises PyMongoError."""
    return collection("recipients").find_one({"_id": user_id, "is_active": True})


def set_preferences(
    *,
    user_id: str,
    preferences: Mapping[str, Any],
    quiet_hours: Mapping[str, Any] | None,
    is_new_allowed: bool = False,
    now: datetime,
) -> Document | None:
    """Replace preferences and quiet hours. Return the recipient, or None if unknown.

    With ``is_new_allowed``, an unknown recipient is registered, unless they are being erased.
    """
    change: dict[str, Any] = {"$set": {"preferences": dict(preferences), "updated_at": now}}
    if quiet_hours is None:
        change["$unset"] = {"quiet_hours": ""}
    else:
        change["$set"]["quiet_hours"] = dict(quiet_hours)
    if is_new_allowed:
        change["$setOnInsert"] = {"attributes": {}, "created_at": now}
    try:
        return collection("recipients").find_one_and_update(
            {"_id": user_id, "is_active": True},
            change,
            upsert=is_new_allowed,
            return_document=ReturnDocument.AFTER,
        )
    except DuplicateKeyError:
        # An inactive recipient has the ID.
        return None


def replace_address(
    *, user_id: str, field_name: str, old: str | None, new: str, now: datetime
) -> bool:
    """Replace a recipient's email or phone, if it is still ``old``. Return whether it was."""
    changed = collection("recipients").update_one(
        {"_id": user_id, "is_active": True, field_name: old},
        {"$set": {field_name: new, "updated_at": now}},
    )
    return changed.modified_count > 0


def begin_erasure(user_id: str, *, now: datetime) -> Document | None:
    """Deactivate a recipient and return the stored document, or None if unknown."""
    # The addresses stay until :func:`finish_erasure`, so that an interrupted erasure can continue.
    return collection("recipients").find_one_and_update(
        {"_id": user_id}, {"$set": {"is_active": False, "updated_at": now}}
    )


def finish_erasure(user_id: str) -> bool:
    """Delete a recipient that is being erased, unless it has been registered again."""
    erased = {"_id": user_id, "is_active": False}
    return collection("recipients").delete_one(erased).deleted_count > 0


def _upsert(user_id: str, change: Mapping[str, Any]) -> Document:
    stored: Any = collection("recipients").find_one_and_update(
        {"_id": user_id}, change, upsert=True, return_document=ReturnDocument.AFTER
    )
    return stored
