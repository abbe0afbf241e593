"""Failures, evaluations of the alert rules, and the resulting alerts."""

from datetime import datetime, timedelta
from typing import Any

from domain.errors import FailureCode
from domain.states import DeliveryStatus
from monitoring import alerts
from notifications.store import leases
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories

NOW = factories.NOON
MINUTE = timedelta(minutes=1)
S = DeliveryStatus


def swept(at: datetime) -> None:
    collection("heartbeats").update_one({"_id": "sweep"}, {"$set": {"at": at}}, upsert=True)


def fail(count: int, *, at: datetime = NOW, **fields: Any) -> None:
    for _ in range(count):
        begun = factories.started(at=at, created_at=at, **fields)
        code = FailureCode.REJECTED
        leases.settle([factories.settlement(begun, S.FAILED, at=at, code=code)], now=at)


def evaluate(at: datetime) -> int:
    """Record a sweep, and evaluate the alert rules."""
    swept(at)
    return alerts.evaluate(now=at)


def found() -> list[dict[str, Any]]:
    return list(collection("incidents").find().sort("_id", 1))


def sent_alerts() -> list[dict[str, Any]]:
    return list(collection("notifications").find({"type": "system_alert"}).sort("created_at", 1))


def subjects() -> list[str]:
    return [alert["content"]["subject"] for alert in sent_alerts()]
