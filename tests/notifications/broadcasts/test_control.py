"""A pause holds back what is new; a cancellation also what has not been sent."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import sweeper
from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.broadcasts import control, repository, runner
from notifications.queueing import backlog
from notifications.resend.actions import InvalidStateError
from notifyproject.db.collections import collection
from tests.support.broker_messages import queued_messages
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import (
    begun,
    read,
    recipients,
    run_page,
    run_to_completion,
    told,
)
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")

MINUTE = timedelta(minutes=1)
LATER = NOON + repository.LEASE
S = DeliveryStatus


def completed(count: int) -> ObjectId:
    """Return a broadcast that so many people have been told, and nothing of which is sent."""
    recipients(count)
    one = begun()
    run_to_completion(one)
    return one


def statuses(broadcast_id: ObjectId) -> list[str]:
    found = collection("notifications").find({"broadcast_id": broadcast_id})
    return sorted(document["delivery"][0]["status"] for document in found)


def first_of(broadcast_id: ObjectId) -> ObjectId:
    """Return the id of one of a broadcast's notifications."""
    found = collection("notifications").find({"broadcast_id": broadcast_id}).sort("user_id", 1)
    return ObjectId(next(found)["_id"])


# Pausing.


def test_what_was_accepted_before_a_pause_goes_on() -> None:
    recipients(5)
    one = begun()
    run_page(one)
    control.pause(one, now=NOON)
    assert statuses(one) == ["pending"] * 3
    factories.claim(first_of(one))
    assert not run_page(one)


def test_a_paused_one_is_not_called_for(broker: redis.Redis) -> None:
    one = begun()
    control.pause(one, now=NOON)
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert queued_messages(broker, "broadcasts") == []
    control.resume(one, now=NOON)
    assert [message.args for message in queued_messages(broker, "broadcasts")] == [[str(one)]]


def test_one_that_is_resumed_before_its_time_waits_for_it() -> None:
    recipients(1)
    at = NOON + MINUTE
    one = begun(scheduled_at=at.isoformat())
    control.pause(one, now=NOON)
    assert not run_page(one, at=at)
    assert control.resume(one, now=NOON)["status"] == "scheduled"
    assert not run_page(one)
    control.pause(one, now=NOON)
    assert control.resume(one, now=at)["status"] == "running"
    assert run_page(one, at=at)


def test_again_changes_nothing() -> None:
    one = begun()
    assert control.resume(one, now=NOON)["status"] == "running"
    for _ in range(2):
        assert control.pause(one, now=NOON)["status"] == "paused"
    for _ in range(2):
        assert control.cancel(one, now=NOON)["status"] == "cancelling"
    run_to_completion(one)
    assert control.cancel(one, now=NOON)["status"] == "cancelled"


def test_what_has_ended_is_neither_paused_nor_resumed() -> None:
    one = completed(1)
    for change in (control.pause, control.resume):
        with pytest.raises(InvalidStateError):
            change(one, now=NOON)
    control.cancel(one, now=NOON)
    for change in (control.pause, control.resume):
        with pytest.raises(InvalidStateError):
            change(one, now=NOON)


def test_there_is_nothing_to_do_to_one_that_is_not_there() -> None:
    for change in (control.pause, control.resume, control.cancel):
        with pytest.raises(LookupError):
            change(ObjectId(), now=NOON)


# Cancelling.


def test_nobody_more_is_told_and_what_is_pending_is_withdrawn_page_by_page() -> None:
    recipients(20)
    one = begun()
    for _ in range(3):
        run_page(one)
    control.cancel(one, now=NOON)
    assert run_to_completion(one) == 4
    assert len(told(one)) == 9
    assert statuses(one) == ["cancelled"] * 9
    done = read(one)
    assert (done["status"], done["withdrawn"], done["finished_at"]) == ("cancelled", 9, NOON)
    (reason,) = {d["delivery"][0]["failure_reason"] for d in collection("notifications").find()}
    assert reason == "The broadcast was cancelled."


def test_what_was_sent_stays_sent() -> None:
    one = completed(3)
    begins = factories.start(factories.claim(first_of(one)))
    store.settle([factories.settlement(begins, S.SENT)], now=NOON)
    control.cancel(one, now=NOON)
    run_to_completion(one)
    assert statuses(one) == ["cancelled", "cancelled", "sent"]
    assert read(one)["withdrawn"] == 2


def test_a_worker_that_has_claimed_and_not_begun_loses_it() -> None:
    one = completed(1)
    claimed = factories.claim(first_of(one))
    control.cancel(one, now=NOON)
    run_to_completion(one)
    assert store.start([claimed], provider="sendgrid", worker="w", now=NOON) == []
    assert statuses(one) == ["cancelled"]


