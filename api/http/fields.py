"""Field types and structures that several resources share, with the IDs that examples use."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from domain import time
from domain.stored import struct_from_stored
from notifications.validation import InvalidLanguageError, ProblemCollector, parse_language

_LOCAL_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
EXAMPLE_TIME = "2026-12-01T09:00:00Z"
EXAMPLE_ID = "6745e3f09b1d4c2a7f3e8b51"
EXAMPLE_DATA = {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}
OBJECT_ID_PATTERN = "[0-9a-fA-F]{24}"
NotificationId = Annotated[
    str, Meta(examples=[EXAMPLE_ID], extra_json_schema={"pattern": f"^{OBJECT_ID_PATTERN}$"})
]
UserId = Annotated[str, Meta(examples=["ada"])]
DeviceId = Annotated[str, Meta(examples=["9f2c" * 16])]
TypeSlug = Annotated[str, Meta(examples=["payment_confirmed"])]
TopicName = Annotated[str, Meta(examples=["news"])]
Language = Annotated[str, Meta(max_length=35, examples=["pt-BR"])]
TimeZoneName = Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])]
LocalTime = Annotated[str, Meta(max_length=5, examples=["22:00"])]
Count = Annotated[int, Meta(examples=[3])]
V = TypeVar("V", bound=msgspec.Struct)


def view_of(view: type[V], document: Mapping[str, Any], **computed: Any) -> V:
    """Return a view with its fields from ``document``. ``computed`` fields take precedence."""
    fields = {name: document[name] for name in view.__struct_fields__ if name in document}
    return struct_from_stored(view, {**fields, **computed})


class QuietHours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A daily interval of local time: start included, end excluded."""

    enabled: bool
    start: LocalTime = "22:00"
    end: LocalTime = "07:00"
    timezone: TimeZoneName | None = None  # IANA name; omitted: the zone of the recipient or device


class UpdatedView(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """The number of notifications that changed."""

    updated: Count
    is_complete: Annotated[bool, Meta(examples=[True])] = True
    """False: some are left. Send the same request again. Omitted if true."""


def check_language(language: str | None, pointer: str, problems: ProblemCollector) -> str | None:
    """Return a language tag as its standard writes it. Report an invalid one."""
    try:
        return None if language is None else parse_language(language)
    except InvalidLanguageError as problem:
        problems.add(pointer, "invalid_language", str(problem))
        return None


def check_time_zone(time_zone: str | None, pointer: str, problems: ProblemCollector) -> str | None:
    """Return IANA's name of a time zone. Report an unknown one."""
    try:
        return None if time_zone is None else time.parse_zone(time_zone).key
    except time.InvalidTimeError as problem:
        problems.add(pointer, problem.code, str(problem))
        return None


def check_quiet_hours(hours: QuietHours, problems: ProblemCollector) -> None:
    """Report invalid quiet hours, with pointers below ``/quiet_hours``."""
    pointer, times = "/quiet_hours", {"start": hours.start, "end": hours.end}
    invalid = [name for name, text in times.items() if not _LOCAL_TIME.fullmatch(text)]
    for name in invalid:
        problems.add(f"{pointer}/{name}", "invalid_time", "Expected a time of day such as 22:00.")
    if not invalid and hours.start == hours.end:
        problems.add(f"{pointer}/end", "empty_quiet_hours", "`start` and `end` must differ.")
    check_time_zone(hours.timezone, f"{pointer}/timezone", problems)
