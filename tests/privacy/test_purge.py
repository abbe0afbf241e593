"""How long the notifications of a category are kept, and when they are deleted."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command

from domain.states import Category, Channel, DeliveryStatus
from domain.time import utc_now
from notifications import store
from notifications.catalog import retention
from notifications.intake import acceptance, requests
from notifications.resend import actions
from notifyproject.db.collections import collection
from privacy import purge
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")

S = DeliveryStatus
DAY = timedelta(days=1)
C = Category


def given(category: Category, **days: int | None) -> None:
    """Give a category days of its own, as the console does."""
    collection("retention_policies").update_one(
        {"_id": category.value}, {"$set": days}, upsert=True
    )
    retention.invalidate_retention()


def kept(category: Category = C.TRANSACTIONAL) -> tuple[int, int]:
    policy = retention.retention_of(category)
    return policy.content.days, policy.metadata.days


# The days.


def test_the_settings_say_it_unless_the_category_does(settings: Any) -> None:
    assert kept() == (30, 90)
    settings.RETENTION_CONTENT_DAYS, settings.RETENTION_METADATA_DAYS = 10, 400
    retention.invalidate_retention()
    given(C.MARKETING, content_days=3)
    assert (kept(), kept(C.MARKETING)) == ((10, 400), (3, 400))


def test_content_is_never_kept_longer_than_the_document(settings: Any) -> None:
    given(C.ALERT, metadata_days=7)
    assert kept(C.ALERT) == (7, 7)


def test_they_are_read_once_for_many_notifications() -> None:
    retention.invalidate_retention()
    with plans("retention_policies") as found:
        for category in [*Category] * 100:
            retention.purge_at(category, send_at=NOON)
    assert len(found) == 1


def test_a_category_without_a_row_is_given_one_and_keeps_what_it_has() -> None:
    given(C.ALERT, content_days=5)
    collection("retention_policies").delete_one({"_id": "marketing"})
    assert kept(C.MARKETING) == (30, 90)
    retention.add_missing_policies()
    retention.invalidate_retention()
    assert collection("retention_policies").count_documents({}) == len(Category)
    assert kept(C.ALERT) == (5, 90)


# When a notification is deleted.


def test_a_resend_is_kept_as_its_category_says_today(broker: Any) -> None:
    document = factories.settled(S.FAILED)
    given(C.TRANSACTIONAL, metadata_days=14)
    resent = actions.resend(notification_id=document["_id"], channels=None, now=NOON + DAY)
    assert resent["purge_at"] == NOON + 15 * DAY


def test_what_is_accepted_is_kept_as_its_category_says(broker: Any) -> None:
    given(C.ALERT, metadata_days=14)
    request = requests.NotificationRequest(
        type="alert",
        user_id="ada",
        recipient=requests.NotificationRecipientRequest(email="ada@example.com"),
        content=requests.ContentRequest(subject="Hot", body="It is hot."),
    )
    caller = requests.Caller(client_id=factories.CLIENT)
    accepted = acceptance.accept(request, caller=caller, now=NOON)
    assert factories.read(accepted.document["_id"])["purge_at"] == NOON + 14 * DAY


def test_what_is_opened_again_at_its_end_is_not_deleted_while_it_is_open() -> None:
    document = factories.settled(S.FAILED)
    late = document["purge_at"] - timedelta(minutes=1)
    reopened = store.reopen(
        notification_id=document["_id"], channels=[Channel.EMAIL], extra_attempts=4, now=late
    )
    assert reopened is not None
    assert reopened["purge_at"] == late + 14 * DAY
    early = factories.settled(S.FAILED)
    kept_ = store.reopen(
        notification_id=early["_id"], channels=[Channel.EMAIL], extra_attempts=4, now=NOON
    )
    assert kept_ is not None
    assert kept_["purge_at"] == early["purge_at"]


# What is there already.


def test_what_is_there_is_given_the_new_time_with_its_attempts_when_somebody_asks() -> None:
    over = factories.settled(S.SENT)
    later = factories.settled(S.SENT, scheduled_at=NOON + DAY)
    waiting = factories.accepted()
    other = factories.settled(S.SENT, category=C.MARKETING)
    given(C.TRANSACTIONAL, metadata_days=14)
    assert purge.count_purge_date_changes(now=NOON) == purge.PurgeDateChanges(
        notifications=2, deleted=0
    )
    assert purge.count_purge_date_changes(now=NOON + 15 * DAY).deleted == 2
    assert purge.backfill_purge_dates() == 2
    for document, until in ((over, NOON + 14 * DAY), (later, NOON + 15 * DAY)):
        assert factories.read(document["_id"])["purge_at"] == until
        assert [a["purge_at"] for a in factories.attempts(document["_id"])] == [until]
    for document in (waiting, other):
        assert factories.read(document["_id"])["purge_at"] == document["purge_at"]
    assert purge.backfill_purge_dates() == 0


def test_they_are_found_by_their_category() -> None:
    for _ in range(3):
        factories.settled(S.SENT)
    with plans("notifications") as found:
        purge.backfill_purge_dates()
    assert all(plan.is_by_id or "category: 1" in plan.summary for plan in found)
    assert not any(plan.sorts for plan in found)


def test_the_command_says_first_what_it_would_do() -> None:
    at = utc_now() - 10 * DAY
    factories.settled(S.SENT, at=at, created_at=at)
    given(C.TRANSACTIONAL, metadata_days=8, content_days=8)
    said = io.StringIO()
    call_command("retain", "--existing", "--dry-run", stdout=said)
    assert (
        "1 purge dates would change; 1 of these notifications would be deleted at once."
        in said.getvalue()
    )
    given(C.TRANSACTIONAL, metadata_days=60, content_days=8)
    call_command("retain", "--existing", stdout=said)
    assert "1 purge dates changed." in said.getvalue()
