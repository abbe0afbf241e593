"""The names of time zones, in the forms in which systems and people write them. Pure.

IANA's names are compared without regard to case, as its theory file recommends, and old names are
links to new ones. Windows has names of its own, which CLDR maps. A fixed offset of whole hours is a
zone of ``Etc``, whose sign is that of POSIX: ``GMT+02:00`` is ``Etc/GMT-2``.
"""

import re
from functools import cache, lru_cache
from zoneinfo import available_timezones

from babel.core import get_global

_NAMELESS = frozenset({"localtime", "Factory", "posixrules"})
_OFFSET = re.compile(r"(?:utc|gmt)?([+-])(\d{1,2})(?::?(\d\d))?", re.ASCII | re.IGNORECASE)
_ABBREVIATION = re.compile(r"[a-z]{2,5}", re.ASCII | re.IGNORECASE)
_UTC = ("Z", "Coordinated Universal Time")
MAX_LENGTH = 100  # Characters of a name


@cache
def zone_names() -> frozenset[str]:
    """Return the names of all IANA time zones, without those that name no place."""
    return frozenset(available_timezones()) - _NAMELESS


@cache
def _by_key() -> dict[str, str]:
    names = {
        **get_global("windows_zone_mapping"),
        **dict.fromkeys(_UTC, "UTC"),
        **{name: name for name in zone_names()},
    }
    return {_key(name): zone for name, zone in names.items()}


def _key(name: str) -> str:
    return name.strip().lower().replace(" ", "_")


@lru_cache(maxsize=1_024)
def find_zone_name(text: str) -> str | None:
    """Return IANA's name of a time zone, or None for a text that names none or several."""
    if text in zone_names():
        return text
    if len(text) > MAX_LENGTH:
        return None
    found = _by_key().get(_key(text))
    if found is None and (offset := _OFFSET.fullmatch(text.strip())) and not int(offset[3] or 0):
        hours = int(offset[2])
        name = f"Etc/GMT{'-' if offset[1] == '+' else '+'}{hours}" if hours else "UTC"
        return name if name in zone_names() else None
    return found


def first_known_zone(*names: str | None) -> str:
    """Return the first of these IANA names that this version's time zone data has, or ``UTC``.

    Stored names were checked, but the version that stored them can have newer data.
    """
    return next((name for name in names if name in zone_names()), "UTC")


def explain_unknown(text: str) -> str:
    """Return why a text names no time zone, as a sentence."""
    given = text.strip()
    if _OFFSET.fullmatch(given):
        return "An offset of whole hours is a zone; another needs a place such as Asia/Kolkata."
    if _ABBREVIATION.fullmatch(given):
        return "An abbreviation has several meanings. Expected an IANA zone such as Europe/Lisbon."
    if given.lower() in ("etc/unknown", "unknown", "local", "localtime", "factory"):
        return "This names no zone: leave it out, or send an IANA zone such as Europe/Lisbon."
    return "Expected an IANA zone such as Europe/Lisbon."
