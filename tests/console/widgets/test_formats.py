"""Times, durations, percentages, and counts."""

from datetime import UTC, datetime, timedelta

from console.widgets import formats
from tests.support.tables import each_case

NOW = datetime(2026, 12, 1, 14, 3, 12, tzinfo=UTC)


def test_timestamp_is_utc_with_a_machine_readable_time() -> None:
    assert formats.timestamp(NOW) == (
        '<time datetime="2026-12-01T14:03:12Z" title="2026-12-01 14:03:12 UTC">'
        "2026-12-01 14:03</time>"
    )
    assert formats.timestamp(None) == "-"
    assert formats.timestamp(None, empty="Never") == "Never"


def test_clock_omits_todays_date() -> None:
    assert " data-clock>14:03</time>" in formats.clock(NOW, now=NOW)
    assert " data-clock>2026-12-02 14:03</time>" in formats.clock(NOW + timedelta(days=1), now=NOW)


@each_case(
    "seconds, text",
    [
        (-5, "0 s"),
        (1, "1 s"),
        (59, "59 s"),
        (60, "1 min"),
        (7_300, "2 h"),
        (86_400, "1 d"),
        (200_000, "2 d"),
    ],
)
def test_duration_has_its_largest_unit(seconds: float, text: str) -> None:
    assert formats.duration(seconds) == text


@each_case("seconds, text", [(None, "-"), (0.084, "84 ms"), (1.23, "1.2 s"), (300, "5 min")])
def test_latency_has_milliseconds(seconds: float | None, text: str) -> None:
    assert formats.latency(seconds) == text


@each_case("share, text", [(None, "-"), (1, "100 %"), (0.9999, "99.9 %")])
def test_percentage_below_all_is_below_100(share: float | None, text: str) -> None:
    assert formats.percent(share) == text


@each_case(
    "count, noun, text", [(1, "device", "1 device"), (1_200, "delivery", "1,200 deliveries")]
)
def test_count_has_its_noun(count: int, noun: str, text: str) -> None:
    assert formats.count_of(count, noun) == text
