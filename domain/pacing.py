"""When a broadcast notifies each recipient: spread over a time, or at an hour of their day."""

from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from datetime import time as time_of_day

from .time import resolve_local

MIN_SPREAD, MAX_SPREAD = timedelta(minutes=1), timedelta(days=1)
LATE = timedelta(minutes=10)
"""How late a broadcast may begin after the hour and still be on time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How the messages of a broadcast are spread, from ``begins_at``: by one of two ways."""

    begins_at: datetime
    spread: timedelta | None = None
    local_hour: int | None = None
    """0 to 23."""

    def time_for(self, share: float, *, zone: tzinfo) -> datetime:
        """Return a recipient's time, which may be past.

        ``share`` is the recipient's own number from 0 to 1, and the same at each call.
        """
        if self.local_hour is None:
            return self.begins_at + (self.spread or timedelta(0)) * share
        hour = time_of_day(self.local_hour)
        earliest = self.begins_at - LATE
        day = earliest.astimezone(zone).date()
        while (at := resolve_local(datetime.combine(day, hour), zone).at) < earliest:
            day += timedelta(days=1)
        return at
