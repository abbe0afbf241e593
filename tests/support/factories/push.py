"""Pushes to devices, and what became of them."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from delivery import dispatcher
from delivery.dispatcher import BatchReport
from devices.preferences import Preferences
from domain.states import Channel
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import ScriptedProvider

RETRY = NOON + timedelta(minutes=6, seconds=1)
"""After the longest first wait of a normal priority."""


def push(**fields: Any) -> ObjectId:
    """Return a push that has just been accepted."""
    notification_id: ObjectId = factories.accepted(channels=[Channel.PUSH], **fields)["_id"]
    return notification_id


def deliver(
    *ids: ObjectId, at: datetime = NOON, clock: Callable[[], datetime] | None = None
) -> BatchReport:
    """Deliver pushes as one batch."""
    return dispatcher.dispatch(ids, channel=Channel.PUSH, clock=clock or (lambda: at))


def state(notification_id: ObjectId) -> dict[str, Any]:
    """Return how a push stands."""
    return factories.delivery(factories.read(notification_id), Channel.PUSH)


def delivery_status(notification_id: ObjectId) -> tuple[str, str | None]:
    """Return a push's status and what it failed of or waits for."""
    delivery = state(notification_id)
    return delivery["status"], delivery.get("failure_code")


def tokens(provider: ScriptedProvider) -> list[str]:
    """Return the tokens it was asked to push to since the last time."""
    seen = sorted(outbound.recipient for outbound in provider.seen)
    provider.seen.clear()
    return seen


def in_quiet_hours(until: str) -> Preferences:
    """Return the wishes of a device that sleeps from eleven."""
    return Preferences(quiet_hours={"enabled": True, "start": "11:00", "end": until})
