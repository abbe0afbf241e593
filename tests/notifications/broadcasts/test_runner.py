"""Running a broadcast: page by page, each recipient once, and how it goes on."""

from datetime import timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import sweeper, worker
from domain.states import Channel, Priority
from notifications.broadcasts import repository
from notifications.broadcasts.requests import AudienceRequest
from notifications.catalog import types
from notifications.intake.requests import Caller
from notifications.queueing import backlog
from notifyproject.db.collections import collection
from notifyproject.platform import process
from recipients import registration, topics
from recipients.models import SuppressionReason
from tests.support.broker_messages import queued_messages
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import (
    CALLER,
    begun,
    name,
    read,
    recipients,
    run_page,
    run_to_completion,
    topic,
)
from tests.support.factories.broadcasts import reached_user_ids as told
from tests.support.factories.notifications import CLIENT, NOON, suppress
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")


SECOND = timedelta(seconds=1)

MINUTE = timedelta(minutes=1)

DAY = timedelta(days=1)


def test_everybody_who_is_registered_is_told_once() -> None:
    names = recipients(7)
    one = begun()
    assert run_to_completion(one) == 3
    assert told(one) == names
    done = read(one)
    assert (done["status"], done["accepted"]) == ("completed", 7)
    assert (done["started_at"], done["finished_at"]) == (NOON, NOON)
    assert "due_at" not in done
    assert "claim" not in done


def test_a_full_last_page_is_followed_by_an_empty_one() -> None:
    recipients(6)
    one = begun()
    assert run_to_completion(one) == 3
    assert read(one)["accepted"] == 6


def test_who_is_being_erased_is_not_told() -> None:
    recipients(3)
    registration.begin_erasure(name(1), now=NOON)
    one = begun()
    run_to_completion(one)
    assert told(one) == [name(0), name(2)]


def test_a_topics_members_are_told_and_nobody_else() -> None:
    names = recipients(5)
    one = begun(topic("news", *names[:4]))
    topic("other", names[4])
    run_to_completion(one)
    assert told(one) == names[:4]


def test_who_joins_a_topic_behind_the_place_that_was_reached_is_told() -> None:
    recipients(9)
    one = begun(topic("news", *(name(n) for n in range(1, 5))))
    run_page(one)
    topics.join(topic="news", user_id=name(0), now=NOON)
    topics.join(topic="news", user_id=name(8), now=NOON)
    run_to_completion(one)
    assert told(one) == [name(n) for n in (1, 2, 3, 4, 8)]


def test_people_who_are_named_are_told_once_in_whatever_order() -> None:
    recipients(5)
    named = [name(n) for n in (4, 0, 4, 2, 3)]
    one = begun(AudienceRequest(user_ids=named))
    run_to_completion(one)
    assert told(one) == [name(n) for n in (0, 2, 3, 4)]


def test_nobody_at_all_is_soon_done() -> None:
    one = begun(AudienceRequest(topic="nobody-is-in-it"))
    assert run_to_completion(one) == 1
    assert (read(one)["status"], read(one)["audience_size"]) == ("completed", 0)


def test_about_how_many_there_are_is_known_from_the_beginning() -> None:
    names = recipients(4)
    assert read(begun())["audience_size"] == 4
    assert read(begun(topic("news", *names[:2])))["audience_size"] == 2
    assert read(begun(AudienceRequest(user_ids=["a", "b", "a"])))["audience_size"] == 2


def test_each_notification_is_like_one_that_was_asked_for_by_itself() -> None:
    recipients(1, locale="pt")
    one = begun(ttl=600, caller=Caller(client_id=CLIENT, request_id="r", is_test=True))
    run_page(one)
    document = collection("notifications").find_one({"broadcast_id": one})
    assert document is not None
    assert document["user_id"] == name(0)
    assert document["recipient"] == {
        "device_ids": [],
        "email": f"{name(0)}@example.com",
        "locale": "pt",
    }
    assert document["content"]["body"] == "It is spring."
    assert document["client_id"] == CLIENT
    assert document["is_test"] is True
    assert document["request_id"] == "r"
    assert document["expires_at"] == NOON + timedelta(seconds=600)
    assert document["status"] == "queued"


def test_a_template_is_rendered_for_each_in_their_language() -> None:
    recipients(1, locale="pt")
    recipients(1, first=1, locale="en")
    kind = types.read_type("contest_starting")
    assert kind is not None
    one = begun(type="contest_starting", content=..., data=kind["example_data"])
    run_to_completion(one)
    said = {d["user_id"]: d["content"]["body"] for d in collection("notifications").find()}
    assert len(set(said.values())) == 2


def test_it_is_low_unless_more_is_asked_for() -> None:
    recipients(1)
    for asked, given in ((None, Priority.LOW), ("high", Priority.HIGH), ("medium", "normal")):
        one = begun(type="alert", priority=asked)
        run_page(one)
        document = collection("notifications").find_one({"broadcast_id": one})
        assert document is not None
        assert document["priority"] == read(one)["priority"] == given


def test_who_wants_nothing_of_it_has_no_notification_and_is_counted() -> None:
    names = recipients(4)
    mute = {"preferences": {"marketing": {"muted": True}}}
    collection("recipients").update_many({"_id": {"$in": names[:2]}}, {"$set": mute})
    suppress(f"{names[2]}@example.com", reason=SuppressionReason.UNSUBSCRIBED, marketing_only=True)
    one = begun()
    run_to_completion(one)
    assert told(one) == [names[3]]
    assert read(one)["skipped"] == {
        "opted_out": {"count": 2, "examples": names[:2]},
        "suppressed": {"count": 1, "examples": [names[2]]},
    }


