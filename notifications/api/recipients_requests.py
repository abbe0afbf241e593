"""What apps send about people: strict structures, and whether what they hold makes sense."""

import re
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from recipients.registry import KEPT, Person

from .. import timing
from ..intake.addresses import AddressProblem, check_email, check_phone, has_control_characters
from ..intake.problems import Collector

MAX_ATTRIBUTES = 100
MAX_ATTRIBUTES_BYTES = 16 * 1024
_LOCALE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*", re.ASCII)
_WALL_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)

WallClock = Annotated[str, Meta(max_length=5, examples=["22:00"])]
Zone = Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])]


class PersonalQuietHours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A daily span of local time in which a person is left alone: start included, end not."""

    enabled: bool
    start: WallClock = "22:00"
    end: WallClock = "07:00"
    timezone: Zone | None = None
    """IANA name; left out: the person's own zone."""


class PersonRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person to register. What is left out is not known afterwards, but for quiet hours."""

    email: Annotated[str, Meta(max_length=320, examples=["ada@example.com"])] | None = None
    phone: (
        Annotated[str, Meta(max_length=32, description="E.164", examples=["+351912345678"])] | None
    ) = None
    name: Annotated[str, Meta(max_length=200)] | None = None
    locale: Annotated[str, Meta(max_length=35, examples=["pt-BR"])] | None = None
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
    problems = Collector()
    email = _email(body.email, problems)
    phone = _phone(body.phone, problems)
    if body.name is not None and (has_control_characters(body.name) or not body.name.strip()):
        problems.add("/name", "invalid_name", "A name is one line that says something.")
    if body.locale is not None and not _LOCALE.fullmatch(body.locale):
        problems.add("/locale", "invalid_language", "Expected a language such as pt or pt-BR.")
    _check_zone(body.timezone, "/timezone", problems)
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
        quiet_hours=KEPT if isinstance(hours, UnsetType) else stored_quiet_hours(hours),
    )


def check_quiet_hours(hours: PersonalQuietHours, problems: Collector) -> None:
    """Note what is wrong with quiet hours, which stand at ``/quiet_hours``."""
    at, clocks = "/quiet_hours", {"start": hours.start, "end": hours.end}
    wrong = [name for name, clock in clocks.items() if not _WALL_CLOCK.fullmatch(clock)]
    for name in wrong:
        problems.add(f"{at}/{name}", "invalid_time", "Expected a time of day such as 22:00.")
    if not wrong and hours.start == hours.end:
        same = "Quiet hours cannot start when they end."
        problems.add(f"{at}/end", "empty_quiet_hours", same)
    _check_zone(hours.timezone, f"{at}/timezone", problems)


def stored_quiet_hours(hours: PersonalQuietHours | None) -> dict[str, Any] | None:
    """Return quiet hours as they are stored."""
    if hours is None:
        return None
    fields = msgspec.structs.asdict(hours)
    return {name: value for name, value in fields.items() if value is not None}


def _email(text: str | None, problems: Collector) -> str | None:
    try:
        return check_email(text) if text is not None else None
    except AddressProblem as problem:
        problems.add("/email", "invalid_email", str(problem))
        return None


def _phone(text: str | None, problems: Collector) -> str | None:
    try:
        return check_phone(text) if text is not None else None
    except AddressProblem as problem:
        problems.add("/phone", "invalid_phone", str(problem))
        return None


def _check_zone(zone: str | None, pointer: str, problems: Collector) -> None:
    try:
        if zone is not None:
            timing.parse_zone(zone)
    except timing.TimeProblem as problem:
        problems.add(pointer, problem.code, str(problem))
