"""Structures of the recipient operations."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from django.http import QueryDict
from msgspec import UNSET, Meta, UnsetType

from domain.addresses import ADDRESS_KINDS, InvalidAddressError
from domain.channels import Channel
from domain.digests import Every
from domain.states import Category
from domain.time import parse_zone
from domain.unchanged import UNCHANGED
from notifications.catalog import types
from notifications.catalog.digests import DEFAULT_AT, RECIPIENT_ZONE, Day
from notifications.validation import ProblemCollector, has_control_characters
from recipients.documents import RecipientDocument
from recipients.registration import RecipientProfile

from ..devices.schemas import DeviceView
from ..http.fields import (
    Language,
    QuietHours,
    TimeZoneName,
    TopicName,
    UserId,
    check_language,
    check_quiet_hours,
    check_time_zone,
    view_of,
)
from ..http.paging import NextCursor, PageView
from ..notifications.schemas import AttemptView, NotificationView
from ..suppressions import SuppressionView

CATEGORIES = frozenset(category.value for category in Category)
MAX_ATTRIBUTES = 100
MAX_ATTRIBUTES_BYTES = 16 * 1024


class RecipientRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipient. Omitted fields are cleared, apart from quiet hours."""

    email: Annotated[
        Annotated[str, Meta(max_length=320)] | None, Meta(examples=["ada@example.com"])
    ] = None
    phone: (
        Annotated[str, Meta(max_length=32, description="E.164", examples=["+351912345678"])] | None
    ) = None
    name: Annotated[Annotated[str, Meta(max_length=200)] | None, Meta(examples=["Ada"])] = None
    locale: Annotated[Language | None, Meta(examples=["pt-BR"])] = None
    timezone: Annotated[TimeZoneName | None, Meta(examples=["Europe/Lisbon"])] = None
    attributes: Annotated[
        dict[str, Any],
        Meta(
            max_length=MAX_ATTRIBUTES, description="The client's own data: at most 16 KB of JSON."
        ),
    ] = {}
    quiet_hours: (
        Annotated[
            QuietHours | None,
            Meta(description="Omitted: unchanged; null: none. Also part of the preferences."),
        ]
        | UnsetType
    ) = UNSET


def parse_recipient(user_id: str, body: RecipientRequest) -> RecipientProfile:
    """Return the recipient in a body. Raises InvalidRequestError."""
    problems = ProblemCollector()
    email = _normalize("email", body.email, problems)
    phone = _normalize("phone", body.phone, problems)
    if body.name is not None and (has_control_characters(body.name) or not body.name.strip()):
        problems.add("/name", "invalid_name", "Must be one line and not blank.")
    locale = check_language(body.locale, "/locale", problems)
    time_zone = check_time_zone(body.timezone, "/timezone", problems)
    if len(msgspec.json.encode(body.attributes)) > MAX_ATTRIBUTES_BYTES:
        problems.add("/attributes", "too_long", "Exceeds 16 KB of JSON.")
    hours = body.quiet_hours
    if isinstance(hours, QuietHours):
        check_quiet_hours(hours, problems)
    problems.raise_if_any()
    return RecipientProfile(
        user_id=user_id,
        email=email,
        phone=phone,
        name=body.name,
        locale=locale,
        timezone=time_zone,
        attributes=body.attributes,
        quiet_hours=UNCHANGED if isinstance(hours, UnsetType) else stored_quiet_hours(hours),
    )


def parse_address_filters(query: QueryDict, problems: ProblemCollector) -> dict[str, str | None]:
    """Return the normalized addresses in a list's query. Adds a problem for an invalid address."""
    # A plus sign that wasn't escaped arrives as a space, which no address has.
    given = {name: query[name].replace(" ", "+") for name in ADDRESS_KINDS if name in query}
    return {name: _normalize(name, text, problems) for name, text in given.items()}


def stored_quiet_hours(hours: QuietHours | None) -> dict[str, Any] | None:
    """Return quiet hours in their stored form, after check_quiet_hours."""
    if hours is None:
        return None
    fields = msgspec.structs.asdict(hours)
    if hours.timezone is not None:
        fields["timezone"] = parse_zone(hours.timezone).key
    return {name: value for name, value in fields.items() if value is not None}


def _normalize(field: str, text: str | None, problems: ProblemCollector) -> str | None:
    try:
        return ADDRESS_KINDS[field].normalize(text) if text is not None else None
    except InvalidAddressError as problem:
        problems.add(f"/{field}", f"invalid_{field}", str(problem))
        return None