def test_whom_nothing_reaches_is_counted_with_some_of_their_ids() -> None:
    strangers = [f"stranger-{n:02d}" for n in range(30)]
    one = begun(AudienceRequest(user_ids=strangers))
    run_to_completion(one)
    kept = read(one)["skipped"]["no_address"]
    assert (kept["count"], kept["examples"]) == (30, strangers[: repository.MAX_EXAMPLES])


def test_of_the_channels_that_are_named_each_gets_those_that_reach_them() -> None:
    recipients(1)
    recipients(1, first=1, phone="+351912345678")
    one = begun(channels=["email", "whatsapp"], type="alert")
    run_to_completion(one)
    found = {d["user_id"]: d["channels"] for d in collection("notifications").find()}
    assert found == {name(0): ["email"], name(1): ["email", "whatsapp"]}


def test_whose_notification_cannot_be_made_is_counted_by_the_problem() -> None:
    recipients(1)
    one = begun(AudienceRequest(user_ids=["nul\x00", name(0)]))
    run_to_completion(one)
    assert told(one) == [name(0)]
    assert read(one)["rejected"] == {"invalid": {"count": 1, "examples": ["nul\x00"]}}


def messages(broker: redis.Redis) -> list[list[Any]]:
    return [message.args for message in queued_messages(broker, "broadcasts")]


def test_before_its_time_nothing_is_read() -> None:
    recipients(1)
    later = NOON + 2 * MINUTE
    one = begun(scheduled_at=later.isoformat())
    assert read(one)["status"] == "scheduled"
    assert not run_page(one)
    assert told(one) == []
    assert run_page(one, at=later)
    assert (read(one)["status"], read(one)["started_at"]) == ("completed", later)
    (document,) = collection("notifications").find()
    assert "scheduled_at" not in document, "it is due at once: the audience was read in time"


def test_a_worker_whose_clock_is_a_little_behind_does_not_lose_the_message() -> None:
    one = begun()
    assert run_page(one, at=NOON - SECOND / 2)


def test_after_its_time_nobody_more_is_told() -> None:
    recipients(4)
    one = begun(expires_at=(NOON + MINUTE).isoformat())
    run_page(one)
    run_page(one, at=NOON + MINUTE)
    assert len(told(one)) == 3
    done = read(one)
    assert (done["status"], done["failure_code"]) == ("failed", "expired")
    assert done["finished_at"] == NOON + MINUTE


def test_a_type_that_is_switched_off_ends_it() -> None:
    recipients(4)
    one = begun()
    run_page(one)
    collection("notification_types").update_one(
        {"_id": "marketing"}, {"$set": {"is_active": False}}
    )
    types.invalidate_types()
    run_page(one)
    assert (read(one)["status"], read(one)["failure_code"]) == ("failed", "unknown_type")


def test_with_too_much_waiting_it_waits_and_then_goes_on(settings: Any) -> None:
    recipients(7)
    settings.BULK_PENDING_LIMIT = 2
    one = begun()
    run_page(one)
    backlog.clear()
    assert run_page(one), "it was its turn, and there was no room"
    waits = read(one)
    assert (waits["is_waiting"], waits["due_at"]) == (True, NOON + backlog.RETRY_AFTER)
    assert len(told(one)) == 3
    assert not run_page(one)
    settings.BULK_PENDING_LIMIT = 100
    backlog.clear()
    assert run_to_completion(one, at=NOON + backlog.RETRY_AFTER) == 2
    assert read(one)["is_waiting"] is False


def test_each_page_calls_for_the_next(broker: redis.Redis) -> None:
    recipients(4)
    one = begun()
    assert messages(broker) == [[str(one)]]
    broker.flushdb()
    run_page(one)
    assert messages(broker) == [[str(one)]]
    broker.flushdb()
    run_page(one)
    assert messages(broker) == []


def test_the_sweep_finds_what_no_message_reaches(broker: redis.Redis) -> None:
    recipients(1)
    one = begun()
    begun(scheduled_at=(NOON + 5 * MINUTE).isoformat())
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert messages(broker) == [[str(one)]]
    run_to_completion(one)
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
    assert not run_page(one)
    assert messages(broker) == [[str(one)]]


def test_without_a_broker_a_process_does_it_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    recipients(4)
    one = begun(type="alert", channels=["in_app"])
    worker.run_inline(clock=lambda: NOON)
    assert read(one)["status"] == "completed"
    assert len(told(one)) == 4


def test_a_page_of_a_large_audience_reads_no_more_than_its_people() -> None:
    recipients(60)
    one = begun()
    run_page(one)
    with plans("recipients") as found:
        run_page(one)
    assert found
    assert all(plan.is_by_id and plan.examined <= 3 and not plan.sorts for plan in found)


def test_what_became_of_it_is_counted_from_an_index_alone() -> None:
    recipients(4)
    one, other = begun(), begun()
    for broadcast_id in (one, other):
        run_to_completion(broadcast_id)
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
    run_to_completion(one)
    assert read(one)["purge_at"] == NOON + 90 * DAY
