"""The only writer of profiles and preferences. Writes are idempotent and raise PyMongoError."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from domain.unchanged import UNCHANGED, Unchanged

from .documents import RECIPIENTS, RecipientDocument

NAME_WORDS = "name_words"
"""Stored with the name: its words as :func:`name_words` returns them, for a search while typing."""
MAX_NAME_WORDS = 8
PROFILE_FIELDS = ("email", "phone", "name", "locale", "timezone")
"""Contact details; a missing one is unknown."""


_WORD = re.compile(r"\w+")
_NOTHING: dict[str, Any] = {"$literal": {}}


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
    quiet_hours: Mapping[str, Any] | Unchanged | None = UNCHANGED


@dataclass(frozen=True, slots=True)
class Registration:
    """A stored recipient. ``is_new`` if it was not registered before."""

    document: RecipientDocument
    is_new: bool


def name_words(text: str) -> list[str]:
    """Return the words of a name without case and accents, at most ``MAX_NAME_WORDS``."""
    plain = unicodedata.normalize("NFKD", text.casefold())
    letters = "".join(character for character in plain if not unicodedata.combining(character))
    return list(dict.fromkeys(_WORD.findall(letters)))[:MAX_NAME_WORDS]


def register(profile: RecipientProfile, *, now: datetime) -> Registration:
    """Store a recipient's profile. Preferences stay, and so do quiet hours unless given."""
    fields = {name: getattr(profile, name) for name in PROFILE_FIELDS}
    fields[NAME_WORDS] = name_words(profile.name) if profile.name else None
    if not isinstance(profile.quiet_hours, Unchanged):
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


def get(user_id: str) -> RecipientDocument | None:
    """Return a recipient, or None if unknown or being erased. Raises PyMongoError."""
    return RECIPIENTS().find_one({"_id": user_id, "is_active": True})


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferenceChanges:
    """Changes to a recipient's preferences and quiet hours. What isn't named stays."""

    by_name: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)
    """The changed fields by category or type. None removes a field, or the whole preference."""
    removes_others: bool = False
    """All preferences that aren't named are removed."""
    quiet_hours: Mapping[str, Any] | Unchanged | None = UNCHANGED


def set_preferences(
    *, user_id: str, changes: PreferenceChanges, is_new_allowed: bool = False, now: datetime
) -> RecipientDocument | None:
    """Change preferences and quiet hours. Return the recipient, or None if unknown.

    With ``is_new_allowed``, an unknown recipient is registered, unless they are being erased.
    """
    pipeline = _preferences_pipeline(changes, now=now)
    if is_new_allowed:
        known = {"attributes": {"$ifNull": ["$attributes", _NOTHING]}}
        pipeline.append({"$set": {**known, "created_at": {"$ifNull": ["$created_at", now]}}})
    try:
        return RECIPIENTS().find_one_and_update(
            {"_id": user_id, "is_active": True},
            pipeline,
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
    changed = RECIPIENTS().update_one(
        {"_id": user_id, "is_active": True, field_name: old},
        {"$set": {field_name: new, "updated_at": now}},
    )
    return changed.modified_count > 0


def begin_erasure(user_id: str, *, now: datetime) -> RecipientDocument | None:
    """Deactivate a recipient and return the stored document, or None if unknown."""
    # The addresses stay until :func:`finish_erasure`, so that an interrupted erasure can continue.
    return RECIPIENTS().find_one_and_update(
        {"_id": user_id}, {"$set": {"is_active": False, "updated_at": now}}
    )


def finish_erasure(user_id: str) -> bool:
    """Delete a recipient that is being erased, unless it has been registered again."""
    erased = {"_id": user_id, "is_active": False}
    return RECIPIENTS().delete_one(erased).deleted_count > 0


def _preferences_pipeline(changes: PreferenceChanges, *, now: datetime) -> list[dict[str, Any]]:
    # Names are slugs, so that a path to a preference has no other dots.
    stages: list[dict[str, Any]] = [
        {"$set": {"preferences": _NOTHING if changes.removes_others else _object("$preferences")}}
    ]
    for name, fields in changes.by_name.items():
        path = f"preferences.{name}"
        if fields is None:
            stages.append({"$unset": path})
            continue
        given = {field: value for field, value in fields.items() if value is not None}
        merged = {"$mergeObjects": [_object(f"${path}"), {"$literal": given}]}
        stages.append({"$set": {path: merged}})
        if removed := [f"{path}.{field}" for field in fields if field not in given]:
            stages.append({"$unset": removed})
        if {"channels", "muted_channels"} & given.keys():
            stages.append({"$set": {f"{path}.channels": _preferred(path)}})
    is_set = {"$ne": ["$$this.v", _NOTHING]}
    kept = {"$filter": {"input": {"$objectToArray": "$preferences"}, "cond": is_set}}
    stages.append({"$set": {"preferences": {"$arrayToObject": kept}, "updated_at": now}})
    if changes.quiet_hours is None:
        stages.append({"$unset": "quiet_hours"})
    elif not isinstance(changes.quiet_hours, Unchanged):
        stages.append({"$set": {"quiet_hours": {"$literal": dict(changes.quiet_hours)}}})
    return stages


def _object(path: str) -> dict[str, Any]:
    """Return the expression of a stored object, or an empty one for any other value."""
    return {"$cond": [{"$eq": [{"$type": path}, "object"]}, path, _NOTHING]}


def _preferred(path: str) -> dict[str, Any]:
    """Return the expression of the preferred channels: a muted one is preferred no more."""
    muted = {"$ifNull": [f"${path}.muted_channels", []]}
    left = {
        "$filter": {
            "input": {"$ifNull": [f"${path}.channels", []]},
            "cond": {"$not": [{"$in": ["$$this", muted]}]},
        }
    }
    chosen = {"$cond": [{"$eq": ["$$left", []]}, "$$REMOVE", "$$left"]}
    return {"$let": {"vars": {"left": left}, "in": chosen}}


def _upsert(user_id: str, change: Mapping[str, Any]) -> RecipientDocument:
    stored: Any = RECIPIENTS().find_one_and_update(
        {"_id": user_id}, change, upsert=True, return_document=ReturnDocument.AFTER
    )
    return stored
