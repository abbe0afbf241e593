"""Running scheduled deliveries now, retries, and resends."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.actions import actions
from notifications.store import actions as store_actions
from notifications.store import leases
from notifications.store.claims import NotSent
from notifications.store.new_notifications import NewDelivery
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

S = DeliveryStatus
SOON = NOON + timedelta(minutes=1)
HOUR = timedelta(hours=1)


def run(document: Any) -> Any:
    return actions.run_now(notification_id=document["_id"], now=SOON)


def test_run_now_makes_a_scheduled_notification_due() -> None:
    later = NOON + 5 * HOUR
    document = factories.accepted(
        send_at=later, scheduled_at=later, ttl_seconds=600, expires_at=later + HOUR / 6
    )
    assert document["status"] == "created"
    after = run(document)
    assert after["status"] == "queued"
    assert after["due_at"] == after["scheduled_at"] == SOON
    assert after["expires_at"] == SOON + timedelta(seconds=600)


def test_run_now_makes_a_retry_due() -> None:
    document = factories.settled(S.PENDING)
    (before,) = document["delivery"]
    (after,) = run(document)["delivery"]
    assert after["next_attempt_at"] == SOON
    for unchanged in ("attempt_count", "max_attempts", "first_due_at", "failure_code"):
        assert after[unchanged] == before[unchanged]


def test_run_now_ends_quiet_hours() -> None:
    claim = factories.claimed()
    leases.settle_not_sent(
        [
            NotSent(
                claimed=claim,
                status=S.PENDING,
                code=FailureCode.QUIET_HOURS,
                reason="The person's quiet hours.",
                next_attempt_at=NOON + 9 * HOUR,
            )
        ],
        now=NOON,
    )
    (after,) = run(factories.read(claim.notification_id))["delivery"]
    assert (after["status"], after["next_attempt_at"]) == ("pending", SOON)


def test_run_now_makes_a_later_step_due() -> None:
    document = factories.accepted(
        deliveries=(
            NewDelivery(channel=Channel.EMAIL),
            NewDelivery(channel=Channel.PUSH, step=2, delay=HOUR),
        )
    )
    after = factories.delivery(run(document), Channel.PUSH)
    assert after["next_attempt_at"] == after["first_due_at"] == SOON


def test_run_now_refuses_a_claimed_delivery() -> None:
    begun = factories.started()
    with pytest.raises(actions.InvalidStateError):
        run({"_id": begun.notification_id})


@each_case("status", [S.SENT, S.FAILED, S.UNKNOWN])
def test_run_now_refuses_unscheduled_deliveries(status: DeliveryStatus) -> None:
    document = factories.settled(status)
    with pytest.raises(actions.InvalidStateError):
        run(document)
    assert factories.read(document["_id"]) == document


def test_run_now_of_an_unknown_notification_raises_lookup_error() -> None:
    with pytest.raises(LookupError):
        run({"_id": ObjectId()})


@pytest.mark.parametrize("max_attempts", [3, 9])
def test_resend_grants_the_attempts_of_the_original_anew(max_attempts: int) -> None:
    document = factories.settled(S.FAILED, max_attempts=max_attempts)
    resent = actions.resend(notification_id=document["_id"], channels=None, now=SOON)
    assert [delivery["max_attempts"] for delivery in resent["delivery"]] == [max_attempts]
    retried = actions.retry(notification_id=document["_id"], channels=None, now=SOON)
    assert retried["delivery"][0]["max_attempts"] > max_attempts
    again = actions.resend(notification_id=document["_id"], channels=None, now=SOON)
    assert [delivery["max_attempts"] for delivery in again["delivery"]] == [max_attempts]


def test_retry_refuses_what_a_concurrent_retry_with_a_later_time_reopened() -> None:
    document = factories.settled(S.FAILED)
    later = SOON + timedelta(milliseconds=3)
    reopened = actions.retry(notification_id=document["_id"], channels=None, now=later)
    with pytest.raises(actions.InvalidStateError):
        actions.retry(notification_id=document["_id"], channels=None, now=SOON)
    assert factories.read(document["_id"]) == reopened


def test_of_concurrent_runs_of_a_waiting_delivery_one_changes_it() -> None:
    document = factories.settled(S.PENDING)
    later = SOON + timedelta(milliseconds=3)
    due = store_actions.make_due_now(notification_id=document["_id"], now=later)
    assert due is not None
    assert store_actions.make_due_now(notification_id=document["_id"], now=SOON) is None
    assert factories.read(document["_id"]) == due
