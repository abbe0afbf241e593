"""Celery tasks. Each task calls one function and keeps no state."""

from bson import ObjectId
from celery import shared_task

from access.staff import idle_limit
from callbacks import outbox, worker
from delivery import digests, heartbeats, sweeper, test_clock
from delivery import worker as delivery_worker
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.states import Priority
from domain.time import utc_now
from monitoring import alerts, rollup
from notifications import callback_events
from notifications.broadcasts import runner
from notifications.bulk import runner as bulk_runner
from notifications.files import runner as files_runner
from notifications.queueing import wakeups
from notifications.queueing.fair_queue import FairQueue, PullToken
from notifyproject.platform import process
from privacy import content_removal

from . import schedule

runtime = SendingRuntime()
"""Of this process. A prefork worker forks before it sends: each child begins with an unused one."""


@shared_task(name=wakeups.DELIVER)
def handle_wakeup(ids: list[str], channel: str, priority: str) -> None:
    """Send the deliveries of these notifications that are due."""
    delivery_worker.handle_wakeup(
        runtime,
        [ObjectId(text) for text in ids],
        channel=Channel(channel),
        priority=Priority(priority),
    )


@shared_task(name=wakeups.PULL)
def pull(client_id: str, channel: str, priority: str, token: tuple[int, str] | None) -> None:
    """Send the next batch of a fair queue."""
    queue = FairQueue(ObjectId(client_id), Channel(channel), Priority(priority))
    delivery_worker.pull(runtime, queue, PullToken(*token) if token else None)


@shared_task(name=wakeups.BROADCAST)
def run_broadcast(broadcast_id: str) -> None:
    """Create the notifications for the next page of a broadcast's audience."""
    runner.run_page(ObjectId(broadcast_id))


@shared_task(name=callback_events.PUBLISH)
def publish_callback_events() -> None:
    """Publish callback events for changed notifications."""
    callback_events.publish_events(now=utc_now())


@shared_task(name=outbox.CALL_TASK)
def send_callbacks(client_id: str) -> None:
    """Send a client's due callbacks."""
    worker.run_round(ObjectId(client_id), clock=utc_now, is_shutting_down=process.is_shutting_down)


@shared_task(name=schedule.CALLBACKS)
def sweep_callbacks() -> None:
    """Publish and send callbacks whose wake-up was lost. Runs every minute."""
    callback_events.publish_events(now=utc_now())
    worker.sweep(now=utc_now())


@shared_task(name=schedule.RETENTION)
def remove_content() -> None:
    """Remove expired content of old notifications, and sessions. Runs every minute."""
    idle_limit.remove_expired(now=utc_now())
    content_removal.remove_expired_content(now=utc_now())


@shared_task(name=wakeups.HEARTBEAT)
def record_worker_heartbeat() -> None:
    """Record that a worker received the heartbeat message that each sweep publishes."""
    heartbeats.record_worker_heartbeat(now=utc_now())


@shared_task(name=wakeups.BULK_OPERATION)
def run_bulk_operation(operation_id: str) -> None:
    """Run a bulk operation for a limited time. Another task continues the operation."""
    bulk_runner.run(ObjectId(operation_id))


@shared_task(name=wakeups.FILE)
def run_file(file_id: str) -> None:
    """Run the next step of a file of recipients. Another task continues it."""
    files_runner.run(ObjectId(file_id))


@shared_task(name=wakeups.CLOSE_DIGESTS)
def close_digests() -> None:
    """Close digests that are due, and store the notifications that carry them."""
    digests.close_due()


@shared_task(name=wakeups.TEST_CLOCK)
def do_what_is_due_by_test_clock(client_id: str) -> None:
    """Do what is due by the clock of a test client that has moved it."""
    client, now = ObjectId(client_id), utc_now()
    if not test_clock.catch_up(client):
        wakeups.publish_test_clock(client, at=now + test_clock.RETRY_DELAY, now=now)


@shared_task(name=schedule.ROLLUP)
def roll_up() -> None:
    """Roll up metrics. Runs every minute."""
    rollup.run(now=utc_now())


@shared_task(name=schedule.ALERTS)
def evaluate_alerts() -> None:
    """Evaluate alert rules. Runs every minute."""
    alerts.evaluate(now=utc_now())


@shared_task(name=schedule.SWEEP)
def sweep() -> None:
    """Recover expired leases and enqueue due work whose wake-up was lost. Runs every 15 s."""
    sweeper.sweep_if_due(now=utc_now())
