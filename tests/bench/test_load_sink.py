"""The provider of the load benchmarks: its limits, and what it logs."""

import re
from pathlib import Path

from bench.load.sink import (
    TIMED_ADDRESS,
    Admission,
    Arrival,
    Limits,
    LoadSink,
    Sample,
    timed_address,
)


def test_latency_changes_at_its_time() -> None:
    limits = Limits(latencies=((0, 0.05), (10, 2.0), (20, 0.05)))
    assert [limits.latency(at) for at in (0, 9.9, 10, 19.9, 20, 99)] == [
        0.05,
        0.05,
        2,
        2,
        0.05,
        0.05,
    ]


def test_requests_above_the_rate_are_refused_until_the_next_second() -> None:
    admission = Admission(Limits(per_second=2))
    refusals = [admission.refuse(now) for now in (7.1, 7.2, 7.3, 7.9, 8.0)]
    refusal = b"X-RateLimit-Reset: 8\r\nRetry-After: 1\r\n"
    assert refusals == [None, None, refusal, refusal, None]


def test_requests_beyond_those_at_once_are_refused() -> None:
    admission = Admission(Limits(concurrent=2))
    assert [admission.refuse(1.0) for _ in range(3)] == [None, None, b""]
    admission.in_flight -= 1
    assert admission.refuse(1.0) is None


def test_address_tells_kind_and_due_time() -> None:
    body = b'{"email": "%b"}' % timed_address("critical", due_at=12.5, number=7).encode()
    found = re.search(TIMED_ADDRESS, body)
    assert found is not None
    assert (found[1], found[2]) == (b"critical", b"12500")


def test_logs_are_read_back(tmp_path: Path) -> None:
    sink = LoadSink(folder=tmp_path, port=1)
    (tmp_path / "samples.jsonl").write_text(
        '{"at": 3.5, "in_flight": 4, "accepted": 2, "refused": 1}\n'
    )
    (tmp_path / "arrivals.txt").write_text("mail 1000 1.250\ncritical 2000 2.500\n")
    assert sink.samples() == [Sample(3.5, 4, 2, 1)]
    assert sink.arrivals() == [Arrival("mail", 1.0, 1.25), Arrival("critical", 2.0, 2.5)]
    assert sink.arrivals()[0].wait == 0.25


def test_reader_returns_each_arrival_once(tmp_path: Path) -> None:
    log = tmp_path / "arrivals.txt"
    log.write_text("mail 1000 1.250\nmail 20")
    reader = LoadSink(folder=tmp_path, port=1).arrival_reader()
    assert reader.read_new() == [Arrival("mail", 1.0, 1.25)]
    assert reader.read_new() == []
    log.write_text("mail 1000 1.250\nmail 2000 2.500\n")
    assert reader.read_new() == [Arrival("mail", 2.0, 2.5)]
