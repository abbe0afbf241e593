"""The sweeper during and after an outage of the broker."""

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

WAKEUP: dict[str, Any] = {"channel": Channel.EMAIL, "priority": Priority.NORMAL, "now": NOON}


@pytest.fixture
def no_broker(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Publish to a port without a listener."""
    url = f"redis://127.0.0.1:{servers.free_port()}/0"
    settings.REDIS_URL = url
    unreachable = Celery("elsewhere", set_as_current=False)
    unreachable.config_from_object("django.conf:settings", namespace="CELERY")
    unreachable.conf.broker_url = url
    monkeypatch.setattr(platform_broker, "current_app", unreachable)
    monkeypatch.setattr(platform_broker, "PAUSE_AFTER_FAILURE", SILENT_FOR)
    _clear_connections()
    yield
    _clear_connections()
    unreachable.close()


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    counted: list[None] = []
    record_failure = platform_broker._BrokerHealth.record_failure

    def count(self: platform_broker._BrokerHealth) -> None:
        counted.append(None)
        record_failure(self)

    monkeypatch.setattr(platform_broker._BrokerHealth, "record_failure", count)
    return counted


def _clear_connections() -> None:
    platform_broker._connection.cache_clear()


@pytest.mark.usefixtures("no_broker")
def test_lost_attempt_is_recovered() -> None:
    started()
    assert sweeper.sweep(now=NOON + LEASE).recovered == 1
    assert heartbeats.last_sweep() == NOON + LEASE


@pytest.mark.usefixtures("no_broker")
def test_sweep_counts_unpublished_wakeups() -> None:
    store.accept([new() for _ in range(3)], now=NOON)
    report = sweeper.sweep(now=NOON)
    assert report == SweepReport(woken=0, pulled=0, unpublished=3, recovered=0, resolved=0)


@pytest.mark.usefixtures("no_broker")
def test_wakeup_fails_without_an_error(failures: list[None]) -> None:
    assert not wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert wakeups.depth("email.normal") is None
    fair_queue.enqueue_wakeups([accepted() for _ in range(20)], now=NOON)
    assert len(failures) == 1, "asked once"


@pytest.mark.usefixtures("no_broker")
def test_recent_success_does_not_delay_the_failure(failures: list[None]) -> None:
    platform_broker._health.record_success()
    assert not wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert len(failures) == 1


def test_pause_skips_the_broker(broker: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    platform_broker._health.record_failure()
    assert not wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert broker.llen("email.normal") == 0
    monkeypatch.setattr(platform_broker, "PAUSE_AFTER_FAILURE", 0.0)
    assert wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert broker.llen("email.normal") == 1


def test_full_pool_is_no_failure(broker: redis.Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_options: object) -> None:
        raise LimitExceeded(10)

    with monkeypatch.context() as patch:
        patch.setattr(platform_broker.current_app, "send_task", refuse)
        assert not wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert wakeups.send_wakeup([ObjectId()], **WAKEUP)
    assert broker.llen("email.normal") == 1


def test_unpublished_wakeup_is_sent_when_the_broker_is_back(
    broker: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    accepted()
    platform_broker._health.record_failure()
    report = sweeper.sweep(now=NOON)
    assert report == SweepReport(woken=0, pulled=0, unpublished=1, recovered=0, resolved=0)
    monkeypatch.setattr(platform_broker, "PAUSE_AFTER_FAILURE", 0.0)
    assert sweeper.sweep(now=NOON).woken == 1
    assert broker.llen("email.normal") == 1
