"""The runner of bulk operations: actions, skipped deliveries, and rate."""

from datetime import timedelta

import pytest

from delivery import sweeper
from domain.channels import Channel
from domain.queues import SERVICE
from domain.states import BulkAction, BulkOutcome, BulkStage, DeliveryStatus, NotificationStatus
from notifications.actions import actions
from notifications.actions.risk import RiskKind
from notifications.bulk import decisions, repository, runner, selection
from notifications.bulk import operation as bulk_operation
from notifications.bulk.operation import Selection
from notifications.queueing import wakeups
from notifications.store import leases
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tasks import tasks
from tests.support.factories import notifications as factories
from tests.support.factories.bulk import (
    EMAIL,
    EVERYTHING,
    MARIA,
    Time,
    failed,
    finish,
    previewed,
    rows,
    started,
    statuses,
    stored,
)
from tests.support.factories.notifications import NOON

S = DeliveryStatus


def test_retry_reopens_safe_deliveries(clock: Time) -> None:
    ids = failed(3)
    operation = finish(clock, started(clock))
    assert operation.stage is BulkStage.COMPLETED
    assert operation.counts == {BulkOutcome.DONE: 3}
    assert statuses(ids) == ["pending"] * 3
    assert {row["outcome"] for row in rows(operation).values()} == {"done"}
    assert operation.finished_at is not None


def test_resend_creates_linked_notifications(clock: Time) -> None:
    ids = failed(2)
    operation = finish(clock, started(clock, previewed(clock, action=BulkAction.RESEND)))
    assert operation.counts == {BulkOutcome.DONE: 2}
    for notification_id in ids:
        (resend,) = collection("notifications").find({"resent_from": notification_id})
        assert resend["_id"] == bulk_operation.resend_id(operation, notification_id)
        assert factories.read(notification_id)["resent_as"] == [resend["_id"]]


@pytest.mark.parametrize("action", [BulkAction.RETRY, BulkAction.RESEND])
def test_resent_notification_may_duplicate(clock: Time, action: BulkAction) -> None:
    failed(2)
    finish(clock, started(clock, previewed(clock, action=BulkAction.RESEND)))
    assert previewed(clock, action=action).preview_counts == {"may_duplicate": 2}
    # A resend that failed too does not duplicate.
    for resend in collection("notifications").find({"resent_from": {"$ne": None}}):
        begun = factories.start(factories.claim(resend["_id"], at=clock.at), at=clock.at)
        leases.settle([factories.settlement(begun, S.FAILED, at=clock())], now=clock.at)
    since = selection.select_failures(channel=EMAIL, code=None, since=None)
    originals = Selection(
        match={"$and": [since.match, {"resent_from": None}]}, order=since.order, description=()
    )
    assert previewed(clock, action=action, selected=originals).preview_counts == {"safe": 2}


def test_cancel_withdraws_pending_deliveries(clock: Time) -> None:
    document = factories.accepted()
    finish(clock, started(clock, previewed(clock, action=BulkAction.CANCEL, selected=EVERYTHING)))
    delivery = factories.delivery(factories.read(document["_id"]))
    assert (delivery["status"], delivery["failure_reason"]) == ("cancelled", "Cancelled by maria.")


def test_reschedule_moves_unattempted_deliveries(clock: Time) -> None:
    waiting = factories.accepted(send_at=clock.at + timedelta(hours=1))["_id"]
    attempted = factories.settled(S.PENDING)["_id"]
    later = clock.at + timedelta(hours=5)
    ready = previewed(clock, action=BulkAction.RESCHEDULE, selected=EVERYTHING, send_at=later)
    assert ready.preview_counts == {"safe": 1, runner.NO_DELIVERY: 1}
    finish(clock, started(clock, ready))
    assert factories.read(waiting)["scheduled_at"] == later
    assert "scheduled_at" not in factories.read(attempted)


def test_run_now_makes_scheduled_deliveries_due(clock: Time) -> None:
    waiting = factories.accepted(send_at=clock.at + timedelta(hours=1))["_id"]
    ready = previewed(clock, action=BulkAction.RUN_NOW, selected=EVERYTHING)
    finish(clock, started(clock, ready))
    assert factories.read(waiting)["due_at"] <= clock.at


def test_excluded_risk_is_skipped_with_its_reason(clock: Time) -> None:
    (notification_id,) = failed()
    operation = finish(
        clock,
        started(
            clock,
            included_risks=frozenset({RiskKind.MAY_DUPLICATE}),
            duplicate_reason="They call us.",
        ),
    )
    assert statuses([notification_id]) == ["failed"]
    assert (operation.counts, operation.reasons) == ({BulkOutcome.SKIPPED: 1}, {"safe": 1})


def test_risk_is_assessed_again_on_execution(clock: Time) -> None:
    (notification_id,) = failed()
    operation = started(clock)
    factories.suppress(reason=SuppressionReason.COMPLAINT, at=clock())
    operation = finish(clock, operation)
    assert statuses([notification_id]) == ["failed"]
    assert operation.reasons == {"suppressed": 1}
    assert rows(operation)[notification_id]["risk"] == "suppressed"


