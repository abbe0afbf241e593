"""When a broadcast goes on, who is called to it, and what it reads for that."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import sweeper, worker
from domain.states import Channel
from notifications.broadcasts import repository
from notifications.catalog import types
from notifications.intake.requests import Caller
from notifications.queueing import backlog
from notifyproject.db.collections import collection
from notifyproject.platform import process
from tests.support.broker_messages import waiting
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import CALLER, begun, go_on, people, read, to_its_end, told
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")

SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)


def messages(broker: redis.Redis) -> list[list[Any]]:
    return [message.args for message in waiting(broker, "broadcasts")]


# When.


def test_before_its_time_nothing_is_read() -> None:
    people(1)
    later = NOON + 2 * MINUTE
    one = begun(scheduled_at=later.isoformat())
    assert read(one)["status"] == "scheduled"
    assert not go_on(one)
    assert told(one) == []
    assert go_on(one, at=later)
    assert (read(one)["status"], read(one)["started_at"]) == ("completed", later)
    (document,) = collection("notifications").find()
    assert "scheduled_at" not in document, "it is due at once: the audience was read in time"


def test_a_worker_whose_clock_is_a_little_behind_does_not_lose_the_message() -> None:
    one = begun()
    assert go_on(one, at=NOON - SECOND / 2)


def test_after_its_time_nobody_more_is_told() -> None:
    people(4)
    one = begun(expires_at=(NOON + MINUTE).isoformat())
    go_on(one)
    go_on(one, at=NOON + MINUTE)
    assert len(told(one)) == 3
    done = read(one)
    assert (done["status"], done["failure_code"]) == ("failed", "expired")
    assert done["finished_at"] == NOON + MINUTE


def test_a_type_that_is_switched_off_ends_it() -> None:
    people(4)
    one = begun()
    go_on(one)
    collection("notification_types").update_one(
        {"_id": "marketing"}, {"$set": {"is_active": False}}
    )
    types.invalidate_types()
    go_on(one)
    assert (read(one)["status"], read(one)["failure_code"]) == ("failed", "unknown_type")


def test_with_too_much_waiting_it_waits_and_then_goes_on(settings: Any) -> None:
    people(7)
    settings.BULK_PENDING_LIMIT = 2
    one = begun()
    go_on(one)
    backlog.clear()
    assert go_on(one), "it was its turn, and there was no room"
    waits = read(one)
    assert (waits["is_waiting"], waits["due_at"]) == (True, NOON + backlog.RETRY_AFTER)
    assert len(told(one)) == 3
    assert not go_on(one)
    settings.BULK_PENDING_LIMIT = 100
    backlog.clear()
    assert to_its_end(one, at=NOON + backlog.RETRY_AFTER) == 2
    assert read(one)["is_waiting"] is False


# The messages.


def test_each_page_calls_for_the_next(broker: redis.Redis) -> None:
    people(4)
    one = begun()
    assert messages(broker) == [[str(one)]]
    broker.flushdb()
    go_on(one)
    assert messages(broker) == [[str(one)]]
    broker.flushdb()
    go_on(one)
    assert messages(broker) == []


def test_the_sweep_finds_what_no_message_reaches(broker: redis.Redis) -> None:
    people(1)
    one = begun()
    begun(scheduled_at=(NOON + 5 * MINUTE).isoformat())
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert messages(broker) == [[str(one)]]
    to_its_end(one)
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert messages(broker) == []


def test_the_sweep_finds_one_whose_worker_was_lost(broker: redis.Redis) -> None:
    one = begun()
    repository.acquire_lease(one, worker="lost", now=NOON)
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert messages(broker) == []
    sweeper.sweep(now=NOON + repository.LEASE)
    assert messages(broker) == [[str(one)]]


def test_a_worker_that_stops_leaves_it_to_another(broker: redis.Redis) -> None:
    one = begun()
    broker.flushdb()
    process.request_shutdown()
    assert not go_on(one)
    assert messages(broker) == [[str(one)]]


def test_without_a_broker_a_process_does_it_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    people(4)
    one = begun(type="alert", channels=["in_app"])
    worker.run_inline(clock=lambda: NOON)
    assert read(one)["status"] == "completed"
    assert len(told(one)) == 4


# What it reads.


def test_a_page_of_a_large_audience_reads_no_more_than_its_people() -> None:
    people(60)
    one = begun()
    go_on(one)
    with plans("recipients") as found:
        go_on(one)
    assert found
    assert all(plan.is_by_id and plan.examined <= 3 and not plan.sorts for plan in found)


def test_what_became_of_it_is_counted_from_an_index_alone() -> None:
    people(4)
    one, other = begun(), begun()
    for broadcast_id in (one, other):
        to_its_end(broadcast_id)
    claimed = factories.claim(
        next(collection("notifications").find({"broadcast_id": one}))["_id"], channel=Channel.EMAIL
    )
    factories.start(claimed)
    with plans("notifications") as found:
        counts = repository.count_by_status(one)
    assert counts == {"queued": 3, "processing": 1}
    (plan,) = found
    assert (plan.is_indexed, plan.examined) == (True, 0)


def test_a_clients_list_is_read_by_its_index() -> None:
    others = Caller(client_id=ObjectId("d" * 24))
    for n in range(30):
        begun(at=NOON + n * SECOND, caller=CALLER if n % 3 else others)
    with plans("broadcasts") as found:
        page = repository.page(client_id=CLIENT, limit=5)
    assert page.documents[0]["created_at"] == NOON + 29 * SECOND
    assert all("user_ids" not in one for one in page.documents)
    (plan,) = found
    assert (plan.is_indexed, plan.sorts, plan.examined) == (True, False, 6)


def test_an_ended_one_is_deleted_when_its_notifications_are() -> None:
    one = begun()
    assert "purge_at" not in read(one)
    to_its_end(one)
    assert read(one)["purge_at"] == NOON + 90 * DAY
