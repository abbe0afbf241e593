"""What apps send about people: strict structures, and whether what they hold makes sense."""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from recipients.registration import UNCHANGED, Person

from ..validation import (
    InvalidAddressError,
    ProblemCollector,
    has_control_characters,
    normalize_email,
    normalize_phone,
)
from .locale_requests import (
    Language,
    QuietHours,
    Zone,
    check_language,
    check_quiet_hours,
    check_zone,
)

MAX_ATTRIBUTES = 100
MAX_ATTRIBUTES_BYTES = 16 * 1024


class PersonalQuietHours(QuietHours, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A daily span of local time in which a person is left alone: start included, end not."""


class PersonRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person to register. What is left out is not known afterwards, but for quiet hours."""

    email: Annotated[str, Meta(max_length=320, examples=["ada@example.com"])] | None = None
    phone: (
        Annotated[str, Meta(max_length=32, description="E.164", examples=["+351912345678"])] | None
    ) = None
    name: Annotated[str, Meta(max_length=200)] | None = None
    locale: Language | None = None
    timezone: Zone | None = None
    attributes: Annotated[
        dict[str, Any],
        Meta(
            max_length=MAX_ATTRIBUTES,
            description="Whatever else the app wants to keep: at most 16 KB of JSON.",
        ),
    ] = {}
    quiet_hours: (
        Annotated[
            PersonalQuietHours | None,
            Meta(description="Left out: as they are; null: none. Also part of the preferences."),
        ]
        | UnsetType
    ) = UNSET


def person(user_id: str, body: PersonRequest) -> Person:
    """Return the person a body is; raises InvalidRequest."""
    problems = ProblemCollector()
    email = _email(body.email, problems)
    phone = _phone(body.phone, problems)
    if body.name is not None and (has_control_characters(body.name) or not body.name.strip()):
        problems.add("/name", "invalid_name", "A name is one line that says something.")
    check_language(body.locale, "/locale", problems)
    check_zone(body.timezone, "/timezone", problems)
    if len(msgspec.json.encode(body.attributes)) > MAX_ATTRIBUTES_BYTES:
        problems.add("/attributes", "too_long", "Attributes have at most 16 KB as JSON.")
    hours = body.quiet_hours
    if isinstance(hours, PersonalQuietHours):
        check_quiet_hours(hours, problems)
    problems.raise_if_any()
    return Person(
        user_id=user_id,
        email=email,
        phone=phone,
        name=body.name,
        locale=body.locale,
        timezone=body.timezone,
        attributes=body.attributes,
        quiet_hours=UNCHANGED if isinstance(hours, UnsetType) else stored_quiet_hours(hours),
    )


def stored_quiet_hours(hours: PersonalQuietHours | None) -> dict[str, Any] | None:
    """Return quiet hours as they are stored."""
    if hours is None:
        return None
    fields = msgspec.structs.asdict(hours)
    return {name: value for name, value in fields.items() if value is not None}


def _email(text: str | None, problems: ProblemCollector) -> str | None:
    try:
        return normalize_email(text) if text is not None else None
    except InvalidAddressError as problem:
        problems.add("/email", "invalid_email", str(problem))
        return None


def _phone(text: str | None, problems: ProblemCollector) -> str | None:
    try:
        return normalize_phone(text) if text is not None else None
    except InvalidAddressError as problem:
        problems.add("/phone", "invalid_phone", str(problem))
        return None
