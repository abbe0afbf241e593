"""Mails by two providers, and their results."""

from datetime import datetime
from typing import Any

from bson import ObjectId

from delivery import dispatcher
from delivery.dispatcher import BatchReport
from domain.states import Channel
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted
from tests.support.fakes.provider import ScriptedProvider

Mail = tuple[ScriptedProvider, ScriptedProvider]
"""The first has priority."""


def mails(count: int, **fields: Any) -> list[ObjectId]:
    return [accepted(**fields)["_id"] for _ in range(count)]


def deliver(*ids: ObjectId, at: datetime = NOON) -> BatchReport:
    return dispatcher.dispatch(ids, channel=Channel.EMAIL, clock=lambda: at)


def state(notification_id: ObjectId) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id))


def delivery_status(notification_id: ObjectId) -> tuple[str, str | None]:
    """Return a mail's status and failure code."""
    delivery = state(notification_id)
    return delivery["status"], delivery.get("failure_code")


def attempts_used(notification_id: ObjectId) -> int:
    """Return the number of attempts that count."""
    delivery = state(notification_id)
    used: int = delivery["attempt_count"] - delivery["excused_count"]
    return used


def history(notification_id: ObjectId) -> list[tuple[str, str]]:
    """Return the provider and status of each attempt."""
    return [(a["provider"], a["status"]) for a in factories.attempts(notification_id)]
