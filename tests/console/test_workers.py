"""The page of workers and queues, which opens without waiting for workers."""

from datetime import timedelta

import pytest
import redis
from django.test import Client
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from domain.channels import Channel
from domain.states import DeliveryStatus, Priority
from domain.time import utc_now
from monitoring import workers
from notifyproject import __version__
from notifyproject.db.collections import collection
from notifyproject.platform import process, valkey, watchdog
from tasks.schedule import add_missing_tasks
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

URL = "/admin/notifications/heartbeat/"


def text_of(client: Client, query: str = "") -> str:
    return " ".join(client.get(f"{URL}{query}").content.decode().split())


def test_page_shows_queues_and_workers(console: Client, broker: redis.Redis) -> None:
    valkey.clear()
    now = utc_now()
    factories.accepted(created_at=now - timedelta(hours=1))
    factories.settled(DeliveryStatus.SENT, at=now, created_at=now)
    broker.rpush("push.critical", "x", "y")
    broker.rpush("service", "z")
    collection("heartbeats").insert_one({"_id": "sweep", "at": now})
    critical, normal = (workers.queue_status(now=now)[n] for n in (0, 2))
    assert (critical.priority, critical.due, critical.oldest_due_at) == (Priority.CRITICAL, 0, None)
    assert critical.depths[Channel.PUSH] == 2
    assert (normal.due, normal.oldest_due_at) == (1, now - timedelta(hours=1))
    assert workers.service_depth() == 1
    page = text_of(console)
    for words in ("1 h", factories.WORKER, "Service queue: 1."):
        assert words in page, words


def test_page_opens_without_a_broker(console: Client) -> None:
    valkey._health.record_failure()
    try:
        page = text_of(console, "?ask=1")
    finally:
        valkey.clear()
    assert "Broker unavailable." in page


def test_workers_are_pinged_only_on_request(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    valkey.clear()
    monkeypatch.setattr(workers, "PING_SECONDS", 0.01)
    assert "responded within" not in text_of(console)
    assert "0 responded within" in text_of(console, "?ask=1")


def test_intervals_are_those_of_the_schedule(console: Client) -> None:
    add_missing_tasks()
    page = text_of(console)
    assert "picks up missed work, runs every 15 s" in page
    assert "runs every 1 min" in page
    slower, _ = IntervalSchedule.objects.get_or_create(every=90, period=IntervalSchedule.SECONDS)
    PeriodicTask.objects.filter(name=workers.SWEEP_TASK).update(interval=slower)
    PeriodicTask.objects.filter(name=workers.ROLLUP_TASK).update(enabled=False)
    page, home = text_of(console), console.get("/admin/").content.decode()
    assert "picks up missed work, runs every 90 s" in page
    assert "not scheduled" in page
    assert "runs every 90 s" in home


def test_idle_workers_are_listed_with_their_age_queues_and_version(console: Client) -> None:
    valkey.clear()
    now = utc_now()
    collection("heartbeats").insert_many(
        [
            {
                "_id": "worker:web-1:42",
                "at": now,
                "started_at": now - timedelta(hours=3),
                "queues": [f"email.{priority}" for priority in Priority]
                + ["push.critical", "service"],
                "version": "0.1.0",
            },
            {"_id": "worker:web-2:43", "at": now - timedelta(hours=2)},
        ]
    )
    factories.settled(DeliveryStatus.SENT, at=now, created_at=now)
    page = text_of(console)
    for words in ("web-1:42", "Idle", "3 h", "email, push (critical), service", "0.1.0"):
        assert words in page, words
    assert factories.WORKER in page
    assert "web-2" not in page, "not seen for two hours"


def test_worker_reports_that_it_is_alive(db: None) -> None:
    collection("heartbeats").insert_one(
        {"_id": "worker:gone:1", "at": utc_now() - timedelta(days=1)}
    )
    watchdog._report({"email.high", "service"}, utc_now())
    [stored] = collection("heartbeats").find({"_id": {"$regex": "^worker:"}})
    assert stored["_id"] == f"worker:{process.worker_name()}"
    assert (stored["queues"], stored["version"]) == (["email.high", "service"], __version__)
