"""Pausing, resuming, and cancelling broadcasts."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import sweeper
from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.actions.actions import InvalidStateError
from notifications.broadcasts import control, repository, runner
from notifications.queueing import backlog
from notifications.store import leases
from notifyproject.db.collections import collection
from tests.support.broker_messages import queued_messages
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import (
    begun,
    leased,
    notified_users,
    read,
    recipients,
    run_page,
    run_to_completion,
    send_page,
)
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")

MINUTE = timedelta(minutes=1)
LATER = NOON + repository.LEASES.length
S = DeliveryStatus


def completed(count: int) -> ObjectId:
    """Return a completed broadcast whose notifications are pending."""
    recipients(count)
    broadcast_id = begun()
    run_to_completion(broadcast_id)
    return broadcast_id


def statuses(broadcast_id: ObjectId) -> list[str]:
    found = collection("notifications").find({"broadcast_id": broadcast_id})
    return sorted(document["delivery"][0]["status"] for document in found)


def first_of(broadcast_id: ObjectId) -> ObjectId:
    found = collection("notifications").find({"broadcast_id": broadcast_id}).sort("user_id", 1)
    return ObjectId(next(found)["_id"])


def test_pause_keeps_accepted_notifications_pending() -> None:
    recipients(5)
    broadcast_id = begun()
    run_page(broadcast_id)
    control.pause(broadcast_id, now=NOON)
    assert statuses(broadcast_id) == ["pending"] * 3
    factories.claim(first_of(broadcast_id))
    assert not run_page(broadcast_id)


def test_paused_broadcast_gets_no_wakeups(broker: redis.Redis) -> None:
    broadcast_id = begun()
    control.pause(broadcast_id, now=NOON)
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert queued_messages(broker, "broadcasts") == []
    control.resume(broadcast_id, now=NOON)
    assert [message.args for message in queued_messages(broker, "broadcasts")] == [
        [str(broadcast_id)]
    ]


def test_broadcast_resumed_early_waits_for_its_time() -> None:
    recipients(1)
    at = NOON + MINUTE
    broadcast_id = begun(scheduled_at=at.isoformat())
    control.pause(broadcast_id, now=NOON)
    assert not run_page(broadcast_id, at=at)
    assert control.resume(broadcast_id, now=NOON)["status"] == "scheduled"
    assert not run_page(broadcast_id)
    control.pause(broadcast_id, now=NOON)
    assert control.resume(broadcast_id, now=at)["status"] == "running"
    assert run_page(broadcast_id, at=at)


def test_repeated_control_changes_nothing() -> None:
    broadcast_id = begun()
    assert control.resume(broadcast_id, now=NOON)["status"] == "running"
    for _ in range(2):
        assert control.pause(broadcast_id, now=NOON)["status"] == "paused"
    for _ in range(2):
        assert control.cancel(broadcast_id, now=NOON)["status"] == "cancelling"
    run_to_completion(broadcast_id)
    assert control.cancel(broadcast_id, now=NOON)["status"] == "cancelled"


def test_ended_broadcast_is_neither_paused_nor_resumed() -> None:
    broadcast_id = completed(1)
    for _ in range(2):
        for change in (control.pause, control.resume):
            with pytest.raises(InvalidStateError):
                change(broadcast_id, now=NOON)
        control.cancel(broadcast_id, now=NOON)


def test_unknown_broadcast_raises_lookup_error() -> None:
    for change in (control.pause, control.resume, control.cancel):
        with pytest.raises(LookupError):
            change(ObjectId(), now=NOON)


def test_cancelling_withdraws_pending_notifications_in_pages() -> None:
    recipients(20)
    broadcast_id = begun()
    for _ in range(3):
        run_page(broadcast_id)
    control.cancel(broadcast_id, now=NOON)
    assert run_to_completion(broadcast_id) == 4
    assert len(notified_users(broadcast_id)) == 9
    assert statuses(broadcast_id) == ["cancelled"] * 9
    done = read(broadcast_id)
    assert (done["status"], done["withdrawn"], done["finished_at"]) == ("cancelled", 9, NOON)
    (reason,) = {d["delivery"][0]["failure_reason"] for d in collection("notifications").find()}
    assert reason == "The broadcast was cancelled."


def test_cancelling_keeps_sent_notifications() -> None:
    broadcast_id = completed(3)
    attempt = factories.start(factories.claim(first_of(broadcast_id)))
    leases.settle([factories.settlement(attempt, S.SENT)], now=NOON)
    control.cancel(broadcast_id, now=NOON)
    assert "purge_at" not in read(broadcast_id)
    run_to_completion(broadcast_id)
    assert statuses(broadcast_id) == ["cancelled", "cancelled", "sent"]
    assert read(broadcast_id)["withdrawn"] == 2


def test_cancelling_invalidates_claims() -> None:
    broadcast_id = completed(1)
    claimed = factories.claim(first_of(broadcast_id))
    control.cancel(broadcast_id, now=NOON)
    run_to_completion(broadcast_id)
    assert leases.start([claimed], provider="sendgrid", worker="w", now=NOON) == []
    assert statuses(broadcast_id) == ["cancelled"]


def test_cancelling_waits_for_attempts_and_withdraws_their_retries() -> None:
    broadcast_id = completed(2)
    attempt = factories.start(factories.claim(first_of(broadcast_id)))
    control.cancel(broadcast_id, now=NOON)
    run_page(broadcast_id)
    waits = read(broadcast_id)
    assert (waits["status"], waits["withdrawn"]) == ("cancelling", 1)
    assert waits["due_at"] == NOON + runner.CANCEL_POLL_INTERVAL
    leases.settle([factories.settlement(attempt, S.PENDING)], now=NOON)
    run_to_completion(broadcast_id, at=NOON + runner.CANCEL_POLL_INTERVAL)
    assert statuses(broadcast_id) == ["cancelled", "cancelled"]
    assert (read(broadcast_id)["status"], read(broadcast_id)["withdrawn"]) == ("cancelled", 2)


def test_cancelling_keeps_other_notifications() -> None:
    recipients(2)
    first, other = begun(), begun()
    run_to_completion(first)
    run_to_completion(other)
    single = factories.accepted(user_id="user-00000")
    control.cancel(first, now=NOON)
    run_to_completion(first)
    assert statuses(other) == ["pending", "pending"]
    assert factories.delivery(factories.read(single["_id"]), Channel.EMAIL)["status"] == "pending"


def test_completely_sent_broadcast_is_not_cancelled() -> None:
    broadcast_id = completed(1)
    attempt = factories.start(factories.claim(first_of(broadcast_id)))
    leases.settle([factories.settlement(attempt, S.SENT)], now=NOON)
    with pytest.raises(InvalidStateError):
        control.cancel(broadcast_id, now=NOON)
    assert read(broadcast_id)["status"] == "completed"


def test_withdrawal_page_uses_an_index() -> None:
    broadcast_id = completed(12)
    run_to_completion(begun())
    control.cancel(broadcast_id, now=NOON)
    with plans("notifications") as found:
        run_page(broadcast_id)
    assert len(found) == 2, "read, and withdrawn"
    assert all(plan.is_indexed and plan.examined <= 3 and not plan.sorts for plan in found)


def test_withdrawal_starts_after_the_current_page() -> None:
    recipients(5)
    broadcast_id = begun()
    lease = leased(broadcast_id)
    control.cancel(broadcast_id, now=NOON)
    assert not run_page(broadcast_id), "another has the lease"
    send_page(lease)
    assert (len(notified_users(broadcast_id)), read(broadcast_id)["status"]) == (3, "cancelling")
    run_to_completion(broadcast_id)
    assert statuses(broadcast_id) == ["cancelled"] * 3
    assert read(broadcast_id)["status"] == "cancelled"


@pytest.mark.parametrize("stopped_by", ["backpressure", "expired"])
def test_lease_without_a_page_leaves_the_withdrawal(settings: Any, stopped_by: str) -> None:
    recipients(5)
    broadcast_id = begun(expires_at=(NOON + MINUTE).isoformat())
    run_page(broadcast_id)
    settings.BULK_PENDING_LIMIT = 0
    backlog.clear()
    at = NOON if stopped_by == "backpressure" else NOON + MINUTE
    lease = leased(broadcast_id, at=at)
    control.cancel(broadcast_id, now=at)
    send_page(lease, at=at)
    assert (read(broadcast_id)["status"], read(broadcast_id)["is_waiting"]) == ("cancelling", False)
    run_to_completion(broadcast_id, at=at)
    assert (read(broadcast_id)["status"], statuses(broadcast_id)) == (
        "cancelled",
        ["cancelled"] * 3,
    )


def test_page_stored_after_its_lease_is_withdrawn() -> None:
    recipients(5)
    broadcast_id = begun()
    frozen = leased(broadcast_id)
    control.cancel(broadcast_id, now=LATER)
    run_to_completion(broadcast_id, at=LATER)
    assert read(broadcast_id)["status"] == "cancelled"
    send_page(frozen, at=LATER)
    assert read(broadcast_id)["status"] == "cancelling"
    run_to_completion(broadcast_id, at=LATER)
    assert statuses(broadcast_id) == ["cancelled"] * 3
    assert (read(broadcast_id)["status"], read(broadcast_id)["withdrawn"]) == ("cancelled", 3)
