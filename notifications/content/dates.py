"""Reads the dates of a template's data, and writes them by the directives of Ruby.

Liquid's ``date`` is Ruby's ``Time.parse`` and ``Time#strftime``. Ruby guesses at what it can't
read: it finds a day in ``3.14`` and in ``room 12b``. Here a text must be a date from its start to
its end, without a year of two digits among numbers alone: a text that is shown as it is does less
harm than a wrong date.
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from datetime import date as calendar_date
from functools import partial
from typing import Any

from domain.time import utc_now

MAX_DATE_LENGTH = 100  # Characters of a text parsed as a date, and of a date format
MAX_WIDTH = 100  # Characters of a directive's field
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTH_NAMES = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_MONTHS = [name[:3].lower() for name in _MONTH_NAMES]
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY = r"(?P<{0}>\d{{1,2}})(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:\d{4}|\d{2})(?![\d:/.-])"
_FORMS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.ASCII)
    for name, pattern in {
        "weekday": r"(?:mon|tue|tues|wed|wednes|thu|thur|thurs|fri|sat|satur|sun)(?:day)?\b\.?",
        "iso": r"(?P<y>\d{4})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<d>\d{1,2})(?![\d/.-])",
        "compact": r"(?P<y>\d{4})(?P<m>\d\d)(?P<d>\d\d)(?!\d)",
        # With four digits of the year, the day is first, as Ruby reads it.
        "european": r"(?P<d>\d{1,2})(?P<s>[-/.])(?P<m>\d{1,2})(?P=s)(?P<y>\d{4})(?![\d/.-])",
        "month_and_year": r"(?P<m>\d{1,2})/(?P<y>\d{4})(?![\d/.-])",
        "year_first": rf"(?P<y>\d{{4}})[\s-](?P<b>{_MONTH})[\s-](?P<d>\d{{1,2}})(?![\d:])",
        "day_first": (
            rf"{_DAY.format('d')}[\s-]*(?:of\s+)?(?P<b>{_MONTH})(?:[\s,-]*'?(?P<y>{_YEAR}))?"
        ),
        "month_first": (
            rf"(?P<b>{_MONTH})[\s-]*(?:{_DAY.format('d')}(?![\d:])(?:[\s,-]+(?P<y>{_YEAR}))?"
            r"|,?\s*(?P<y2>\d{4})(?![\d:]))"
        ),
        "clock": (
            r"(?P<H>\d{1,2})[:h](?P<M>\d\d)(?::(?P<S>\d\d)(?:[.,](?P<f>\d{1,12}))?)?"
            r"(?!\d)(?:\s*(?P<p>[ap])\.?m\b\.?)?"
        ),
        "hour": r"(?P<H>\d{1,2})\s*(?P<p>[ap])\.?m\b\.?",
        "compact_clock": r"(?P<H>\d\d)(?:(?P<M>\d\d)(?P<S>\d\d)?)?(?!\d)",
        "zone": (
            r"(?:(?P<utc>z|utc|gmt)\b|(?=[+-]))(?:(?P<sign>[+-])(?P<h>\d{1,2})(?::?(?P<min>\d\d))?)?"
            r"(?!\d)|(?P<name>[a-z]{2,4}t)\b"
        ),
        "year": r"(?P<y>\d{4})(?!\d)",
    }.items()
}
_DATES = ("iso", "compact", "european", "month_and_year", "year_first", "day_first", "month_first")
_SEPARATOR = re.compile(r"[\s,]*(?:\bat\s+|t(?=\d))?\s*", re.ASCII)
_COMMENT = re.compile(r"\s*\([^()]*\)\Z")
_OFFSETS = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7}
"""The names of zones in RFC 822, in hours. Other names have several meanings."""
_NOON, _MIDNIGHT, _SIXTY = 12, (24, 0, 0), 60
_FIRST_YEAR_OF_1900 = 69
"""Of years in two digits beside the name of a month, as POSIX reads them."""
_DIRECTIVE = re.compile(r"%([-0^#_]*)(:{0,3})(\d*)([EO]?)([A-Za-z%+])", re.ASCII)
_COMPOSED = {
    "c": "%a %b %e %H:%M:%S %Y",
    "D": "%m/%d/%y",
    "x": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "T": "%H:%M:%S",
    "X": "%H:%M:%S",
    "R": "%H:%M",
    "r": "%I:%M:%S %p",
    "v": "%e-%^b-%Y",
    "+": "%a %b %e %H:%M:%S %Z %Y",
}
_LOWERED = frozenset("pZ")
"""Directives of which ``#`` makes small letters."""