def test_while_something_is_being_sent_it_is_cancelling_and_a_retry_is_withdrawn() -> None:
    one = completed(2)
    begins = factories.start(factories.claim(first_of(one)))
    control.cancel(one, now=NOON)
    run_page(one)
    waits = read(one)
    assert (waits["status"], waits["withdrawn"]) == ("cancelling", 1)
    assert waits["due_at"] == NOON + runner.CANCEL_POLL_INTERVAL
    store.settle([factories.settlement(begins, S.PENDING)], now=NOON)
    run_to_completion(one, at=NOON + runner.CANCEL_POLL_INTERVAL)
    assert statuses(one) == ["cancelled", "cancelled"]
    assert (read(one)["status"], read(one)["withdrawn"]) == ("cancelled", 2)


def test_other_notifications_of_the_same_people_stay() -> None:
    recipients(2)
    one, other = begun(), begun()
    run_to_completion(one)
    run_to_completion(other)
    alone = factories.accepted(user_id="user-00000")
    control.cancel(one, now=NOON)
    run_to_completion(one)
    assert statuses(other) == ["pending", "pending"]
    assert factories.delivery(factories.read(alone["_id"]), Channel.EMAIL)["status"] == "pending"


def test_one_that_is_completed_is_cancelled_while_some_of_it_waits() -> None:
    one = completed(2)
    control.cancel(one, now=NOON)
    assert "purge_at" not in read(one)
    run_to_completion(one)
    assert statuses(one) == ["cancelled", "cancelled"]


def test_one_of_which_all_was_sent_is_not() -> None:
    one = completed(1)
    begins = factories.start(factories.claim(first_of(one)))
    store.settle([factories.settlement(begins, S.SENT)], now=NOON)
    with pytest.raises(InvalidStateError):
        control.cancel(one, now=NOON)
    assert read(one)["status"] == "completed"


def test_a_page_of_what_is_withdrawn_is_found_by_an_index() -> None:
    one = completed(12)
    completed_too = begun()
    run_to_completion(completed_too)
    control.cancel(one, now=NOON)
    with plans("notifications") as found:
        run_page(one)
    assert len(found) == 2, "read, and withdrawn"
    assert all(plan.is_indexed and plan.examined <= 3 and not plan.sorts for plan in found)


# In the middle of a page.


def test_withdrawing_begins_when_the_page_under_way_has_ended() -> None:
    recipients(5)
    one = begun()
    turn = repository.acquire_lease(one, worker="worker", now=NOON)
    assert turn is not None
    control.cancel(one, now=NOON)
    assert not run_page(one), "another has the lease"
    runner._send_page(turn, lambda: NOON)
    assert (len(told(one)), read(one)["status"]) == (3, "cancelling")
    run_to_completion(one)
    assert statuses(one) == ["cancelled"] * 3
    assert read(one)["status"] == "cancelled"


@pytest.mark.parametrize("stopped_by", ["no room", "its time is over"])
def test_a_turn_that_ends_without_a_page_leaves_the_withdrawing_to_the_next(
    settings: Any, stopped_by: str
) -> None:
    recipients(5)
    one = begun(expires_at=(NOON + MINUTE).isoformat())
    run_page(one)
    settings.BULK_PENDING_LIMIT = 0
    backlog.clear()
    at = NOON if stopped_by == "no room" else NOON + MINUTE
    turn = repository.acquire_lease(one, worker="worker", now=at)
    assert turn is not None
    control.cancel(one, now=at)
    runner._send_page(turn, lambda: at)
    assert (read(one)["status"], read(one)["is_waiting"]) == ("cancelling", False)
    run_to_completion(one, at=at)
    assert (read(one)["status"], statuses(one)) == ("cancelled", ["cancelled"] * 3)


def test_what_a_worker_stores_behind_its_lease_is_withdrawn_again() -> None:
    recipients(5)
    one = begun()
    frozen = repository.acquire_lease(one, worker="worker", now=NOON)
    assert frozen is not None
    control.cancel(one, now=LATER)
    run_to_completion(one, at=LATER)
    assert read(one)["status"] == "cancelled"
    runner._send_page(frozen, lambda: LATER)
    assert read(one)["status"] == "cancelling"
    run_to_completion(one, at=LATER)
    assert statuses(one) == ["cancelled"] * 3
    assert (read(one)["status"], read(one)["withdrawn"]) == ("cancelled", 3)
