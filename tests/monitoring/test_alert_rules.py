"""What raises an alert beside failures, and the rules that are shipped."""

import pytest

from access.models import StaffUser
from analytics.models import AlertKind
from background import tasks
from delivery import circuit_breaker
from monitoring import alert_rules, alerts
from notifyproject.db.collections import collection
from providers import registry
from tests.support.factories import notifications as factories
from tests.support.factories.alerts import MINUTE, NOW, fail, found, look, told

pytestmark = pytest.mark.usefixtures("db", "calm")


def kinds() -> set[str]:
    return {one["kind"] for one in found() if one["is_open"]}


def test_an_open_circuit_raises_one_for_its_account() -> None:
    account = registry.sendgrid().account
    circuit_breaker.trip(account, now=NOW, retry_after=600, reason="The key is revoked.")
    circuit_breaker.trip("sandbox-fcm:1", now=NOW, retry_after=600)
    look(NOW + MINUTE)
    (incident,) = found()
    assert (incident["kind"], incident["broken_channel"]) == (AlertKind.BREAKER_OPEN, "email")
    assert "The key is revoked." in incident["detail"]
    circuit_breaker.close(account)
    look(NOW + 4 * MINUTE)
    assert kinds() == set()


def test_work_that_nobody_takes_raises_one_after_five_minutes() -> None:
    factories.accepted()
    look(NOW + 5 * MINUTE)
    assert kinds() == set()
    look(NOW + 6 * MINUTE)
    assert kinds() == {AlertKind.WORK_OVERDUE}


def test_no_sweep_raises_one_after_three_minutes() -> None:
    alerts.evaluate(now=NOW + 3 * MINUTE)
    assert kinds() == set()
    alerts.evaluate(now=NOW + 4 * MINUTE)
    assert kinds() == {AlertKind.SWEEP_OVERDUE}


def test_somebody_else_than_beat_notices_a_standstill(maria: StaffUser) -> None:
    fail(11)
    alerts.evaluate_stalled(now=NOW + 4 * MINUTE)
    assert kinds() == {AlertKind.SWEEP_OVERDUE}
    assert len(told()) == 1


def test_a_provider_that_stays_paused_raises_one() -> None:
    circuit_breaker.pause("sendgrid", by="rui", reason="", now=NOW)
    look(NOW + 60 * MINUTE)
    assert kinds() == set()
    look(NOW + 61 * MINUTE)
    assert kinds() == {AlertKind.PROVIDER_PAUSED}
    assert found()[0]["broken_channel"] == "email"


def test_a_callback_that_was_switched_off_raises_one_unless_an_operator_did_it() -> None:
    for reason in ("failing", "by_operator"):
        collection("callbacks").insert_one(
            {"host": "app.example.com", "disabled_at": NOW, "disabled_reason": reason}
        )
    look(NOW + MINUTE)
    (incident,) = found()
    assert incident["kind"] == AlertKind.CALLBACK_DISABLED
    assert "app.example.com" in incident["detail"]


def test_beat_has_the_rules_looked_at_every_minute() -> None:
    tasks.evaluate_alerts()
    assert kinds() == {AlertKind.SWEEP_OVERDUE}, "the sweep of these tests is of yesterday"


def test_shipped_rules_stay_as_operators_changed_them() -> None:
    collection("alert_rules").update_one({"slug": "failures"}, {"$set": {"threshold": 99}})
    alert_rules.add_missing_rules()
    assert len(alert_rules.enabled_rules()) == len(alert_rules.SHIPPED_RULES)
    assert {rule.threshold for rule in alert_rules.enabled_rules()} >= {99}