def test_delivery_changed_since_the_preview_is_skipped(clock: Time) -> None:
    first, second = failed(2)
    operation = started(clock)
    actions.retry(notification_id=first, channels=None, now=clock())
    collection("notifications").delete_one({"_id": second})
    operation = finish(clock, operation)
    assert operation.counts == {BulkOutcome.SKIPPED: 2}
    assert operation.reasons == {"changed": 1, "gone": 1}
    assert rows(operation)[first]["detail"].endswith("now pending.")


def test_delivery_that_failed_again_since_the_preview_is_skipped(clock: Time) -> None:
    (notification_id,) = failed()
    operation = started(clock)
    actions.retry(notification_id=notification_id, channels=None, now=clock())
    again = factories.start(factories.claim(notification_id, at=clock.at), at=clock.at)
    leases.settle([factories.settlement(again, S.FAILED, at=clock())], now=clock.at)
    operation = finish(clock, operation)
    assert statuses([notification_id]) == ["failed"]
    assert operation.reasons == {"changed": 1}


def test_delivery_that_no_longer_matches_is_skipped(clock: Time) -> None:
    document = factories.accepted()
    selected = Selection(
        match={"status": NotificationStatus.QUEUED.value}, order="created_at", description=()
    )
    operation = started(clock, previewed(clock, action=BulkAction.CANCEL, selected=selected))
    factories.claim(document["_id"])
    collection("notifications").update_one(
        {"_id": document["_id"]}, {"$set": {"status": NotificationStatus.RETRYING.value}}
    )
    operation = finish(clock, operation)
    (row,) = rows(operation).values()
    assert (row["outcome"], row["detail"]) == ("skipped", runner.UNMATCHED_DETAIL)


def test_erased_notification_is_skipped(clock: Time) -> None:
    (notification_id,) = failed(expires_at=NOON + timedelta(days=2))
    operation = started(clock)
    collection("notifications").update_one(
        {"_id": notification_id}, {"$set": {"erased_at": clock.at, "expires_at": clock.at}}
    )
    operation = finish(clock, repository.get(operation.id) or operation)
    assert operation.counts == {BulkOutcome.SKIPPED: 1}
    assert operation.reasons == {"will_fail_again": 1}


def test_each_channel_is_assessed_separately(clock: Time) -> None:
    channels = (Channel.EMAIL, Channel.IN_APP)
    notification_id = factories.settled(S.FAILED, channels=channels)["_id"]
    selected = selection.select_failures(channel=None, code=None, since=None)
    operation = finish(clock, started(clock, previewed(clock, selected=selected)))
    document = factories.read(notification_id)
    assert operation.counts == {BulkOutcome.DONE: 1}
    assert factories.delivery(document)["status"] == "pending"
    assert factories.delivery(document, Channel.IN_APP)["status"] == "delivered"


def test_capped_operation_assesses_the_rest(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "PAGE_SIZE", 2)
    monkeypatch.setattr(runner, "PREVIEW_CAP", 2)
    ids = failed(5)
    operation = finish(clock, started(clock))
    assert statuses(ids) == ["pending"] * 5
    assert (operation.is_capped, operation.counts) == (True, {BulkOutcome.DONE: 5})


def test_operation_respects_its_rate(clock: Time) -> None:
    ids = failed(5)
    operation = started(clock, per_second=2)
    assert runner.run(operation.id, clock=clock)
    assert statuses(ids).count("pending") == 2
    # The next batch waits for the end of the second.
    assert not runner.run(operation.id, clock=clock)
    clock.at += timedelta(seconds=1)
    runner.run(operation.id, clock=clock)
    assert statuses(ids).count("pending") == 4
    assert finish(clock, operation).counts == {BulkOutcome.DONE: 5}


def test_audit_log_names_the_user(clock: Time) -> None:
    (notification_id,) = failed()
    operation = finish(clock, started(clock))
    lines = {row["change_message"]: row for row in collection("django_admin_log").find()}
    assert "Started: SendGrid is well again" in lines
    own = lines[f"Retried on email by bulk operation {operation.id}."]
    assert (own["object_id"], own["user_id"]) == (str(notification_id), MARIA.id)


def test_each_step_sends_a_wakeup(clock: Time) -> None:
    failed()
    requested = decisions.preview(
        action=BulkAction.RETRY, selection=EVERYTHING, by=MARIA, now=clock()
    )
    assert wakeups.depth(SERVICE) == 1
    tasks.run_bulk_operation(str(requested.id))
    started(clock, stored(requested))
    assert wakeups.depth(SERVICE) == 2
    decisions.pause(requested.id, by=MARIA, now=clock())
    decisions.resume(requested.id, by=MARIA, now=clock())
    assert wakeups.depth(SERVICE) == 3


def test_sweep_wakes_up_an_abandoned_operation(clock: Time) -> None:
    failed()
    operation = started(clock)
    depth = wakeups.depth(SERVICE) or 0
    sweeper.sweep(now=clock())
    # One wake-up, and the heartbeat of the sweep.
    assert wakeups.depth(SERVICE) == depth + 2
    finish(clock, operation)
    assert runner.enqueue_due(now=clock()) == 0
    assert stored(operation).stage is BulkStage.COMPLETED
