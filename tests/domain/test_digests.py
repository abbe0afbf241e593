"""Windows of digests: their ends in local time, across clock changes."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from domain.digests import (
    Every,
    Schedule,
    carrier_id,
    group_id,
    next_time,
    scheduled_id,
    window_end,
)
from tests.support.tables import each_case

LISBON = ZoneInfo("Europe/Lisbon")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def daily(clock: str, *days: int) -> Schedule:
    return Schedule(every=Every.DAY, at=time.fromisoformat(clock), days=frozenset(days))


@each_case(
    "schedule, now, expected",
    [
        (daily("18:00"), "2026-12-01T17:59:59", "2026-12-01T18:00"),
        (daily("18:00"), "2026-12-01T18:00", "2026-12-02T18:00"),
        # Friday to Monday.
        (daily("18:00", 0, 1, 2, 3, 4), "2026-12-04T19:00", "2026-12-07T18:00"),
        (Schedule(every=Every.WEEK, at=time(9)), "2026-12-02T10:00", "2026-12-07T09:00"),
        (Schedule(every=Every.HOUR, at=time(0, 15)), "2026-12-01T10:15", "2026-12-01T11:15"),
        (Schedule(every=Every.HOUR, at=time(0, 15)), "2026-12-01T10:14:59", "2026-12-01T10:15"),
        # 01:30 doesn't exist on 29 March: the first instant after the gap.
        (daily("01:30"), "2026-03-28T12:00", "2026-03-29T01:00"),
        # 01:30 occurs twice on 25 October: only the first one counts.
        (daily("01:30"), "2026-10-24T12:00", "2026-10-25T00:30"),
        (daily("01:30"), "2026-10-25T00:30", "2026-10-26T01:30"),
    ],
)
def test_schedule_ends_a_window_at_the_next_local_time(
    schedule: Schedule, now: str, expected: str
) -> None:
    assert next_time(schedule, now=at(now), zone=LISBON) == at(expected)


def test_hourly_schedule_has_the_minute_of_the_zone() -> None:
    kathmandu = ZoneInfo("Asia/Kathmandu")  # UTC+5:45
    found = next_time(
        Schedule(every=Every.HOUR, at=time(0, 0)), now=at("2026-12-01T10:20"), zone=kathmandu
    )
    assert found == at("2026-12-01T11:15")


def test_schedule_has_its_own_zone_or_that_of_the_recipient() -> None:
    now, six = at("2026-12-01T12:00"), time(18)
    own = Schedule(every=Every.DAY, at=six, zone="Asia/Tokyo")
    assert window_end(own, now=now, recipient_zone="Europe/Lisbon") == at("2026-12-02T09:00")
    theirs = Schedule(every=Every.DAY, at=six)
    assert window_end(theirs, now=now, recipient_zone="Asia/Tokyo") == at("2026-12-02T09:00")
    half_hour = timedelta(minutes=30)
    assert window_end(half_hour, now=now, recipient_zone="UTC") == now + half_hour


def test_ids_follow_from_the_group_and_the_window() -> None:
    group, end = group_id("ada", "shop"), at("2026-12-01T18:00")
    digest_id = scheduled_id(group, ends_at=end, number=0)
    assert digest_id == scheduled_id(group, ends_at=end, number=0)
    others = {
        scheduled_id(group, ends_at=end, number=1),
        scheduled_id(group, ends_at=end + timedelta(days=1), number=0),
        scheduled_id(group_id("adas", "hop"), ends_at=end, number=0),
        carrier_id(digest_id),
    }
    assert len(others | {digest_id}) == 5
    assert {len(each) for each in others} == {24}
