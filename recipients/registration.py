"""Registered people: the only writer of who they are and what they want."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from notifyproject.db.collections import collection

Document = Mapping[str, Any]
PROFILE_FIELDS = ("email", "phone", "name", "locale", "timezone")
"""What an app tells of a person; what is not told is missing."""


class _Unchanged:
    """Stands for quiet hours that a registration does not speak of."""


UNCHANGED = _Unchanged()


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """What an app registers of a person. None is not known."""

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
    """A person as they are stored. ``is_new``: they were not known before."""

    document: Document
    is_new: bool


def register(person: Person, *, now: datetime) -> Registration:
    """Store a person; what was known of one and is not told now is forgotten.

    What they want is not the app's to forget: preferences stay, and so do quiet hours that are not
    spoken of. Raises PyMongoError; may be repeated.
    """
    fields = {name: getattr(person, name) for name in PROFILE_FIELDS}
    if not isinstance(person.quiet_hours, _Unchanged):
        fields["quiet_hours"] = person.quiet_hours
    change: dict[str, Any] = {
        "$set": {
            **{name: value for name, value in fields.items() if value is not None},
            "attributes": dict(person.attributes),
            "is_active": True,
            "updated_at": now,
        },
        "$setOnInsert": {"preferences": {}, "created_at": now},
    }
    if removed := [name for name, value in fields.items() if value is None]:
        change["$unset"] = dict.fromkeys(removed, "")
    try:
        stored = _upsert(person.user_id, change)
    except DuplicateKeyError:
        # Two registered them for the first time at once.
        stored = _upsert(person.user_id, change)
    return Registration(stored, is_new=stored["created_at"] == stored["updated_at"] == now)


def get(user_id: str) -> Document | None:
    """Return a registered person; None if there is none, or they are being erased.

    Raises PyMongoError.
    """
    return collection("recipients").find_one({"_id": user_id, "is_active": True})


def set_preferences(
    *,
    user_id: str,
    preferences: Mapping[str, Any],
    quiet_hours: Mapping[str, Any] | None,
    now: datetime,
) -> Document | None:
    """Replace what a person wants, and return the person; None if there is none.

    Raises PyMongoError; may be repeated.
    """
    change: dict[str, Any] = {"$set": {"preferences": dict(preferences), "updated_at": now}}
    if quiet_hours is None:
        change["$unset"] = {"quiet_hours": ""}
    else:
        change["$set"]["quiet_hours"] = dict(quiet_hours)
    return collection("recipients").find_one_and_update(
        {"_id": user_id, "is_active": True}, change, return_document=ReturnDocument.AFTER
    )


def begin_erasure(user_id: str, *, now: datetime) -> Document | None:
    """Take a person out of use, and return what is known of them; None if nothing is.

    Their addresses stay until :func:`forget`: erasing that was broken off goes on with them.
    Raises PyMongoError; may be repeated.
    """
    return collection("recipients").find_one_and_update(
        {"_id": user_id}, {"$set": {"is_active": False, "updated_at": now}}
    )


def finish_erasure(user_id: str) -> bool:
    """Remove a person who is being erased, unless somebody has registered them anew meanwhile.

    Raises PyMongoError; may be repeated.
    """
    erased = {"_id": user_id, "is_active": False}
    return collection("recipients").delete_one(erased).deleted_count > 0


def _upsert(user_id: str, change: Mapping[str, Any]) -> Document:
    stored: Any = collection("recipients").find_one_and_update(
        {"_id": user_id}, change, upsert=True, return_document=ReturnDocument.AFTER
    )
    return stored
