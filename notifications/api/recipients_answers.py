"""What answers about people look like."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from domain.states import Channel
from recipients.preferences import told
from recipients.registration import TOLD

from .devices_answers import DeviceView
from .recipients_requests import PersonalQuietHours
from .representations import AttemptView, NotificationView
from .suppressions_answers import SuppressionView

Document = Mapping[str, Any]


class PersonView(msgspec.Struct, kw_only=True, frozen=True):
    """A registered person."""

    user_id: str
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    attributes: dict[str, Any]
    quiet_hours: PersonalQuietHours | None = None
    created_at: datetime
    updated_at: datetime


class WishView(msgspec.Struct, kw_only=True, frozen=True):
    """What a person wants of a type or category; null: nothing was told."""

    muted: bool | None = None
    channels: list[Channel] | None = None
    muted_channels: list[Channel] | None = None
    notify_before: int | None = None
    """Seconds before the event."""


class PreferencesView(msgspec.Struct, kw_only=True, frozen=True):
    """What a person wants."""

    preferences: dict[str, WishView]
    """By category or type; a type goes before its category."""
    quiet_hours: PersonalQuietHours | None = None


class ErasureView(msgspec.Struct, kw_only=True, frozen=True):
    """What was erased by this request."""

    user_id: str
    is_complete: bool
    """False: there is more than one request has time for. Send it again."""
    notifications: int
    devices: int
    topics: int


class ExportView(msgspec.Struct, kw_only=True, frozen=True):
    """Everything that is held about a person. What is secret in a notification is masked."""

    user_id: str
    exported_at: datetime
    of_all_apps: bool
    """False: of notifications, those of the app that asks. With the scope admin: of all."""
    person: PersonView | None = None
    preferences: PreferencesView | None = None
    devices: list[DeviceView]
    topics: list[str]
    suppressions: list[SuppressionView]
    last_inbound_at: datetime | None = None
    """When they last wrote to us on WhatsApp, within 30 days."""
    notifications: list[NotificationView]
    """Newest first, as many as ``limit`` says."""
    attempts: list[AttemptView]
    """Every try to deliver these notifications."""
    next: str | None = None
    """Value of the parameter ``cursor`` for the notifications that follow."""


def person_view(document: Document) -> PersonView:
    """Return a stored person as they are shown to apps."""
    return PersonView(
        user_id=document["_id"],
        **{name: document.get(name) for name in TOLD},
        attributes=document.get("attributes") or {},
        quiet_hours=_quiet_hours(document),
        created_at=document["created_at"],
        updated_at=document["updated_at"],
    )


def preferences_view(document: Document) -> PreferencesView:
    """Return what a stored person wants; what an older release stored otherwise is left out."""
    stored = told(document.get("preferences"))
    return PreferencesView(
        preferences={name: _wish_view(told(wish)) for name, wish in stored.items()},
        quiet_hours=_quiet_hours(document),
    )


def _wish_view(stored: Document) -> WishView:
    known = {name: stored[name] for name in WishView.__struct_fields__ if name in stored}
    try:
        return msgspec.convert(known, WishView)
    except msgspec.ValidationError:
        return WishView(muted=known.get("muted") is True or None)


def _quiet_hours(document: Document) -> PersonalQuietHours | None:
    stored = told(document.get("quiet_hours"))
    known = {name: stored[name] for name in PersonalQuietHours.__struct_fields__ if name in stored}
    return msgspec.convert(known, PersonalQuietHours) if known else None
