"""The pure parts of the load benchmarks: percentiles, growth, tables, logs, and charts."""

import math
from datetime import UTC, datetime
from io import StringIO
from xml.etree import ElementTree

import pytest

from bench.load import burst, chart, hour, stream_clients, tables, window
from bench.load.chart import Line, Panel
from bench.load.hour import MemorySample, Minute
from bench.load.sink import Arrival, Sample

AT_TEN = datetime(2026, 1, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(("percent", "value"), [(50, 5), (99, 10), (99.9, 10), (10, 1), (1, 1)])
def test_percentile_is_a_measured_value(percent: float, value: float) -> None:
    assert tables.percentile_of([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], percent) == value


def test_percentile_of_nothing_meets_no_goal() -> None:
    assert tables.percentile_of([], 99) == math.inf


def test_table_has_a_line_for_each_row() -> None:
    assert tables.markdown_table(["minute", "p50"], [[1, "0.1"]]) == (
        "| minute | p50 |\n| --- | ---: |\n| 1 | 0.1 |\n"
    )


def test_growth_compares_the_end_with_the_memory_after_the_warm_up() -> None:
    memory = [
        MemorySample(float(at), {"worker": 50 if at < 600 else 100}) for at in range(0, 3000, 5)
    ]
    memory += [MemorySample(float(at), {"worker": 103}) for at in range(3000, 3600, 5)]
    assert hour.growth(memory, start=600) == {"worker": pytest.approx(3)}


@pytest.mark.parametrize(("minutes", "seconds"), [(60, 600), (5, 150)])
def test_short_run_counts_its_second_half(minutes: float, seconds: float) -> None:
    assert hour.memory_start(minutes) == seconds


def test_hour_has_a_row_for_each_minute() -> None:
    row = Minute(
        minute=1,
        mails=16_980,
        p50=0.1,
        p99=0.5,
        critical_p50=0.05,
        critical_p99=0.2,
        slowest=1.5,
        memory={"worker": 150.4},
        index_megabytes={
            "notifications.a": 1.0,
            "notifications.b": 0.5,
            "delivery_attempts.c": 2.0,
        },
    )
    heading, _, line = hour.table([row]).splitlines()
    assert heading.endswith("| worker | indexes of notifications | indexes of delivery_attempts |")
    assert line == "| 1 | 16,980 | 0.10 | 0.50 | 0.05 | 0.20 | 1.50 | 150 | 1.5 | 2.0 |"


def test_critical_mails_count_from_the_due_time_to_the_last_timer() -> None:
    start = AT_TEN.timestamp()
    found = [Arrival("critical", start + shift, start + shift + 0.5) for shift in (-1, 0, 5, 9)]
    other = Arrival("timer", start, start + 3)
    waits = burst.during([*found, other], kind="critical", start=AT_TEN, end=start + 5)
    assert waits == [0.5, 0.5]


def test_event_that_arrives_in_pieces_counts_once() -> None:
    log = StringIO()
    client = stream_clients._Client("127.0.0.1", 1, "token", log)
    event = b'id: 0123456789abcdef01234567\ndata: {"subject":"sent 7 99500"}\n\n'
    for piece in (event[:40], event[40:70], event[70:] + event[:10]):
        client._receive(piece)
    lines = log.getvalue().splitlines()
    assert [line.split()[0::2] for line in lines] == [["event", "7"]]
    assert client._last_id == b"0123456789abcdef01234567"


def test_log_of_stream_clients_tells_openings_and_waits() -> None:
    subject = stream_clients.subject(7, at=99.5)
    found = stream_clients.SUBJECT.search(f'"subject":"{subject}"'.encode())
    assert found is not None
    event = f"event 100.000 {found[1].decode()} {found[2].decode()}"
    lines = ["open 90.0", "open 91.0", "end 95.0", "refused 96.0 503", event, event]
    log = stream_clients.read_log(lines)
    assert (log.open_count, log.opened, log.refusals) == (1, [90.0, 91.0], ["503"])
    assert (log.received, log.waits) == ({7}, [(99.5, 0.5)])


def test_chart_has_a_line_of_points_per_second() -> None:
    samples = [Sample(at=10 + step / 4, in_flight=step, accepted=5, refused=1) for step in range(8)]
    accepted, refused, in_flight, allowed = window.chart_lines(samples, allowed=20)
    assert accepted.points == [(0.0, 20.0), (1.0, 20.0)]
    assert refused.points == [(0.0, 4.0), (1.0, 4.0)]
    assert in_flight.points == [(0.0, 3.0), (1.0, 7.0)]
    assert (allowed.points, allowed.is_dashed) == ([(0.0, 20.0), (1.0, 20.0)], True)


def test_chart_is_well_formed_and_escapes_its_texts() -> None:
    lines = (Line(label="a < b", color="#000000", points=[(0, 1), (10, 2)]),)
    svg = chart.render([Panel(title="R & D", lines=lines)] * 2, caption="on <this> machine")
    root = ElementTree.fromstring(svg)
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts.count("R & D") == 2
    assert "a < b" in texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 2


def test_chart_without_points_is_drawn() -> None:
    empty = Panel(title="nothing", lines=(Line(label="none", color="#000000", points=()),))
    assert ElementTree.fromstring(chart.render([empty], caption="")).tag.endswith("svg")
