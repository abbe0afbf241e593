"""The variables of a reminder that say how far away its event is. Pure.

They are computed at acceptance, which checks the template with them, and again when the message is
sent: quiet hours, retries, digests, and a new send time lie between.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from domain.content import Content

_HOUR, _MINUTE, _GRACE = timedelta(hours=1), timedelta(minutes=1), timedelta(minutes=10)
REMAINING = frozenset({"hours_until_start", "minutes_until_start"})
"""Variables that change with time. A request with its own keeps them."""
EVENT_VARIABLES = REMAINING | {"start_time"}
"""All variables that an event gives."""


def event_variables(event_at: datetime, *, at: datetime) -> Mapping[str, Any]:
    """Return an event's time, and the hours and minutes until then, each at least 1.

    The hours are whole ones that remain: up to ten minutes more are said, since a message takes a
    while, and never half an hour, since a reader would come too late.
    """
    remaining = event_at - at
    return {
        "start_time": format_timestamp(event_at),
        "hours_until_start": max((remaining + _GRACE) // _HOUR, 1),
        "minutes_until_start": max(round(remaining / _MINUTE), 1),
    }


def data_at(content: Content, data: Mapping[str, Any], *, now: datetime) -> Mapping[str, Any]:
    """Return template variables with the time that remains now."""
    if content.event_at is None:
        return data
    return {**data, **event_variables(content.event_at, at=now)}


def format_timestamp(instant: datetime) -> str:
    """Return an instant as RFC 3339 text in UTC, with milliseconds."""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
