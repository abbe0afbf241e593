"""A process whose clock differs from MongoDB's does no work."""

from datetime import UTC, datetime, timedelta, tzinfo
from io import StringIO
from itertools import count
from types import SimpleNamespace
from typing import Any, Self

import pytest
from celery.exceptions import Ignore
from django.core.management import CommandError, call_command
from pymongo import MongoClient
from structlog.testing import capture_logs

from notifyproject.celery import app
from notifyproject.platform import clock_check, process
from notifyproject.platform.clock_check import (
    CHECK_SECONDS,
    MAX_OFFSET,
    RECHECK_SECONDS,
    TIMEOUT,
    ClockCheck,
    measure_offset,
)
from privacy import purge
from privacy.purge import PurgeReport
from tests.support.factories.notifications import NOON
from tests.support.threads import at_once

TEN_MINUTES = timedelta(minutes=10)
SHORT = 0.01


@pytest.mark.parametrize(
    ("ahead", "round_trip", "expected"),
    [
        (0.0, SHORT, 0.0),
        (0.004, SHORT, 0.0),
        (600.0, SHORT, 599.995),
        (-600.0, SHORT, -599.995),
        (2.4, 1.0, 1.9),
    ],
    ids=["equal", "perhaps equal", "fast", "slow", "uncertain"],
)
def test_offset_is_the_least_that_the_round_trip_allows(
    ahead: float, round_trip: float, expected: float
) -> None:
    server_time = NOON + timedelta(seconds=round_trip / 2 - ahead)
    offset = measure_offset(sent=NOON, server_time=server_time, round_trip=round_trip)
    assert offset.total_seconds() == pytest.approx(expected, abs=1e-6)


@pytest.mark.usefixtures("db")
class TestComparing:
    def test_right_clock(self) -> None:
        check = ClockCheck()
        with capture_logs() as logs:
            assert check.is_right()
        assert not check.is_wrong()
        assert logs == []

    @pytest.mark.parametrize("sign", [1, -1], ids=["fast", "slow"])
    def test_wrong_clock_is_logged_once(self, monkeypatch: pytest.MonkeyPatch, sign: int) -> None:
        shift_clock(monkeypatch, sign * TEN_MINUTES)
        watch = Watch(monkeypatch)
        check = ClockCheck()
        with capture_logs() as logs:
            assert check.is_wrong()
            watch.now += RECHECK_SECONDS
            assert not check.is_right()
        assert [log["event"] for log in logs] == ["clock_wrong"]
        assert logs[0]["seconds_off"] == pytest.approx(sign * 600, abs=2)

    def test_offset_within_the_limit_is_right(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shift_clock(monkeypatch, MAX_OFFSET / 2)
        assert ClockCheck().is_right()

    def test_wrong_clock_is_compared_again_soon(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch(monkeypatch)
        check = ClockCheck()
        with monkeypatch.context() as patch:
            shift_clock(patch, TEN_MINUTES)
            assert check.is_wrong()
        assert check.is_wrong()
        watch.now += RECHECK_SECONDS
        assert check.is_right()

    def test_right_clock_is_compared_each_minute(self, monkeypatch: pytest.MonkeyPatch) -> None:
        watch = Watch(monkeypatch)
        check = ClockCheck()
        assert check.is_right()
        shift_clock(monkeypatch, TEN_MINUTES)
        watch.now += CHECK_SECONDS - 1
        assert check.is_right()
        watch.now += 1
        assert check.is_wrong()

    def test_slow_response_is_ignored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        shift_clock(monkeypatch, TEN_MINUTES)
        ticks = count(step=TIMEOUT + 1)
        monkeypatch.setattr(clock_check, "time", SimpleNamespace(monotonic=lambda: next(ticks)))
        check = ClockCheck()
        assert not check.is_wrong()
        assert not check.is_right()

    def test_clock_is_unknown_without_mongodb(self, monkeypatch: pytest.MonkeyPatch) -> None:
        check = ClockCheck()
        with MongoClient[Any]("mongodb://127.0.0.1:1/x", serverSelectionTimeoutMS=100) as nowhere:
            monkeypatch.setattr(clock_check, "database", lambda: nowhere["x"])
            assert not check.is_right()
            assert not check.is_wrong()

    def test_all_threads_wait_for_the_first_comparison(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        shift_clock(monkeypatch, TEN_MINUTES)
        check = ClockCheck()
        assert at_once(*[check.is_wrong] * 8) == [True] * 8


def test_startup_waits_until_the_clock_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])
    slept: list[float] = []
    monkeypatch.setattr(clock_check, "is_right", lambda: next(answers))
    monkeypatch.setattr(process, "pause", slept.append)
    clock_check.wait_until_right()
    assert slept == [RECHECK_SECONDS] * 2


@pytest.fixture
def _wrong_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_check, "is_wrong", lambda: True)
    monkeypatch.setattr(clock_check, "is_right", lambda: False)


@pytest.mark.usefixtures("_wrong_clock")
class TestWrongClock:
    def test_no_task_runs(self) -> None:
        app.loader.import_default_modules()
        tasks = [task for name, task in app.tasks.items() if not name.startswith("celery.")]
        assert len(tasks) > 5
        for task in tasks:
            with pytest.raises(Ignore):
                task.before_start("1", (), {})

    def test_refused_task_ends_without_an_error(self) -> None:
        ran: list[str] = []

        @app.task(name="tests.clock", shared=False)
        def task() -> None:
            ran.append("once")

        try:
            result = task.apply()
        finally:
            app.tasks.pop("tests.clock")
        assert (result.state, ran) == ("IGNORED", [])

    @pytest.mark.usefixtures("db")
    def test_purge_is_refused(self) -> None:
        report = purge.purge_notifications(
            client_id=None, older_than=timedelta(days=30), at_most=None, now=NOON
        )
        assert report == PurgeReport(notifications=0, attempts=0, is_complete=False)

    @pytest.mark.parametrize(
        "command",
        [("remove_content",), ("purge", "--older-than-days=30")],
        ids=["remove_content", "purge"],
    )
    def test_commands_refuse(self, command: tuple[str, ...]) -> None:
        with pytest.raises(CommandError, match="The clock is wrong"):
            call_command(*command)

    @pytest.mark.usefixtures("db", "broker")
    def test_sweeper_waits(self, monkeypatch: pytest.MonkeyPatch) -> None:
        answers = iter([False, True])
        monkeypatch.setattr(clock_check, "is_right", lambda: next(answers))
        monkeypatch.setattr(clock_check, "RECHECK_SECONDS", 0.0)
        monkeypatch.setattr("signal.signal", lambda *_: None)
        process.clear_shutdown()
        out, errors = StringIO(), StringIO()
        call_command("sweeper", once=True, stdout=out, stderr=errors)
        assert errors.getvalue().startswith("Waiting: the clock is wrong")
        assert out.getvalue().startswith("woken 0")


class Watch:
    """A monotonic clock that a test moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        fake = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(clock_check, "time", fake)


def shift_clock(monkeypatch: pytest.MonkeyPatch, offset: timedelta) -> None:
    """Move the clock that is compared with MongoDB's."""

    class Shifted(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return cls.fromtimestamp((datetime.now(UTC) + offset).timestamp(), UTC)

    monkeypatch.setattr(clock_check, "datetime", Shifted)
