"""Celery tasks: one more thin way in. They hold no logic and carry no state."""

from bson import ObjectId
from celery import shared_task

from callbacks import outbox, worker
from domain.states import Channel, Priority
from domain.time import utc_now
from notifyproject.platform import process

from . import (
    alerts,
    broadcasts,
    callback_hints,
    content_removal,
    hints,
    operations,
    recovery,
    rollup,
    schedule,
    telling,
    working,
)
from .lanes import Lane, Ticket


@shared_task(name=hints.DELIVER)
def deliver(ids: list[str], channel: str, priority: str) -> None:
    """Send what of these deliveries is due."""
    working.deliver(
        [ObjectId(one) for one in ids], channel=Channel(channel), priority=Priority(priority)
    )


@shared_task(name=hints.DRAW)
def draw(client_id: str, channel: str, priority: str, ticket: tuple[int, str] | None) -> None:
    """Send the next batch of what is due of a client in a lane."""
    lane = Lane(ObjectId(client_id), Channel(channel), Priority(priority))
    working.draw(lane, Ticket(*ticket) if ticket else None)


@shared_task(name=hints.BROADCAST)
def broadcast(broadcast_id: str) -> None:
    """Tell the next people of a broadcast's audience."""
    broadcasts.go_on(ObjectId(broadcast_id))


@shared_task(name=callback_hints.TELL)
def tell() -> None:
    """Tell apps what has changed."""
    telling.tell(now=utc_now())


@shared_task(name=outbox.CALL)
def call_back(client_id: str) -> None:
    """Send an app what it is to be told."""
    worker.run_round(ObjectId(client_id), clock=utc_now, is_stopping=process.is_shutting_down)


@shared_task(name=schedule.CALLBACKS)
def callbacks() -> None:
    """Find what apps are to be told and no hint reached; every minute, by beat's schedule."""
    telling.tell(now=utc_now())
    worker.sweep(now=utc_now())


@shared_task(name=schedule.RETENTION)
def remove_content() -> None:
    """Remove what old notifications say; every minute, by beat's schedule."""
    content_removal.remove_due(now=utc_now())


@shared_task(name=hints.CANARY)
def canary() -> None:
    """Say that a worker is alive and gets what is published."""
    recovery.note_canary(now=utc_now())


@shared_task(name=hints.OPERATE)
def operate(operation_id: str) -> None:
    """Go on with a bulk operation."""
    operations.work(ObjectId(operation_id))


@shared_task(name=schedule.ROLL_UP)
def roll_up() -> None:
    """Bring the figures over time up to date; every minute, by beat's schedule."""
    rollup.run(now=utc_now())


@shared_task(name=schedule.ALERTS)
def look_for_trouble() -> None:
    """Look at the alert rules; every minute, by beat's schedule."""
    alerts.evaluate(now=utc_now())


@shared_task(name=schedule.SWEEP)
def sweep() -> None:
    """Find what no hint reached; four times a minute, by beat's schedule."""
    recovery.sweep_in_turn(now=utc_now())
