"""Backpressure for bulk requests, by the size and age of the backlog."""

import threading
from datetime import timedelta
from typing import Any

import pytest

from domain.channels import Channel
from domain.states import DeliveryStatus, Priority
from notifications.queueing import backlog
from notifications.queueing.backlog import Backlog
from notifications.store import acceptance
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted, new
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db", "backlog_anew")

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


@pytest.fixture
def limits(settings: Any) -> Any:
    """Limit the backlog to three notifications and ten minutes."""
    settings.BULK_PENDING_LIMIT = 3
    settings.BULK_OLDEST_DUE = 10 * MINUTE
    return settings


def accept_due(count: int, *, since: timedelta = SECOND, **fields: Any) -> None:
    many = [new(send_at=NOON - since, created_at=NOON, **fields) for _ in range(count)]
    acceptance.accept(many, now=NOON)


@pytest.mark.parametrize(("count", "is_overloaded"), [(0, False), (3, False), (4, True), (5, True)])
def test_more_than_the_limit_is_overload(limits: Any, count: int, *, is_overloaded: bool) -> None:
    accept_due(count) if count else None
    assert backlog.is_overloaded(now=NOON) is is_overloaded


@pytest.mark.parametrize(
    ("since", "is_overloaded"), [(10 * MINUTE, False), (10 * MINUTE + SECOND, True)]
)
def test_old_delivery_is_overload(limits: Any, since: timedelta, *, is_overloaded: bool) -> None:
    accept_due(1, since=since, priority=Priority.LOW)
    accept_due(1, priority=Priority.CRITICAL)
    assert backlog.is_overloaded(now=NOON) is is_overloaded


def test_future_and_ended_deliveries_are_not_counted(limits: Any) -> None:
    for _ in range(4):
        accepted(send_at=NOON + SECOND)
        accepted(channels=[Channel.IN_APP])
        factories.settled(DeliveryStatus.SENT)
        factories.settled(DeliveryStatus.PENDING)
    assert backlog.measure_backlog(now=NOON, cap=10) == Backlog(due=0, oldest_due_at=None)


def test_every_priority_is_counted_with_the_oldest_of_all(limits: Any) -> None:
    for n, priority in enumerate(Priority):
        accept_due(1, since=n * MINUTE, priority=priority)
    assert backlog.measure_backlog(now=NOON, cap=10) == Backlog(
        due=4, oldest_due_at=NOON - 3 * MINUTE
    )


def test_backlog_is_measured_every_few_seconds(
    limits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not backlog.is_overloaded(now=NOON)
    accept_due(4)
    assert not backlog.is_overloaded(now=NOON), "measured just before"
    monkeypatch.setattr(backlog._cache, "seconds", -1.0)
    assert backlog.is_overloaded(now=NOON)


def test_concurrent_callers_share_a_result(limits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not backlog.is_overloaded(now=NOON)
    monkeypatch.setattr(backlog._cache, "seconds", -1.0)
    begun, go_on = threading.Event(), threading.Event()

    def measure_slowly(**_: Any) -> Backlog:
        begun.set()
        go_on.wait(LIMIT)
        return Backlog(due=4, oldest_due_at=NOON)

    monkeypatch.setattr(backlog, "measure_backlog", measure_slowly)
    measuring = threading.Thread(target=lambda: backlog.is_overloaded(now=NOON))
    measuring.start()
    assert begun.wait(LIMIT)
    assert not backlog.is_overloaded(now=NOON)
    go_on.set()
    measuring.join()
    monkeypatch.setattr(backlog._cache, "seconds", 60.0)
    assert backlog.is_overloaded(now=NOON)
