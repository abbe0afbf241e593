"""Types that are managed by code, and what staff change of them in an emergency."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from domain.states import ManagedBy
from notifications.documents.catalog import EmergencyChangeDocument

MAX_CHANGES = 20
"""The last ones of a type are kept."""


def is_managed_by_code(document: Mapping[str, Any]) -> bool:
    """Return whether a type is changed by files that are pushed, and by staff in emergencies."""
    return document.get("managed_by") == ManagedBy.CODE


def unpushed(document: Mapping[str, Any]) -> Sequence[EmergencyChangeDocument]:
    """Return what staff have changed since the last push of its files, the oldest first."""
    changes: Sequence[EmergencyChangeDocument] = document.get("emergency_changes") or ()
    return [change for change in changes if change.get("pushed_at") is None]


def pushed(document: Mapping[str, Any], *, now: datetime) -> list[EmergencyChangeDocument]:
    """Return all changes of a type as they are once its files are pushed."""
    changes: Sequence[EmergencyChangeDocument] = document.get("emergency_changes") or ()
    return [{**change, "pushed_at": change.get("pushed_at") or now} for change in changes]