def read_date(value: Any) -> datetime | None:
    """Return a date, or None if a value is no date. A whole number is a timestamp."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, calendar_date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        if isinstance(value, str):
            return _read_text(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _read_text(text: str) -> datetime | None:
    if len(text) > MAX_DATE_LENGTH or not text.isascii():
        return None
    if text.isdigit():
        return datetime.fromtimestamp(int(text), UTC)
    plain = _COMMENT.sub("", text.strip().lower())
    if plain in ("now", "today"):
        return utc_now()
    return _Reader(plain).read()


class _Reader:
    """Reads a text part by part. Each part of a date is there once, and nothing else."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._given: dict[str, re.Match[str]] = {}

    def read(self) -> datetime | None:
        while self._at < len(self._text):
            if not self._read_part():
                return None
            self._at = self._end_of_separator()
        return self._build()

    def _end_of_separator(self) -> int:
        found = _SEPARATOR.match(self._text, self._at)
        return found.end() if found else self._at

    def _read_part(self) -> bool:
        """Read the next part. The names of what it is are in the order of certainty."""
        given = self._given
        after_date = "date" in given and self._text[self._at - 1 : self._at] == "t"
        kinds = {
            "weekday": ("weekday",),
            "clock": ("clock", "hour", *(("compact_clock",) if after_date else ())),
            "date": _DATES,
            "zone": ("zone",) if "clock" in given else (),
            "year": ("year",) if {"clock", "date"} <= given.keys() else (),
        }
        for kind, forms in kinds.items():
            if kind in given:
                continue
            for form in forms:
                found = _FORMS[form].match(self._text, self._at)
                if found and found.end() > self._at:
                    given[kind] = found
                    self._at = found.end()
                    return True
        return False

    def _build(self) -> datetime | None:
        """Return the date. Raises ValueError if it doesn't exist."""
        given = self._given
        if not {"date", "clock"} & given.keys():
            return None
        if "date" not in given and "zone" in given and given["zone"]["sign"]:
            return None  # 10:00-12:00 are two times of day.
        parts = given["date"].groupdict() if "date" in given else {}
        year = parts.get("y") or parts.get("y2")
        if last := given.get("year"):
            if year:
                return None
            year = last["y"]
        today = utc_now()
        if "date" in given:
            number = parts.get("m")
            month = int(number) if number else _MONTHS.index(parts["b"][:3]) + 1
            day = int(parts.get("d") or 1)
        else:
            month, day = today.month, today.day
        zone = _read_zone(given["zone"].groupdict()) if "zone" in given else UTC
        when = datetime(_full_year(year) if year else today.year, month, day, tzinfo=zone)
        if clock := given.get("clock"):
            when += _read_clock(clock.groupdict())
        return when


def _full_year(digits: str) -> int:
    year = int(digits)
    if len(digits) > len("99"):
        return year
    return year + (2000 if year < _FIRST_YEAR_OF_1900 else 1900)


def _read_clock(parts: Mapping[str, str | None]) -> timedelta:
    """Return the time since midnight. 24:00 is midnight at the end, and second 60 a leap second."""
    hour, minute, second = (int(parts.get(name) or 0) for name in "HMS")
    if half := parts.get("p"):
        if not 1 <= hour <= _NOON:
            raise ValueError("no such hour")
        hour = hour % _NOON + (_NOON if half == "p" else 0)
    if minute >= _SIXTY or second > _SIXTY or (hour, minute, second) > _MIDNIGHT:
        raise ValueError("no such time of day")
    fraction = (parts.get("f") or "")[:6].ljust(6, "0")
    return timedelta(hours=hour, minutes=minute, seconds=second, microseconds=int(fraction))


def _read_zone(parts: Mapping[str, str | None]) -> timezone:
    """Return an offset. A name that has several counts as UTC: the text's clock is kept."""
    if sign := parts["sign"]:
        offset = timedelta(hours=int(parts["h"] or 0), minutes=int(parts["min"] or 0))
        return timezone(-offset if sign == "-" else offset)
    hours = _OFFSETS.get(parts["name"] or "")
    return UTC if hours is None else timezone(timedelta(hours=hours))


def _aware(when: datetime) -> datetime:
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def _zone_name(when: datetime) -> str:
    """Return the abbreviation of a time's zone.

    It is empty for an offset, which has none, and UTC for a time without a zone.
    """
    if when.tzinfo is None:
        return "UTC"
    if isinstance(when.tzinfo, timezone) and when.tzinfo is not UTC:
        return ""
    return when.tzname() or ""


