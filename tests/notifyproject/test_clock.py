"""A process whose clock is wrong goes by MongoDB's."""

import threading
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
def test_what_is_plainly_wrong_is_corrected(
    off: timedelta, took: float, expected: timedelta
) -> None:
    told = NOON + off + timedelta(seconds=took / 2)
    assert correction(sent=NOON, server_time=told, round_trip=took) == expected


@pytest.mark.usefixtures("db")
class TestAsking:
    def test_a_right_clock_is_left_alone(self) -> None:
        with capture_logs() as logs:
            ClockChecker().check_clock()
        assert (wall.correction, logs) == (timedelta(), [])

    def test_a_wrong_one_goes_by_mongodb_from_then_on(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        with capture_logs() as logs:
            ClockChecker().check_clock()
        assert abs(wall.correction + TEN_MINUTES) < timedelta(seconds=2)
        assert abs(utc_now() - (datetime.now(UTC) - TEN_MINUTES)) < timedelta(seconds=2)
        assert [one["event"] for one in logs] == ["clock_corrected"]

    def test_one_that_was_put_right_is_believed_again(self) -> None:
        wall.correction = -TEN_MINUTES
        ClockChecker().check_clock()
        assert wall.correction == timedelta()

    def test_an_answer_that_took_long_says_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        ticks = count(step=TIMEOUT + 1)
        monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        ClockChecker().check_clock()
        assert wall.correction == timedelta()

    def test_a_first_answer_that_took_long_is_asked_for_again(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        ticks = chain([0.0, 0.0, 0.0, TIMEOUT + 1], repeat(TIMEOUT + 1))
        monkeypatch.setattr(clock, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        ClockChecker().check_clock()
        assert abs(wall.correction + TEN_MINUTES) < timedelta(seconds=2)

    def test_nobody_goes_on_before_the_first_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        fast_by(monkeypatch, TEN_MINUTES)
        ours = ClockChecker()
        seen: list[timedelta] = []

        def look() -> None:
            ours.check_clock()
            seen.append(wall.correction)

        threads = [threading.Thread(target=look) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(abs(one + TEN_MINUTES) < timedelta(seconds=2) for one in seen)

    def test_mongodb_is_asked_once_in_a_while(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ours = ClockChecker()
        ours.check_clock()
        fast_by(monkeypatch, TEN_MINUTES)
        ours.check_clock()
        assert wall.correction == timedelta()


def fast_by(monkeypatch: pytest.MonkeyPatch, off: timedelta) -> None:
    """Make the clock that is compared with MongoDB's a wrong one."""

    class Fast(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return datetime.now(UTC) + off

    monkeypatch.setattr(clock, "datetime", Fast)
