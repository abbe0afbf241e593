"""Retention of notifications by category, and purge dates."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from domain.channels import Channel
from domain.errors import FailureCode
from domain.plans import Until
from domain.states import Category, DeliveryStatus
from domain.time import utc_now
from notifications.actions import actions
from notifications.catalog import retention
from notifications.intake import acceptance, requests
from notifications.store import actions as store_actions
from notifications.store import leases
from notifications.store.claims import NotSent
from notifications.store.new_notifications import NewDelivery
from notifyproject.db.collections import collection
from privacy import purge
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")

S = DeliveryStatus
DAY = timedelta(days=1)
C = Category


def set_days(category: Category, **days: int | None) -> None:
    policies = collection("retention_policies")
    policies.update_one({"_id": category.value}, {"$set": days}, upsert=True)
    retention.invalidate_retention()


def retention_days(category: Category = C.TRANSACTIONAL) -> tuple[int, int]:
    policy = retention.retention_of(category)
    return policy.content.days, policy.metadata.days


def test_settings_apply_unless_the_category_has_days(settings: Any) -> None:
    assert retention_days() == (30, 90)
    settings.RETENTION_CONTENT_DAYS, settings.RETENTION_METADATA_DAYS = 10, 400
    retention.invalidate_retention()
    set_days(C.MARKETING, content_days=3)
    assert (retention_days(), retention_days(C.MARKETING)) == ((10, 400), (3, 400))


def test_content_is_kept_no_longer_than_the_notification(settings: Any) -> None:
    set_days(C.ALERT, metadata_days=7)
    assert retention_days(C.ALERT) == (7, 7)


def test_policies_are_read_once() -> None:
    retention.invalidate_retention()
    with plans("retention_policies") as found:
        for category in [*Category] * 100:
            retention.purge_at(category, send_at=NOON)
    assert len(found) == 1


def test_missing_policy_is_added_and_others_are_kept() -> None:
    set_days(C.ALERT, content_days=5)
    collection("retention_policies").delete_one({"_id": "marketing"})
    assert retention_days(C.MARKETING) == (30, 90)
    retention.add_missing_policies()
    retention.invalidate_retention()
    assert collection("retention_policies").count_documents({}) == len(Category)
    assert retention_days(C.ALERT) == (5, 90)


def test_resend_is_kept_by_the_current_policy(broker: Any) -> None:
    document = factories.settled(S.FAILED)
    set_days(C.TRANSACTIONAL, metadata_days=14)
    resent = actions.resend(notification_id=document["_id"], channels=None, now=NOON + DAY)
    assert resent["purge_at"] == NOON + 15 * DAY


def test_accepted_notification_is_kept_by_its_policy(broker: Any) -> None:
    set_days(C.ALERT, metadata_days=14)
    request = requests.NotificationRequest(
        type="alert",
        user_id="ada",
        recipient=requests.NotificationRecipientRequest(email="ada@example.com"),
        content=requests.ContentRequest(subject="Hot", body="It is hot."),
    )
    caller = requests.Caller(client_id=factories.CLIENT)
    accepted = acceptance.accept(request, caller=caller, now=NOON)
    assert factories.read(accepted.document["_id"])["purge_at"] == NOON + 14 * DAY


@pytest.mark.parametrize("how", ["held", "retried", "later step", "rescheduled"])
def test_open_notification_is_not_purged_before_it_is_due(how: str) -> None:
    due_at = NOON + 300 * DAY
    if how == "held":
        claimed = factories.claimed()
        held = NotSent(claimed, S.PENDING, FailureCode.OVER_LIMIT, "3 of 3.", due_at)
        leases.settle_not_sent([held], now=NOON)
        notification_id = claimed.notification_id
    elif how == "retried":
        started = factories.started()
        retry = factories.settlement(started, S.PENDING, next_attempt_at=due_at)
        leases.settle([retry], now=NOON)
        notification_id = started.notification_id
    elif how == "later step":
        first = NewDelivery(channel=Channel.WHATSAPP, step=1)
        second = NewDelivery(channel=Channel.EMAIL, step=2, delay=300 * DAY)
        document = factories.accepted(deliveries=(first, second), plan_until=Until.READ)
        notification_id = document["_id"]
    else:
        notification_id = factories.accepted()["_id"]
        store_actions.reschedule(notification_id=notification_id, send_at=due_at, now=NOON)
    stored = factories.read(notification_id)
    assert due_at in [delivery.get("next_attempt_at") for delivery in stored["delivery"]]
    assert stored["purge_at"] >= due_at + 7 * DAY


def test_reopened_notification_is_not_purged_while_open() -> None:
    document = factories.settled(S.FAILED)
    late = document["purge_at"] - timedelta(minutes=1)
    early = factories.settled(S.FAILED)
    for item, now, purge_at in (
        (document, late, late + 14 * DAY),
        (early, NOON, early["purge_at"]),
    ):
        reopened = store_actions.reopen(
            notification_id=item["_id"], channels=[Channel.EMAIL], now=now
        )
        assert reopened is not None
        assert reopened["purge_at"] == purge_at


def test_backfill_sets_purge_dates_of_notifications_and_attempts() -> None:
    over = factories.settled(S.SENT)
    later = factories.settled(S.SENT, scheduled_at=NOON + DAY)
    waiting = factories.accepted()
    other = factories.settled(S.SENT, category=C.MARKETING)
    set_days(C.TRANSACTIONAL, metadata_days=14)
    changes = purge.count_purge_date_changes(now=NOON)
    assert changes == purge.PurgeDateChanges(notifications=2, deleted=0)
    assert purge.count_purge_date_changes(now=NOON + 15 * DAY).deleted == 2
    assert purge.backfill_purge_dates() == 2
    for document, until in ((over, NOON + 14 * DAY), (later, NOON + 15 * DAY)):
        assert factories.read(document["_id"])["purge_at"] == until
        assert [a["purge_at"] for a in factories.attempts(document["_id"])] == [until]
    for document in (waiting, other):
        assert factories.read(document["_id"])["purge_at"] == document["purge_at"]
    assert purge.backfill_purge_dates() == 0


def test_backfill_finds_notifications_by_category() -> None:
    for _ in range(3):
        factories.settled(S.SENT)
    with plans("notifications") as found:
        purge.backfill_purge_dates()
    assert all(plan.is_by_id or "category: 1" in plan.summary for plan in found)
    assert not any(plan.sorts for plan in found)


def test_command_reports_changes_before_making_them() -> None:
    at = utc_now() - 10 * DAY
    factories.settled(S.SENT, at=at, created_at=at)
    set_days(C.TRANSACTIONAL, metadata_days=8, content_days=8)
    output = io.StringIO()
    call_command("remove_content", "--existing", "--dry-run", stdout=output)
    changes = "1 purge dates would change; 1 of these notifications would be deleted at once."
    assert changes in output.getvalue()
    set_days(C.TRANSACTIONAL, metadata_days=60, content_days=8)
    call_command("remove_content", "--existing", stdout=output)
    assert "1 purge dates changed." in output.getvalue()