_NUMBERS: Mapping[str, tuple[int, str, Callable[[datetime], int]]] = {
    "Y": (4, "0", lambda at: at.year),
    "C": (2, "0", lambda at: at.year // 100),
    "y": (2, "0", lambda at: at.year % 100),
    "m": (2, "0", lambda at: at.month),
    "d": (2, "0", lambda at: at.day),
    "e": (2, " ", lambda at: at.day),
    "j": (3, "0", lambda at: at.timetuple().tm_yday),
    "H": (2, "0", lambda at: at.hour),
    "k": (2, " ", lambda at: at.hour),
    "I": (2, "0", lambda at: at.hour % 12 or 12),
    "l": (2, " ", lambda at: at.hour % 12 or 12),
    "M": (2, "0", lambda at: at.minute),
    "S": (2, "0", lambda at: at.second),
    "u": (1, "0", lambda at: at.isoweekday()),
    "w": (1, "0", lambda at: at.isoweekday() % 7),
    "G": (4, "0", lambda at: at.isocalendar().year),
    "g": (2, "0", lambda at: at.isocalendar().year % 100),
    "V": (2, "0", lambda at: at.isocalendar().week),
    "U": (2, "0", lambda at: (at.timetuple().tm_yday + 6 - at.isoweekday() % 7) // 7),
    "W": (2, "0", lambda at: (at.timetuple().tm_yday + 6 - at.weekday()) // 7),
    "s": (1, "0", lambda at: int(_aware(at).timestamp() // 1)),
    "Q": (1, "0", lambda at: int(_aware(at).timestamp() * 1_000 // 1)),
}
"""Directives of numbers: their digits, what they are padded with, and the number."""
_WORDS: Mapping[str, Callable[[datetime], str]] = {
    "A": lambda at: _DAY_NAMES[at.weekday()],
    "a": lambda at: _DAY_NAMES[at.weekday()][:3],
    "B": lambda at: _MONTH_NAMES[at.month - 1],
    "b": lambda at: _MONTH_NAMES[at.month - 1][:3],
    "h": lambda at: _MONTH_NAMES[at.month - 1][:3],
    "p": lambda at: "AM" if at.hour < _NOON else "PM",
    "P": lambda at: "am" if at.hour < _NOON else "pm",
    "Z": _zone_name,
    "n": lambda _at: "\n",
    "t": lambda _at: "\t",
    "%": lambda _at: "%",
}


def write_date(when: datetime, pattern: str) -> str:
    """Return a date in a format of Ruby's ``strftime``. What is no directive is written as it is.

    A time without a zone is UTC.
    """
    return _DIRECTIVE.sub(partial(_write, when), pattern)


def _write(when: datetime, directive: re.Match[str]) -> str:
    flags, colons, digits, _, name = directive.groups()
    width = int(digits or 0)
    if width > MAX_WIDTH or (colons and name != "z"):
        return directive[0]
    if name == "z":
        return _write_offset(when, flags, colons, width)
    if name in "LN":
        places = width or (3 if name == "L" else 9)
        return f"{when.microsecond:06}"[:places].ljust(places, "0")
    if name in _NUMBERS:
        least, padding, read = _NUMBERS[name]
        text = str(read(when))
        return text if "-" in flags else text.rjust(width or least, _padding(flags) or padding)
    if name in _COMPOSED:
        text = write_date(when, _COMPOSED[name])
    elif name in _WORDS:
        text = _WORDS[name](when)
    else:
        return directive[0]
    if "#" in flags and name in _LOWERED:
        text = text.lower()
    elif "^" in flags or "#" in flags:
        text = text.upper()
    return text if "-" in flags or not text else text.rjust(width, _padding(flags) or " ")


def _padding(flags: str) -> str:
    """Return what the last flag for padding asks for."""
    return next((" " if flag == "_" else flag for flag in reversed(flags) if flag in "_0"), "")


def _write_offset(when: datetime, flags: str, colons: str, width: int) -> str:
    """Return an offset such as ``+0200``; with colons ``+02:00``, ``+02:00:00``, and ``+02``."""
    seconds = round((_aware(when).utcoffset() or timedelta()).total_seconds())
    sign = "-" if seconds < 0 else "+"
    hours, rest = divmod(abs(seconds), 3_600)
    minutes, second = divmod(rest, 60)
    between = ":" if colons else ""
    tail = f"{between}{minutes:02}"
    if colons == "::":
        tail += f":{second:02}"
    elif colons == ":::":
        tail = f":{minutes:02}:{second:02}" if second else tail if minutes else ""
    if "-" in flags:
        return f"{sign}{hours}{tail}"
    if _padding(flags) == " ":
        return f"{sign}{hours}{tail}".rjust(max(width, len(tail) + 3))
    return sign + f"{hours:02}{tail}".rjust(width - 1, "0")
