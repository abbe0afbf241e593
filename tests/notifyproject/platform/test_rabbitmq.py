"""RabbitMQ as the broker: settings, delays, and the pool that runs the most urgent task first."""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from celery.concurrency.thread import ApplyResult
from django.core.exceptions import ImproperlyConfigured

from notifyproject.platform import rabbitmq
from notifyproject.settings import base, environment
from notifyproject.settings.base import queue_names
from tests.support.factories.notifications import NOON
from tests.support.waiting import LIMIT

URL = "amqp://notify:secret@mq-1:5672/notify"


def settings_with(url: str) -> dict[str, Any]:
    return base.configure(environment.read({"BROKER_URL": url, "REDIS_URL": "redis://valkey/0"}))


def test_broker_is_valkey_by_default() -> None:
    found = settings_with("")
    assert found["CELERY_BROKER_URL"] == found["REDIS_URL"] == "redis://valkey/0"
    assert found["CELERY_WORKER_POOL"] == "threads"


def test_rabbitmq_has_quorum_queues_in_order_and_valkey_keeps_the_rest() -> None:
    found = settings_with(URL)
    assert found["CELERY_BROKER_URL"] == URL
    assert found["REDIS_URL"] == "redis://valkey/0"
    queues = found["CELERY_TASK_QUEUES"]
    assert [queue.name for queue in queues] == queue_names()
    assert {queue.queue_arguments["x-queue-type"] for queue in queues} == {"quorum"}
    # Celery can't delay messages to a direct exchange.
    assert {queue.exchange.type for queue in queues} == {"topic"}
    assert found["CELERY_BROKER_TRANSPORT_OPTIONS"]["confirm_publish"]


@pytest.mark.parametrize("url", ["redis://valkey/1", "amqp://", "mq-1:5672", f"{URL} "])
def test_other_brokers_are_refused(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="BROKER_URL"):
        settings_with(url)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0.2, {"countdown": 1}),
        (1.0, {"countdown": 1}),
        (1.05, {"countdown": 1}),
        (1.1, {"eta": NOON + timedelta(seconds=1.1)}),
        (59.5, {"eta": NOON + timedelta(seconds=59.5)}),
    ],
)
def test_delay_has_at_least_one_whole_second(seconds: float, expected: dict[str, Any]) -> None:
    assert rabbitmq.delay_options(NOON + timedelta(seconds=seconds), now=NOON) == expected


def test_queue_of_a_delayed_message_follows_its_delay() -> None:
    assert rabbitmq.queue_of("in_app.critical") == "in_app.critical"
    assert rabbitmq.queue_of(".".join("0" * 24 + "1011") + ".email.low") == "email.low"


@pytest.fixture
def pool(settings: Any) -> Iterator[rabbitmq.PriorityPool]:
    pool = rabbitmq.PriorityPool(1)
    yield pool
    pool.on_stop()


def apply(pool: rabbitmq.PriorityPool, routing_key: str, run: Any) -> ApplyResult:
    request = {"delivery_info": {"routing_key": routing_key}}
    return pool.on_apply(lambda *_: run(), ("task", "id", request), callback=lambda _: None)


def test_free_thread_takes_the_most_urgent_and_then_the_oldest(
    pool: rabbitmq.PriorityPool,
) -> None:
    busy, order = threading.Event(), list[str]()
    apply(pool, "service", lambda: busy.wait(LIMIT))
    delayed = ".".join("0" * 27 + "1") + ".push.critical"
    keys = ["broadcasts", "email.low", "email.high", delayed, "email.high", "unknown", "service"]
    names = [f"{number} {key}" for number, key in enumerate(keys)]
    calls = [
        apply(pool, key, lambda name=name: order.append(name))
        for key, name in zip(keys, names, strict=True)
    ]
    busy.set()
    for call in calls:
        call.get(LIMIT)
    assert order == [names[place] for place in (6, 3, 2, 4, 1, 0, 5)]
