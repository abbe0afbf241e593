"""Celery tasks: one more thin way in. They hold no logic and carry no state."""

from bson import ObjectId
from celery import shared_task

from callbacks import outbox, worker
from delivery import heartbeats, sweeper
from delivery import worker as delivery_worker
from domain.states import Channel, Priority
from domain.time import utc_now
from monitoring import alerts, rollup
from notifications import callback_events
from notifications.broadcasts import runner
from notifications.bulk import runner as bulk_runner
from notifications.queueing import wakeups
from notifications.queueing.fair_queue import FairQueue, PullToken
from notifyproject.platform import process
from privacy import content_removal

from . import schedule


@shared_task(name=wakeups.DELIVER)
def handle_wakeup(ids: list[str], channel: str, priority: str) -> None:
    """Send what of these deliveries is due."""
    delivery_worker.handle_wakeup(
        [ObjectId(one) for one in ids], channel=Channel(channel), priority=Priority(priority)
    )


@shared_task(name=wakeups.PULL)
def pull(client_id: str, channel: str, priority: str, token: tuple[int, str] | None) -> None:
    """Send the next batch of what is due of a client in a lane."""
    queue = FairQueue(ObjectId(client_id), Channel(channel), Priority(priority))
    delivery_worker.pull(queue, PullToken(*token) if token else None)


@shared_task(name=wakeups.BROADCAST)
def run_broadcast(broadcast_id: str) -> None:
    """Tell the next people of a broadcast's audience."""
    runner.run_page(ObjectId(broadcast_id))


@shared_task(name=callback_events.PUBLISH)
def publish_callback_events() -> None:
    """Tell apps what has changed."""
    callback_events.publish_events(now=utc_now())


@shared_task(name=outbox.CALL_TASK)
def send_callbacks(client_id: str) -> None:
    """Send an app what it is to be told."""
    worker.run_round(ObjectId(client_id), clock=utc_now, is_shutting_down=process.is_shutting_down)


@shared_task(name=schedule.CALLBACKS)
def sweep_callbacks() -> None:
    """Find what apps are to be told and no hint reached; every minute, by beat's schedule."""
    callback_events.publish_events(now=utc_now())
    worker.sweep(now=utc_now())


@shared_task(name=schedule.RETENTION)
def remove_content() -> None:
    """Remove what old notifications say; every minute, by beat's schedule."""
    content_removal.remove_expired_content(now=utc_now())


@shared_task(name=wakeups.HEARTBEAT)
def record_worker_heartbeat() -> None:
    """Say that a worker is alive and gets what is published."""
    heartbeats.record_worker_heartbeat(now=utc_now())


@shared_task(name=wakeups.BULK_OPERATION)
def run_bulk_operation(operation_id: str) -> None:
    """Go on with a bulk operation."""
    bulk_runner.run(ObjectId(operation_id))


@shared_task(name=schedule.ROLLUP)
def roll_up() -> None:
    """Bring the figures over time up to date; every minute, by beat's schedule."""
    rollup.run(now=utc_now())


@shared_task(name=schedule.ALERTS)
def evaluate_alerts() -> None:
    """Look at the alert rules; every minute, by beat's schedule."""
    alerts.evaluate(now=utc_now())


@shared_task(name=schedule.SWEEP)
def sweep() -> None:
    """Find what no hint reached; four times a minute, by beat's schedule."""
    sweeper.sweep_if_due(now=utc_now())
