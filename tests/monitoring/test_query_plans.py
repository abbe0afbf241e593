"""Query plans of the roll-up, the dashboard, and alerts."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest

from domain.states import DeliveryStatus
from monitoring import alert_rules, alerts, dashboard, incidents, metrics, rollup, rollup_state
from monitoring.incidents import Finding
from monitoring.models import AlertKind, Interval
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import Plan, plans

pytestmark = pytest.mark.usefixtures("db", "broker")

NOON = factories.NOON
MINUTE = timedelta(minutes=1)
EARLIER = 60
"""Notifications of unrelated minutes."""


@pytest.fixture
def day() -> None:
    """Store an hour of counted traffic and an uncounted minute."""
    for minutes in range(EARLIER):
        at = NOON - timedelta(hours=2) + minutes * MINUTE
        factories.settled(DeliveryStatus.SENT, at=at, created_at=at)
    rollup.run(now=NOON - MINUTE)
    for status in (DeliveryStatus.SENT, DeliveryStatus.FAILED, DeliveryStatus.PENDING):
        factories.settled(status, at=NOON, created_at=NOON)


@contextmanager
def indexed(name: str, *, examined: int) -> Iterator[list[Plan]]:
    """Check that each query of a collection in the block is indexed and examines few documents."""
    with plans(name) as found:
        yield found
    assert found
    for plan in found:
        assert plan.is_indexed or plan.is_by_id, plan
        assert not plan.sorts, plan
        assert plan.examined <= examined, plan


@pytest.mark.parametrize(
    ("name", "examined"),
    [("notifications", 12), ("delivery_attempts", 12), ("metrics_aggregates", 600)],
)
def test_roll_up_reads_only_what_changed(day: None, name: str, examined: int) -> None:
    with indexed(name, examined=examined):
        rollup.run(now=NOON + MINUTE)


def test_due_minutes_are_found_by_due_time(day: None) -> None:
    rollup_state.mark_changed([NOON - timedelta(hours=n) for n in range(1, 20)], now=NOON)
    with indexed("metrics_due", examined=4):
        rollup.run(now=NOON + MINUTE)


def test_dashboard_reads_by_indexes(day: None) -> None:
    with indexed("metrics_aggregates", examined=30):
        dashboard.traffic(now=NOON)
        metrics.read(Interval.HOUR, since=NOON - timedelta(hours=3), until=NOON)
    with indexed("notifications", examined=8):
        dashboard.summarize_work(now=NOON + timedelta(hours=1))


def test_alerts_are_evaluated_by_indexes(day: None) -> None:
    alert_rules.add_missing_rules()
    for n in range(20):
        finding = Finding(
            rule_id=factories.CLIENT, kind=AlertKind.FAILURES, subject=str(n), title="x", detail="x"
        )
        incidents.record(finding, now=NOON - timedelta(hours=5))
    collection("incidents").update_many(
        {}, {"$set": {"is_open": False, "notified_open_at": NOON, "notified_resolved_at": NOON}}
    )
    with indexed("notifications", examined=2):
        alerts.evaluate(now=NOON + MINUTE)
    with indexed("incidents", examined=21):
        alerts.evaluate(now=NOON + 2 * MINUTE)