class RecipientView(msgspec.Struct, kw_only=True, frozen=True):
    """A registered recipient."""

    user_id: UserId
    email: Annotated[str | None, Meta(examples=["ada@example.com"])] = None
    phone: str | None = None
    name: Annotated[str | None, Meta(examples=["Ada"])] = None
    locale: str | None = None
    timezone: str | None = None
    attributes: Annotated[dict[str, Any], Meta(examples=[{}])]
    quiet_hours: QuietHours | None = None
    created_at: datetime
    updated_at: datetime


class RecipientList(PageView[RecipientView], kw_only=True, frozen=True):
    """A page of recipients, by user ID."""


class DigestScheduleView(msgspec.Struct, kw_only=True, frozen=True):
    """A recipient's own schedule of digests, in local time."""

    every: Annotated[Every, Meta(examples=["day"])]
    at: Annotated[str, Meta(examples=["08:00"])] = DEFAULT_AT
    days: Annotated[list[Day], Meta(examples=[["mon"]])] = []
    zone: Annotated[str, Meta(examples=[RECIPIENT_ZONE])] = RECIPIENT_ZONE


class PreferenceView(msgspec.Struct, kw_only=True, frozen=True):
    """A recipient's preference for a type or category; null: not set."""

    muted: bool | None = None
    channels: list[Channel] | None = None
    muted_channels: list[Channel] | None = None
    notify_before: int | None = None  # Seconds before the event
    digest: Literal["off"] | DigestScheduleView | None = None


class PreferencesView(msgspec.Struct, kw_only=True, frozen=True):
    """A recipient's preferences."""

    preferences: dict[str, PreferenceView]  # By category or type; a type's overrides its category's
    quiet_hours: QuietHours | None = None


class ErasureView(msgspec.Struct, kw_only=True, frozen=True):
    """The data that the request erased."""

    user_id: UserId
    is_complete: Annotated[bool, Meta(examples=[True])]
    """False: the request ran out of time. Send it again."""
    notifications: Annotated[int, Meta(examples=[12])]
    devices: int
    topics: Annotated[int, Meta(examples=[2])]


class ExportView(msgspec.Struct, kw_only=True, frozen=True):
    """All data stored about a recipient. Sensitive values of notifications are redacted."""

    user_id: UserId
    exported_at: datetime
    of_all_apps: Annotated[bool, Meta(examples=[True])]
    """False: only the requesting client's notifications. True needs the scope admin."""
    person: RecipientView | None = None
    preferences: PreferencesView | None = None
    devices: list[DeviceView]
    topics: list[TopicName]
    suppressions: list[SuppressionView]
    whatsapp_ids: Annotated[list[str], Meta(examples=[["GB.13491208655302741918"]])]
    """What else WhatsApp calls the recipient: user IDs, and other forms of the phone number."""
    last_inbound_at: datetime | None = None
    """The last WhatsApp message from the recipient, within 30 days."""
    notifications: list[NotificationView]
    """Newest first, up to ``limit``."""
    attempts: list[AttemptView]
    next: NextCursor = None


def recipient_view(document: RecipientDocument) -> RecipientView:
    """Return a stored recipient as the API shows it."""
    return RecipientView(
        user_id=document["_id"],
        email=document.get("email"),
        phone=document.get("phone"),
        name=document.get("name"),
        locale=document.get("locale"),
        timezone=document.get("timezone"),
        attributes=document.get("attributes") or {},
        quiet_hours=_quiet_hours(document),
        created_at=document["created_at"],
        updated_at=document["updated_at"],
    )


def takes_preference(name: str) -> bool:
    """Return whether a preference for this category or type has an effect."""
    return name in CATEGORIES or not types.is_locked(name)


def preferences_view(document: RecipientDocument | None) -> PreferencesView:
    """Return a stored recipient's preferences.

    Those for locked types don't apply, and storing them again would be refused: they are left out.
    """
    return PreferencesView(
        preferences={
            name: view_of(PreferenceView, preference)
            for name, preference in (document.get("preferences", {}) if document else {}).items()
            if takes_preference(name)
        },
        quiet_hours=_quiet_hours(document) if document else None,
    )


def _quiet_hours(document: RecipientDocument) -> QuietHours | None:
    stored = document.get("quiet_hours")
    return view_of(QuietHours, stored) if stored else None
