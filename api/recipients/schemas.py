"""Recipients in the API."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from domain.states import Channel
from notifications.validation import (
    InvalidAddressError,
    ProblemCollector,
    has_control_characters,
    normalize_email,
    normalize_phone,
)
from recipients.preferences import as_mapping
from recipients.registration import PROFILE_FIELDS, UNCHANGED, RecipientProfile

from ..devices.schemas import DeviceView
from ..http.fields import (
    Language,
    QuietHours,
    TimeZoneName,
    check_language,
    check_quiet_hours,
    check_time_zone,
)
from ..notifications.schemas import AttemptView, NotificationView
from ..suppressions import SuppressionView

MAX_ATTRIBUTES = 100
MAX_ATTRIBUTES_BYTES = 16 * 1024


class RecipientQuietHours(QuietHours, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A daily span of local time in which a person is left alone: start included, end not."""


class RecipientRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person to register. What is left out is not known afterwards, but for quiet hours."""

    email: Annotated[str, Meta(max_length=320, examples=["ada@example.com"])] | None = None
    phone: (
        Annotated[str, Meta(max_length=32, description="E.164", examples=["+351912345678"])] | None
    ) = None
    name: Annotated[str, Meta(max_length=200)] | None = None
    locale: Language | None = None
    timezone: TimeZoneName | None = None
    attributes: Annotated[
        dict[str, Any],
        Meta(
            max_length=MAX_ATTRIBUTES,
            description="Whatever else the app wants to keep: at most 16 KB of JSON.",
        ),
    ] = {}
    quiet_hours: (
        Annotated[
            RecipientQuietHours | None,
            Meta(description="Left out: as they are; null: none. Also part of the preferences."),
        ]
        | UnsetType
    ) = UNSET


def parse_recipient(user_id: str, body: RecipientRequest) -> RecipientProfile:
    """Return the person a body is; raises InvalidRequestError."""
    problems = ProblemCollector()
    email = _parse_email(body.email, problems)
    phone = _parse_phone(body.phone, problems)
    if body.name is not None and (has_control_characters(body.name) or not body.name.strip()):
        problems.add("/name", "invalid_name", "A name is one line that says something.")
    check_language(body.locale, "/locale", problems)
    check_time_zone(body.timezone, "/timezone", problems)
    if len(msgspec.json.encode(body.attributes)) > MAX_ATTRIBUTES_BYTES:
        problems.add("/attributes", "too_long", "Attributes have at most 16 KB as JSON.")
    hours = body.quiet_hours
    if isinstance(hours, RecipientQuietHours):
        check_quiet_hours(hours, problems)
    problems.raise_if_any()
    return RecipientProfile(
        user_id=user_id,
        email=email,
        phone=phone,
        name=body.name,
        locale=body.locale,
        timezone=body.timezone,
        attributes=body.attributes,
        quiet_hours=UNCHANGED if isinstance(hours, UnsetType) else stored_quiet_hours(hours),
    )


def stored_quiet_hours(hours: RecipientQuietHours | None) -> dict[str, Any] | None:
    """Return quiet hours as they are stored."""
    if hours is None:
        return None
    fields = msgspec.structs.asdict(hours)
    return {name: value for name, value in fields.items() if value is not None}


def _parse_email(text: str | None, problems: ProblemCollector) -> str | None:
    try:
        return normalize_email(text) if text is not None else None
    except InvalidAddressError as problem:
        problems.add("/email", "invalid_email", str(problem))
        return None


def _parse_phone(text: str | None, problems: ProblemCollector) -> str | None:
    try:
        return normalize_phone(text) if text is not None else None
    except InvalidAddressError as problem:
        problems.add("/phone", "invalid_phone", str(problem))
        return None


Document = Mapping[str, Any]


class RecipientView(msgspec.Struct, kw_only=True, frozen=True):
    """A registered person."""

    user_id: str
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    attributes: dict[str, Any]
    quiet_hours: RecipientQuietHours | None = None
    created_at: datetime
    updated_at: datetime


class PreferenceView(msgspec.Struct, kw_only=True, frozen=True):
    """What a person wants of a type or category; null: nothing was told."""

    muted: bool | None = None
    channels: list[Channel] | None = None
    muted_channels: list[Channel] | None = None
    notify_before: int | None = None
    """Seconds before the event."""


class PreferencesView(msgspec.Struct, kw_only=True, frozen=True):
    """What a person wants."""

    preferences: dict[str, PreferenceView]
    """By category or type; a type goes before its category."""
    quiet_hours: RecipientQuietHours | None = None


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
    person: RecipientView | None = None
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


def recipient_view(document: Document) -> RecipientView:
    """Return a stored person as they are shown to apps."""
    return RecipientView(
        user_id=document["_id"],
        **{name: document.get(name) for name in PROFILE_FIELDS},
        attributes=document.get("attributes") or {},
        quiet_hours=_quiet_hours(document),
        created_at=document["created_at"],
        updated_at=document["updated_at"],
    )


def preferences_view(document: Document) -> PreferencesView:
    """Return what a stored person wants; what an older release stored otherwise is left out."""
    stored = as_mapping(document.get("preferences"))
    return PreferencesView(
        preferences={
            name: _preference_view(as_mapping(preference)) for name, preference in stored.items()
        },
        quiet_hours=_quiet_hours(document),
    )


def _preference_view(stored: Document) -> PreferenceView:
    fields = {name: stored[name] for name in PreferenceView.__struct_fields__ if name in stored}
    try:
        return msgspec.convert(fields, PreferenceView)
    except msgspec.ValidationError:
        return PreferenceView(muted=fields.get("muted") is True or None)


def _quiet_hours(document: Document) -> RecipientQuietHours | None:
    stored = as_mapping(document.get("quiet_hours"))
    fields = {
        name: stored[name] for name in RecipientQuietHours.__struct_fields__ if name in stored
    }
    return msgspec.convert(fields, RecipientQuietHours) if fields else None
