"""Reads queue depths, active workers, and heartbeats. Each read is quick."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from celery import current_app
from django.conf import settings
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from delivery.heartbeats import last_sweep, last_worker_heartbeat
from domain import queues
from domain.channels import Channel
from domain.states import Priority
from notifications.documents.records import DELIVERY_ATTEMPTS, HEARTBEATS
from notifications.queries import COUNT_CAP
from notifications.queueing import backlog
from notifyproject.db.collections import collection
from notifyproject.platform import broker
from notifyproject.platform.watchdog import REPORT_INTERVAL, WORKER_PREFIX

from . import rollup_state

SWEEP_TASK, ROLLUP_TASK = "Sweep", "Figures"  # Names of periodic tasks in beat's schedule
ACTIVE_WITHIN = timedelta(minutes=5)
ATTEMPTS_READ = 5_000
"""Number of the newest attempts from which active workers are found."""
PING_SECONDS = 0.5
ALIVE_WITHIN = 4 * REPORT_INTERVAL
"""A worker that has not reported for this long is not listed."""
MAX_WORKERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """The work that waits in the queues of one priority."""

    priority: Priority
    due: int
    """Due notifications in MongoDB; COUNT_CAP means at least that many."""
    oldest_due_at: datetime | None
    depths: Mapping[Channel, int | None]
    """Messages in the queue of each channel; None if the broker is unavailable. A wake-up may stand
    for a hundred deliveries, or for none any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker that reported recently that it is alive, or that made attempts."""

    name: str
    attempts: int
    last_at: datetime | None
    """Its last attempt in ACTIVE_WITHIN. None if it is idle."""
    seen_at: datetime | None = None
    """When it last reported. None if its reports ended, or the broker is unavailable."""
    started_at: datetime | None = None
    queues: Sequence[str] = ()
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeats:
    """When periodic activities last took place."""

    sweep: datetime | None
    worker: datetime | None
    rollup: datetime | None


def queue_status(*, now: datetime) -> list[QueueStatus]:
    """Return the status of each priority, highest first."""
    depths = _depths()
    return [
        QueueStatus(
            priority=priority,
            due=backlog.count_due(now=now, cap=COUNT_CAP, priority=priority),
            oldest_due_at=backlog.oldest_due(now=now, priority=priority),
            depths={
                channel: None if depths is None else depths[queues.queue_name(channel, priority)]
                for channel in Channel
            },
        )
        for priority in Priority
    ]


def service_depth() -> int | None:
    """Return the depth of the queue for periodic and other internal tasks."""
    return (_depths() or {}).get(settings.CELERY_TASK_DEFAULT_QUEUE)


def heartbeats() -> Heartbeats:
    """Return the last heartbeats."""
    return Heartbeats(
        sweep=last_sweep(), worker=last_worker_heartbeat(), rollup=rollup_state.counted_at()
    )


def all_workers(*, now: datetime) -> list[Worker]:
    """Return the workers that are alive, also idle ones, or have made recent attempts, by name."""
    found = {worker.name: worker for worker in active_workers(now=now)}
    alive = HEARTBEATS().find(
        {"_id": {"$regex": f"^{WORKER_PREFIX}"}, "at": {"$gte": now - ALIVE_WITHIN}}
    )
    for beat in alive.limit(MAX_WORKERS):
        name = beat["_id"].removeprefix(WORKER_PREFIX)
        worker = found.get(name, Worker(name=name, attempts=0, last_at=None))
        found[name] = replace(
            worker,
            seen_at=beat["at"],
            started_at=beat.get("started_at"),
            queues=tuple(beat.get("queues") or ()),
            version=beat.get("version") or "",
        )
    return [found[name] for name in sorted(found)]


def active_workers(*, now: datetime) -> list[Worker]:
    """Return the workers with recent attempts, by name."""
    last_at = {"$max": "$attempted_at"}
    found = collection(DELIVERY_ATTEMPTS.name).aggregate(
        [
            {"$match": {"attempted_at": {"$gte": now - ACTIVE_WITHIN}}},
            {"$sort": {"attempted_at": -1, "_id": -1}},
            {"$limit": ATTEMPTS_READ},
            {"$group": {"_id": "$worker", "attempts": {"$sum": 1}, "last_at": last_at}},
            {"$sort": {"_id": 1}},
        ],
        hint="att_attempted",
    )
    return [
        Worker(name=row["_id"] or "-", attempts=row["attempts"], last_at=row["last_at"])
        for row in found
    ]


def ping_workers() -> Sequence[str] | None:
    """Return the workers that answer a ping within half a second, or None without the broker."""
    if broker.probe(timeout=PING_SECONDS) is not None:
        return None
    try:
        replies = current_app.control.ping(timeout=PING_SECONDS)
    except broker.ERRORS:
        return None
    return sorted(name for reply in replies for name in reply)


def _depths() -> dict[str, int] | None:
    return broker.queue_depths([queue.name for queue in settings.CELERY_TASK_QUEUES])


def scheduled_interval(name: str) -> timedelta | None:
    """Return the interval at which beat runs a task, None if it is disabled or has another rule."""
    task = PeriodicTask.objects.filter(name=name, enabled=True).only("interval_id").first()
    interval = task and IntervalSchedule.objects.filter(pk=task.interval_id).first()
    return timedelta(**{interval.period: interval.every}) if interval else None
