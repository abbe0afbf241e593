"""The sweep while the broker cannot be reached, and when it is back."""

from collections.abc import Iterator
from typing import Any

import pytest
import redis
from bson import ObjectId
from celery import Celery
from kombu.exceptions import LimitExceeded

from delivery import heartbeats, sweeper
from delivery.sweeper import SweepReport
from domain.states import Channel, Priority
from notifications import store
from notifications.queueing import fair_queue, wakeups
from notifications.store import LEASE
from notifyproject.platform import broker as platform_broker
from notifyproject.stack import servers
from tests.support.factories.notifications import NOON, accepted, new, started
from tests.support.waiting import SILENT_FOR

pytestmark = pytest.mark.usefixtures("db")

HINT: dict[str, Any] = {"channel": Channel.EMAIL, "priority": Priority.NORMAL, "now": NOON}


@pytest.fixture
def no_broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Publish to a port that nobody listens on."""
    url = f"redis://127.0.0.1:{servers.free_port()}/0"
    settings.REDIS_URL = url
    elsewhere = Celery("elsewhere", set_as_current=False)
    elsewhere.config_from_object("django.conf:settings", namespace="CELERY")
    elsewhere.conf.broker_url = url
    monkeypatch.setattr(platform_broker, "current_app", elsewhere)
    monkeypatch.setattr(platform_broker, "PAUSE_AFTER_FAILURE", SILENT_FOR)
    _forget_connections()
    yield
    _forget_connections()
    elsewhere.close()


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Count how often the broker was asked in vain."""
    counted: list[None] = []
    record_failure = platform_broker._BrokerHealth.record_failure

    def count(self: platform_broker._BrokerHealth) -> None:
        counted.append(None)
        record_failure(self)

    monkeypatch.setattr(platform_broker._BrokerHealth, "record_failure", count)
    return counted


def _forget_connections() -> None:
    platform_broker._connection.cache_clear()


@pytest.mark.usefixtures("no_broker")
def test_what_is_lost_is_rescued_all_the_same() -> None:
    started()
    assert sweeper.sweep(now=NOON + LEASE).recovered == 1
    assert heartbeats.last_sweep() == NOON + LEASE


@pytest.mark.usefixtures("no_broker")
def test_a_sweep_says_how_much_it_could_not_hint_at() -> None:
    store.accept([new() for _ in range(3)], now=NOON)
    report = sweeper.sweep(now=NOON)
    assert report == SweepReport(woken=0, pulled=0, unpublished=3, recovered=0, resolved=0)


@pytest.mark.usefixtures("no_broker")
def test_a_hint_is_not_taken_and_nothing_fails(failures: list[None]) -> None:
    assert not wakeups.send_wakeup([ObjectId()], **HINT)
    assert wakeups.depth("email.normal") is None
    fair_queue.enqueue_wakeups([accepted() for _ in range(20)], now=NOON)
    assert len(failures) == 1, "it is asked once, and then left alone"


@pytest.mark.usefixtures("no_broker")
def test_a_broker_that_has_just_been_there_holds_nobody_up_either(failures: list[None]) -> None:
    platform_broker._health.record_success()
    assert not wakeups.send_wakeup([ObjectId()], **HINT)
    assert len(failures) == 1


def test_after_a_failure_the_broker_is_left_alone_for_some_seconds(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_broker._health.record_failure()
    assert not wakeups.send_wakeup([ObjectId()], **HINT)
    assert broker.llen("email.normal") == 0
    monkeypatch.setattr(platform_broker, "PAUSE_AFTER_FAILURE", 0.0)
    assert wakeups.send_wakeup([ObjectId()], **HINT)
    assert broker.llen("email.normal") == 1


def test_while_all_producers_are_taken_a_hint_is_not_taken_and_the_broker_not_blamed(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise LimitExceeded(10)

    with monkeypatch.context() as patch:
        patch.setattr(platform_broker.current_app, "send_task", refuse)
        assert not wakeups.send_wakeup([ObjectId()], **HINT)
    assert wakeups.send_wakeup([ObjectId()], **HINT)
    assert broker.llen("email.normal") == 1


def test_what_was_not_hinted_at_is_hinted_at_when_the_broker_is_back(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted()
    platform_broker._health.record_failure()
    report = sweeper.sweep(now=NOON)
    assert report == SweepReport(woken=0, pulled=0, unpublished=1, recovered=0, resolved=0)
    monkeypatch.setattr(platform_broker, "PAUSE_AFTER_FAILURE", 0.0)
    assert sweeper.sweep(now=NOON).woken == 1
    assert broker.llen("email.normal") == 1
