"""Celery tasks: one more thin way in. They hold no logic and carry no state."""

from bson import ObjectId
from celery import shared_task

from . import dispatch, hints, recovery
from .states import Channel, Priority
from .timing import utc_now


@shared_task(name=hints.DELIVER)
def deliver(ids: list[str], channel: str) -> None:
    """Send what of these deliveries is due."""
    report = dispatch.deliver([ObjectId(one) for one in ids], channel=Channel(channel))
    now = utc_now()
    for wakeup in report.wakeups:
        hints.publish(
            [wakeup.notification_id],
            channel=wakeup.channel,
            priority=Priority(wakeup.priority),
            at=wakeup.at,
            now=now,
        )


@shared_task(name="notifications.sweep")
def sweep() -> None:
    """Find what no hint reached; every minute, by beat's schedule."""
    recovery.sweep(now=utc_now())
