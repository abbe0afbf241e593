"""Formats times, durations, shares, and counts for all pages."""

from datetime import datetime, timedelta

from django.utils.html import format_html
from django.utils.safestring import SafeString

EMPTY = "-"
_MINUTE = 60
_UNITS = (("d", 86_400), ("h", 3_600), ("min", _MINUTE))


def timestamp(at: datetime | None, *, empty: str = EMPTY) -> SafeString | str:
    """Return a time element in UTC. ``times.js`` converts it to the browser's time zone."""
    return empty if at is None else _time_element(at, f"{at:%Y-%m-%d %H:%M}", "")


def precise(at: datetime) -> SafeString:
    """Return an instant to the second: the browser's time zone, and UTC beside it."""
    return format_html(
        '<span class="moment">{}<span class="quiet utc-beside">{} UTC</span></span>',
        _time_element(at, f"{at:%Y-%m-%d %H:%M:%S}", " data-seconds"),
        f"{at:%H:%M:%S}",
    )


def utc_text(at: datetime) -> str:
    """Return an instant as text, for places without a time element: "2026-12-01 09:00 UTC"."""
    return f"{at:%Y-%m-%d %H:%M} UTC"


def clock(at: datetime, *, now: datetime) -> SafeString:
    """Return a time element, without the date if ``at`` is today."""
    text = f"{at:%H:%M}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M}"
    return _time_element(at, text, " data-clock")


def duration(seconds: float) -> str:
    """Return a duration in its largest whole unit: "15 s", "5 min", "3 d"."""
    for unit, length in _UNITS:
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"


def runs_every(interval: timedelta | None) -> str:
    """Return how often a periodic task runs by its schedule, exactly: "runs every 90 s"."""
    if interval is None:
        return "not scheduled"
    seconds = interval.total_seconds()
    length = next((length for _, length in _UNITS if seconds >= length), 1)
    return f"runs every {f'{seconds:g} s' if seconds % length else duration(seconds)}"


def latency(seconds: float | None) -> str:
    """Return a duration with milliseconds if under 1 s: "84 ms", "1.2 s", "5 min"."""
    if seconds is None:
        return EMPTY
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < _MINUTE else duration(seconds)


def percent(share: float | None) -> str:
    """Return a share as a percentage. Less than 1 is never rounded to "100 %"."""
    if share is None:
        return EMPTY
    return "100 %" if share == 1 else f"{min(share * 100, 99.9):.1f} %"


def count_of(count: int, noun: str) -> str:
    """Return a count with its noun: "1 device", "1,200 devices"."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def _time_element(at: datetime, text: str, attribute: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{} UTC"{}>{}</time>',
        f"{at:%Y-%m-%dT%H:%M:%SZ}",
        f"{at:%Y-%m-%d %H:%M:%S}",
        attribute,
        text,
    )
