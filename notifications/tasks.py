"""Celery tasks: one more thin way in. They hold no logic and carry no state."""

from bson import ObjectId
from celery import shared_task

from . import hints, recovery, working
from .lanes import Lane, Ticket
from .states import Channel, Priority
from .timing import utc_now


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


@shared_task(name=hints.CANARY)
def canary() -> None:
    """Say that a worker is alive and gets what is published."""
    recovery.note_canary(now=utc_now())


@shared_task(name="notifications.sweep")
def sweep() -> None:
    """Find what no hint reached; every minute, by beat's schedule."""
    recovery.sweep(now=utc_now())
