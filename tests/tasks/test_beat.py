"""Beat's schedule in MongoDB, whatever a clock has written there."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django_celery_beat import schedulers
from django_celery_beat.models import PeriodicTask

from delivery.sweeper import SWEEP_SECONDS
from domain.time import utc_now
from notifyproject.celery import app
from tasks.beat import HeartbeatScheduler
from tasks.schedule import PERIODIC_TASKS, add_missing_tasks

pytestmark = pytest.mark.usefixtures("db", "broker")
ALL = sorted(PERIODIC_TASKS)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def tasks() -> Iterator[None]:
    PeriodicTask.objects.all().delete()
    add_missing_tasks()
    yield
    PeriodicTask.objects.all().delete()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []
    monkeypatch.setattr(
        HeartbeatScheduler, "apply_async", lambda _self, entry, **_: names.append(entry.name)
    )
    # Otherwise it stores the schedule at the end of this process, without a database.
    monkeypatch.setattr(schedulers, "Finalize", lambda *_, **__: None)
    return names


def events(beat: HeartbeatScheduler) -> list[Any]:
    """Return what beat has planned, after its first tick."""
    assert beat._heap is not None
    return beat._heap


def ran(beat: HeartbeatScheduler, ago: timedelta) -> None:
    """Let all tasks have run that long ago, by beat's memory, and be tried again after a minute."""
    at = utc_now() - ago
    for event in events(beat):
        event.entry.last_run_at = event.entry.model.last_run_at = at
    events(beat)[:] = [event._replace(time=at.timestamp() + 60) for event in events(beat)]


def ticks(beat: HeartbeatScheduler, count: int = 12) -> float:
    """Return the longest wait for a next tick."""
    return max(beat.tick() for _ in range(count))


# https://github.com/celery/celery/issues/6742, https://github.com/celery/celery/issues/3685
@pytest.mark.parametrize("ahead", [10 * SECOND, DAY / 24, DAY, 4_000 * DAY])
def test_stored_run_in_the_future_delays_tasks_by_one_interval(
    ahead: timedelta, sent: list[str]
) -> None:
    PeriodicTask.objects.update(last_run_at=utc_now() + ahead)
    beat = HeartbeatScheduler(app=app)
    assert ticks(beat) <= 5
    assert sent == []
    sweep = beat.schedule["Sweep"]
    assert sweep.is_due().next <= SWEEP_SECONDS
    ran(beat, 61 * SECOND)
    ticks(beat)
    assert sorted(sent) == ALL


# https://github.com/celery/celery/issues/5892
def test_clock_that_moves_back_starves_no_task(sent: list[str]) -> None:
    PeriodicTask.objects.update(last_run_at=utc_now() - DAY)
    beat = HeartbeatScheduler(app=app)
    ticks(beat)
    assert sorted(sent) == ALL
    # By the wrong clock, they ran a day later than it is now.
    ran(beat, -DAY)
    ticks(beat)
    in_a_minute = (utc_now() + 61 * SECOND).timestamp()
    assert max(event.time for event in events(beat)) <= in_a_minute
    sent.clear()
    ran(beat, 61 * SECOND)
    ticks(beat)
    assert {*ALL} == {*sent}


# https://github.com/celery/django-celery-beat/issues/459, https://github.com/sibson/redbeat/issues/81
@pytest.mark.parametrize("ago", [60 * SECOND, DAY, 4_000 * DAY])
def test_tasks_missed_while_beat_was_stopped_run_once(ago: timedelta, sent: list[str]) -> None:
    PeriodicTask.objects.update(last_run_at=utc_now() - ago)
    ticks(HeartbeatScheduler(app=app), 30)
    assert sorted(sent) == ALL


# https://github.com/PostHog/posthog/pull/42607
def test_restarts_put_no_task_off(sent: list[str]) -> None:
    PeriodicTask.objects.update(last_run_at=utc_now() - 58 * SECOND)
    for seconds in range(10):
        # Each time a program that has stored nothing: it was killed.
        beat = HeartbeatScheduler(app=app)
        for entry in beat.schedule.values():
            entry.last_run_at -= seconds * SECOND
        ticks(beat, 6)
    assert {*ALL} <= {*sent}
