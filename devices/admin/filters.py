"""How the list of devices can be narrowed."""

from datetime import UTC, datetime
from typing import Any

from notifyproject.db.admin_filters import TimeFilter, WordFilter

from ..models import DeactivationReason
from .explanations import PLATFORMS, REASONS

ACTIVE, INACTIVE = "active", "inactive"
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class PlatformFilter(WordFilter):
    """By where the app runs."""

    title = "platform"
    parameter_name = "platform"
    words = tuple((platform.value, words) for platform, words in PLATFORMS.items())


class StandingFilter(WordFilter):
    """By whether anything is pushed to it, and why not."""

    title = "state"
    parameter_name = "state"
    words = (
        (ACTIVE, "Active"),
        (INACTIVE, "Off, for any reason"),
        *((reason.value, f"Off: {words.lower()}") for reason, words in REASONS.items()),
    )

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it is active, or off for the reason."""
        if word == ACTIVE:
            # Nearly all are: they are read in the list's order, by its index.
            return {"is_active": True, "last_seen": {"$gte": _LONG_AGO}}
        # Reasons are named one by one: then each is read by the index, in the list's order.
        reasons = [reason.value for reason in DeactivationReason] if word == INACTIVE else [word]
        return {"deactivation_reason": {"$in": reasons}}


class SeenFilter(TimeFilter):
    """By when its app was last seen."""

    title = "last seen"
    parameter_name = "seen"
    path = "last_seen"
