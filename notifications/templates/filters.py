"""The filters templates have besides Liquid's own."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from liquid.exceptions import FilterArgumentError


def pluralize(value: Any, one: str, many: str) -> str:
    """Return the word for a number of things: ``{{ hours | pluralize: 'hour', 'hours' }}``.

    A number that came as a text counts as the number it is.
    """
    try:
        is_one = not isinstance(value, bool) and float(value) == 1
    except (TypeError, ValueError, OverflowError):
        is_one = False
    return one if is_one else many


def in_zone(value: Any, zone: str = "UTC") -> datetime:
    """Return what the wall clock of a time zone shows at an instant, for the filter ``date``.

    ``{{ start_time | in_zone: recipient.timezone | date: '%H:%M' }}``. An instant is RFC 3339 text,
    or seconds since 1970; without an offset it is UTC.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            instant = datetime.fromtimestamp(value, UTC)
        else:
            given = datetime.fromisoformat(str(value))
            instant = given if given.tzinfo else given.replace(tzinfo=UTC)
        # Without its zone: Liquid remembers dates by what they equal, and the same instant on two
        # clocks is equal.
        return instant.astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError, ZoneInfoNotFoundError):
        raise FilterArgumentError(
            "in_zone wants a time and the name of a zone", token=None
        ) from None


OWN_FILTERS: dict[str, Callable[..., Any]] = {"pluralize": pluralize, "in_zone": in_zone}
