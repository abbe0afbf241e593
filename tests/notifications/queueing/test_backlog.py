"""Whether the workers are too far behind for more in bulk."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from domain.states import Channel, DeliveryStatus, Priority
from notifications import store
from notifications.queueing import backlog
from notifications.queueing.backlog import Backlog
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted, new
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db", "backlog_anew")

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture
def limits(settings: Any) -> Any:
    """Give a test a limit of three notifications and ten minutes."""
    settings.BULK_PENDING_LIMIT = 3
    settings.BULK_OLDEST_DUE = 10 * MINUTE
    return settings


def wait(count: int, *, since: timedelta = SECOND, **fields: Any) -> None:
    """Let so many be due for some time."""
    many = [new(send_at=NOON - since, created_at=NOON, **fields) for _ in range(count)]
    store.accept(many, now=NOON)


@pytest.mark.parametrize(("count", "is_too_long"), [(0, False), (3, False), (4, True), (5, True)])
def test_it_is_too_long_with_more_due_than_the_limit(
    limits: Any, count: int, *, is_too_long: bool
) -> None:
    wait(count) if count else None
    assert backlog.is_overloaded(now=NOON) is is_too_long


@pytest.mark.parametrize(
    ("since", "is_too_long"), [(10 * MINUTE, False), (10 * MINUTE + SECOND, True)]
)
def test_it_is_too_long_with_one_that_waits_for_long(
    limits: Any, since: timedelta, *, is_too_long: bool
) -> None:
    wait(1, since=since, priority=Priority.LOW)
    wait(1, priority=Priority.CRITICAL)
    assert backlog.is_overloaded(now=NOON) is is_too_long


def test_what_is_for_later_or_over_does_not_wait(limits: Any) -> None:
    for _ in range(4):
        accepted(send_at=NOON + SECOND)
        accepted(channels=[Channel.IN_APP])
        factories.settled(DeliveryStatus.SENT)
        factories.settled(DeliveryStatus.PENDING)
    assert backlog.measure_backlog(now=NOON, cap=10) == Backlog(due=0, oldest_due_at=None)


def test_every_priority_is_counted_and_the_oldest_of_all_told(limits: Any) -> None:
    for n, priority in enumerate(Priority):
        wait(1, since=n * MINUTE, priority=priority)
    assert backlog.measure_backlog(now=NOON, cap=10) == Backlog(
        due=4, oldest_due_at=NOON - 3 * MINUTE
    )


def test_it_is_measured_once_in_a_few_seconds(limits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not backlog.is_overloaded(now=NOON)
    wait(4)
    assert not backlog.is_overloaded(now=NOON), "measured a moment ago"
    monkeypatch.setattr(backlog._cache, "seconds", -1.0)
    assert backlog.is_overloaded(now=NOON)


def test_while_one_thread_measures_the_others_go_by_what_was_measured_last(
    limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not backlog.is_overloaded(now=NOON)
    monkeypatch.setattr(backlog._cache, "seconds", -1.0)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(**_: Any) -> Backlog:
        begun.set()
        go_on.wait(LIMIT)
        return Backlog(due=4, oldest_due_at=NOON)

    monkeypatch.setattr(backlog, "measure_backlog", slowly)
    measuring = threading.Thread(target=lambda: backlog.is_overloaded(now=NOON))
    measuring.start()
    assert begun.wait(LIMIT)
    assert not backlog.is_overloaded(now=NOON)
    go_on.set()
    measuring.join()
    monkeypatch.setattr(backlog._cache, "seconds", 60.0)
    assert backlog.is_overloaded(now=NOON)
