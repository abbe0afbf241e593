"""A wrong clock is corrected by MongoDB's."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain, count, repeat
from types import SimpleNamespace
from typing import Self

import pytest
from structlog.testing import capture_logs

from domain.time import utc_now, wall
from notifyproject import clock
from notifyproject.clock import TIMEOUT, ClockChecker, correction
from tests.support.factories.notifications import NOON
from tests.support.threads import at_once

TEN_MINUTES = timedelta(minutes=10)
SOON = 0.01


@pytest.fixture(autouse=True)
def _a_right_clock() -> Iterator[None]:
    yield
    wall.correction = timedelta()


@pytest.mark.parametrize(
    ("off", "took", "expected"),
    [
        (timedelta(), SOON, timedelta()),
        (timedelta(milliseconds=900), SOON, timedelta()),
        (TEN_MINUTES, SOON, TEN_MINUTES),
        (-TEN_MINUTES, SOON, -TEN_MINUTES),
        (timedelta(seconds=1.2), 0.9, timedelta()),
        (timedelta(seconds=1.2), SOON, timedelta(seconds=1.2)),
    ],
    ids=["right", "almost right", "slow", "fast", "perhaps right", "a little slow"],
)
def test_only_a_clearly_wrong_clock_is_corrected(
    off: timedelta, took: float, expected: timedelta
) -> None:
    server_time = NOON + off + timedelta(seconds=took / 2)
    assert correction(sent=NOON, server_time=server_time, round_trip=took) == expected


@pytest.mark.usefixtures("db")
class TestAsking:
    def test_right_clock_is_unchanged(self) -> None:
        with capture_logs() as logs:
            ClockChecker().check_clock()
        assert (wall.correction, logs) == (timedelta(), [])

    def test_wrong_clock_is_corrected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        with capture_logs() as logs:
            ClockChecker().check_clock()
        assert abs(wall.correction + TEN_MINUTES) < timedelta(seconds=2)
        assert abs(utc_now() - (datetime.now(UTC) - TEN_MINUTES)) < timedelta(seconds=2)
        assert [one["event"] for one in logs] == ["clock_corrected"]

    def test_correction_ends_with_the_error(self) -> None:
        wall.correction = -TEN_MINUTES
        ClockChecker().check_clock()
        assert wall.correction == timedelta()

    def test_slow_answer_is_ignored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        ticks = count(step=TIMEOUT + 1)
        monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        ClockChecker().check_clock()
        assert wall.correction == timedelta()

    def test_slow_first_answer_is_repeated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        ticks = chain([0.0, 0.0, 0.0, TIMEOUT + 1], repeat(TIMEOUT + 1))
        monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        ClockChecker().check_clock()
        assert abs(wall.correction + TEN_MINUTES) < timedelta(seconds=2)

    def test_all_threads_wait_for_the_first_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        ours = ClockChecker()

        def corrected() -> timedelta:
            ours.check_clock()
            return wall.correction

        seen = at_once(*[corrected] * 8)
        assert all(abs(one + TEN_MINUTES) < timedelta(seconds=2) for one in seen)

    def test_clock_is_checked_at_intervals(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ours = ClockChecker()
        ours.check_clock()
        fast_by(monkeypatch, TEN_MINUTES)
        ours.check_clock()
        assert wall.correction == timedelta()


def fast_by(monkeypatch: pytest.MonkeyPatch, off: timedelta) -> None:
    """Let this process's clock be wrong."""

    class Fast(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return datetime.now(UTC) + off

    monkeypatch.setattr(clock, "datetime", Fast)
