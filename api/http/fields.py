"""Field types and structures that several resources share."""

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from domain import time
from notifications.validation import ProblemCollector

_LANGUAGE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*", re.ASCII)
_LOCAL_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)
Language = Annotated[str, Meta(max_length=35, examples=["pt-BR"])]
TimeZoneName = Annotated[str, Meta(max_length=64, examples=["Europe/Lisbon"])]
LocalTime = Annotated[str, Meta(max_length=5, examples=["22:00"])]


class QuietHours(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A daily span of local time: start included, end not."""

    enabled: bool
    start: LocalTime = "22:00"
    end: LocalTime = "07:00"
    timezone: TimeZoneName | None = None
    """IANA name; left out: that of whose quiet hours these are."""


def check_language(language: str | None, pointer: str, problems: ProblemCollector) -> None:
    """Note a language that cannot be."""
    if language is not None and not _LANGUAGE.fullmatch(language):
        problems.add(pointer, "invalid_language", "Expected a language such as pt or pt-BR.")


def check_time_zone(time_zone: str | None, pointer: str, problems: ProblemCollector) -> None:
    """Note a time zone that there is not."""
    try:
        if time_zone is not None:
            time.parse_zone(time_zone)
    except time.InvalidTimeError as problem:
        problems.add(pointer, problem.code, str(problem))


def check_quiet_hours(hours: QuietHours, problems: ProblemCollector) -> None:
    """Note what is wrong with quiet hours, which stand at ``/quiet_hours``."""
    pointer, times = "/quiet_hours", {"start": hours.start, "end": hours.end}
    invalid = [name for name, text in times.items() if not _LOCAL_TIME.fullmatch(text)]
    for name in invalid:
        problems.add(f"{pointer}/{name}", "invalid_time", "Expected a time of day such as 22:00.")
    if not invalid and hours.start == hours.end:
        detail = "Quiet hours cannot start when they end."
        problems.add(f"{pointer}/end", "empty_quiet_hours", detail)
    check_time_zone(hours.timezone, f"{pointer}/timezone", problems)


class UpdatedView(msgspec.Struct, kw_only=True, frozen=True):
    """How many notifications were changed."""

    updated: int
