"""The daily period in which a recipient gets only critical notifications. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from .time import InvalidTimeError, parse_wall_clock, parse_zone, resolve_local


@dataclass(frozen=True, slots=True)
class QuietHours:
    """A daily quiet period in local time, from ``start`` (inclusive) to ``end`` (exclusive)."""

    start: time
    end: time
    zone: ZoneInfo

    @classmethod
    def parse(cls, *, start: str, end: str, zone: str) -> "QuietHours":
        """Parse times of day such as ``22:00``, and a time zone. Raises InvalidTimeError."""
        begins, ends = parse_wall_clock(start), parse_wall_clock(end)
        if begins == ends:
            raise InvalidTimeError("empty_quiet_hours", "`start` and `end` must differ.")
        return cls(start=begins, end=ends, zone=parse_zone(zone))

    def until(self, now: datetime) -> datetime | None:
        """Return when the current quiet hours end, or None outside quiet hours."""
        local = now.astimezone(self.zone)
        clock = local.time()
        if self.start < self.end:
            is_quiet, days = self.start <= clock < self.end, 0
        else:
            is_quiet, days = clock >= self.start or clock < self.end, int(clock >= self.start)
        if not is_quiet:
            return None
        end = datetime.combine(local.date() + timedelta(days=days), self.end)
        first = resolve_local(end, self.zone).at
        # If the first occurrence of the end is over, a clock change repeats it.
        return first if first > now else end.replace(tzinfo=self.zone, fold=1).astimezone(UTC)
