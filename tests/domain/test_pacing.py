"""When a paced message is sent."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from domain.pacing import LATE, Pacing
from tests.support.tables import each_case

NOON = datetime(2026, 3, 27, 12, tzinfo=UTC)


@each_case("share, minutes", [(0.0, 0), (0.25, 30), (1.0, 120)])
def test_spread_messages_follow_the_share(share: float, minutes: int) -> None:
    pacing = Pacing(begins_at=NOON, spread=timedelta(hours=2))
    assert pacing.time_for(share, zone=UTC) == NOON + timedelta(minutes=minutes)


@each_case(
    "zone, hour, expected",
    [
        ("UTC", 12, "2026-03-27T12:00"),
        ("UTC", 13, "2026-03-27T13:00"),
        ("UTC", 11, "2026-03-28T11:00"),
        ("UTC", 0, "2026-03-28T00:00"),
        ("Asia/Tokyo", 9, "2026-03-28T00:00"),
        ("Asia/Tokyo", 21, "2026-03-27T12:00"),
        ("America/New_York", 9, "2026-03-27T13:00"),
        ("America/New_York", 8, "2026-03-27T12:00"),
        ("Asia/Kolkata", 18, "2026-03-27T12:30"),
        ("Pacific/Kiritimati", 2, "2026-03-27T12:00"),
        ("Pacific/Pago_Pago", 0, "2026-03-28T11:00"),
    ],
)
def test_local_hour_is_the_next_one_of_the_recipient(zone: str, hour: int, expected: str) -> None:
    at = Pacing(begins_at=NOON, local_hour=hour).time_for(0.5, zone=ZoneInfo(zone))
    assert at.strftime("%Y-%m-%dT%H:%M") == expected


@each_case("late, days", [(LATE, 0), (LATE + timedelta(seconds=1), 1)])
def test_start_a_little_after_the_hour_is_on_time(late: timedelta, days: int) -> None:
    at = Pacing(begins_at=NOON + late, local_hour=12).time_for(0, zone=UTC)
    assert at == NOON + timedelta(days=days)


def test_hour_that_a_clock_change_skips_is_the_first_after_it() -> None:
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    at = Pacing(begins_at=before, local_hour=2).time_for(0, zone=ZoneInfo("Europe/Berlin"))
    assert at == datetime(2026, 3, 29, 1, tzinfo=UTC)
