"""Filters of MongoDB as text for storage. Their times may be relative to each use."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import json_util
from bson.json_util import JSONMode, JSONOptions

_JSON = JSONOptions(json_mode=JSONMode.CANONICAL, tz_aware=True, tzinfo=UTC)
_AGO = "$secondsAgo"


class Ago(datetime):
    """A time in a filter that a stored filter keeps as its distance from now."""

    distance = timedelta()


def ago(distance: timedelta, *, now: datetime) -> Ago:
    """Return the time that is ``distance`` before now."""
    at = now - distance
    found = Ago.combine(at.date(), at.timetz())
    found.distance = distance
    return found


def dump_match(match: Mapping[str, Any]) -> str:
    """Return a filter as text, since MongoDB forbids operators as field names."""
    return json_util.dumps(_with_distances(match), json_options=_JSON)


def load_match(text: str, *, now: datetime) -> dict[str, Any]:
    """Return a stored filter, with its relative times counted back from ``now``."""
    match: dict[str, Any] = _with_times(json_util.loads(text, json_options=_JSON), now)
    return match


def _with_distances(value: Any) -> Any:
    if isinstance(value, Ago):
        return {_AGO: int(value.distance.total_seconds())}
    if isinstance(value, Mapping):
        return {name: _with_distances(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_with_distances(item) for item in value]
    return value


def _with_times(value: Any, now: datetime) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_AGO}:
            return now - timedelta(seconds=value[_AGO])
        return {name: _with_times(item, now) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_times(item, now) for item in value]
    return value
