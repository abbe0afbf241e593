"""The changelog of a release: what is checked, and how its section is begun. Pure."""

import re
from collections.abc import Iterator
from datetime import date

from .versions import Version

_HEADING = re.compile(r"^## (.*)$", re.MULTILINE)
_RELEASED = re.compile(r"\[(\S+)\] - (\d{4}-\d{2}-\d{2})")
UNRELEASED = "[Unreleased]"


def with_release(text: str, *, version: Version, day: date) -> str:
    """Return a changelog whose unreleased changes are those of a version.

    Raises ValueError if it has the version already, or nothing that is unreleased.
    """
    sections = dict(_sections(text))
    if not sections.get(UNRELEASED, "").strip():
        raise ValueError("CHANGELOG.md has nothing under Unreleased")
    if any(title.startswith(f"[{version}]") for title in sections):
        raise ValueError(f"CHANGELOG.md has {version} already")
    heading = f"## {UNRELEASED}\n"
    return text.replace(heading, f"{heading}\n## [{version}] - {day.isoformat()}\n", 1)


def problems(text: str, *, version: Version, today: date) -> Iterator[str]:
    """Yield why a changelog isn't that of a version which is released today."""
    sections = list(_sections(text))
    titles = [title for title, _ in sections]
    if titles[:1] != [UNRELEASED]:
        yield "CHANGELOG.md doesn't begin with Unreleased."
        return
    if sections[0][1].strip():
        yield "CHANGELOG.md has changes under Unreleased: `make version` moves them to the version."
    released = [_RELEASED.fullmatch(title) for title in titles[1:]]
    if not released or released[0] is None or released[0][1] != str(version):
        yield f"CHANGELOG.md has no section `## [{version}] - {today.isoformat()}` first."
        return
    if not sections[1][1].strip():
        yield f"CHANGELOG.md says nothing of {version}."
    yield from _wrong_dates([found[2] for found in released if found], today=today)


def _wrong_dates(dates: list[str], *, today: date) -> Iterator[str]:
    try:
        days = [date.fromisoformat(text) for text in dates]
    except ValueError as error:
        yield f"CHANGELOG.md has a wrong date: {error}."
        return
    if days[0] > today:
        yield f"CHANGELOG.md has a date that has yet to come: {days[0]}."
    if days != sorted(days, reverse=True):
        yield "CHANGELOG.md has a version that is older than the one below it."


def _sections(text: str) -> Iterator[tuple[str, str]]:
    _, *parts = _HEADING.split(text)
    yield from zip(parts[::2], parts[1::2], strict=True)
