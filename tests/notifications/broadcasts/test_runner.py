"""Running a broadcast: pages, audiences, and skipped recipients."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import sweeper, worker
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.states import Priority
from notifications.broadcasts import fan_out, repository
from notifications.broadcasts.requests import AudienceRequest
from notifications.catalog import types
from notifications.content.reminders import format_timestamp
from notifications.intake.addressees import users
from notifications.intake.requests import Caller
from notifications.queueing import backlog
from notifications.validation import InvalidRequestError
from notifyproject.db.collections import collection
from notifyproject.platform import process
from recipients import registration, topics
from recipients.models import SuppressionReason
from recipients.registration import PreferenceChanges
from tests.support.broker_messages import queued_messages
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import (
    CALLER,
    begun,
    leased,
    name,
    notified_users,
    read,
    recipients,
    run_page,
    run_to_completion,
    topic,
)
from tests.support.factories.notifications import CLIENT, NOON, suppress
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker", "pages_of_three")


SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_each_registered_recipient_is_notified_once() -> None:
    names = recipients(7)
    broadcast_id = begun()
    assert run_to_completion(broadcast_id) == 3
    assert notified_users(broadcast_id) == names
    done = read(broadcast_id)
    assert (done["status"], done["accepted"]) == ("completed", 7)
    assert (done["started_at"], done["finished_at"]) == (NOON, NOON)
    assert "due_at" not in done
    assert "claim" not in done


def test_full_last_page_is_followed_by_an_empty_one() -> None:
    recipients(6)
    broadcast_id = begun()
    assert run_to_completion(broadcast_id) == 3
    assert read(broadcast_id)["accepted"] == 6


def send_times(broadcast_id: ObjectId) -> list[datetime | None]:
    """Return the send time of each notification, by user ID; None: at once."""
    found = collection("notifications").find({"broadcast_id": broadcast_id}).sort("user_id")
    return [document.get("scheduled_at") for document in found]


def test_messages_are_spread_the_same_way_by_each_worker() -> None:
    recipients(40)
    broadcast_id = begun(spread=7_200)
    run_page(broadcast_id)
    # Later pages are spread over the same time.
    run_to_completion(broadcast_id, at=NOON + 30 * MINUTE)
    times = send_times(broadcast_id)
    assert len(times) == 40
    assert all(at is None or NOON < at <= NOON + 120 * MINUTE for at in times)
    second = [at for at in times if at is not None and at > NOON + 60 * MINUTE]
    assert 8 < len(second) < 32


def test_local_hour_is_that_of_each_recipient() -> None:
    recipients(1)
    recipients(1, first=1, timezone="Asia/Tokyo")
    recipients(1, first=2, timezone="Asia/Kolkata")
    broadcast_id = begun(local_hour=21)
    run_to_completion(broadcast_id)
    assert send_times(broadcast_id) == [NOON + 9 * HOUR, None, NOON + 3.5 * HOUR]


def test_message_whose_hour_is_after_the_expiry_is_rejected() -> None:
    recipients(1)
    recipients(1, first=1, timezone="Asia/Tokyo")
    broadcast_id = begun(local_hour=21, expires_at=format_timestamp(NOON + HOUR))
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == [name(1)]
    assert [reason["count"] for reason in read(broadcast_id)["rejected"].values()] == [1]


@each_case(
    "fields, pointer",
    [
        ({"spread": 60, "local_hour": 9}, "/local_hour"),
        ({"event_at": "2026-12-24T18:00:00Z", "spread": 60}, "/spread"),
        ({"name": "a\nb"}, "/name"),
    ],
)
def test_pace_that_contradicts_itself_is_refused(fields: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        begun(**fields)
    assert pointer in {problem.pointer for problem in refused.value.problems}


def test_recipient_being_erased_is_skipped() -> None:
    recipients(3)
    registration.begin_erasure(name(1), now=NOON)
    broadcast_id = begun()
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == [name(0), name(2)]


def test_topic_broadcast_reaches_only_its_members() -> None:
    names = recipients(5)
    broadcast_id = begun(topic("news", *names[:4]))
    topic("other", names[4])
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == names[:4]


def test_new_topic_member_after_the_cursor_is_notified() -> None:
    recipients(9)
    broadcast_id = begun(topic("news", *(name(n) for n in range(1, 5))))
    run_page(broadcast_id)
    topics.join(topic="news", user_id=name(0), now=NOON)
    topics.join(topic="news", user_id=name(8), now=NOON)
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == [name(n) for n in (1, 2, 3, 4, 8)]


def test_listed_user_ids_are_notified_once_in_any_order() -> None:
    recipients(5)
    broadcast_id = begun(AudienceRequest(user_ids=[name(n) for n in (4, 0, 4, 2, 3)]))
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == [name(n) for n in (0, 2, 3, 4)]


def test_broadcast_to_an_empty_topic_completes() -> None:
    topics.join(topic="left", user_id="ada", now=NOON)
    broadcast_id = begun(AudienceRequest(topic="left"))
    topics.leave(topic="left", user_id="ada")
    assert run_to_completion(broadcast_id) == 1
    assert (read(broadcast_id)["status"], read(broadcast_id)["audience_size"]) == ("completed", 1)


def test_audience_size_is_known_at_the_start() -> None:
    names = recipients(4)
    assert read(begun())["audience_size"] == 4
    assert read(begun(topic("news", *names[:2])))["audience_size"] == 2
    assert read(begun(AudienceRequest(user_ids=["a", "b", "a"])))["audience_size"] == 2


def test_each_notification_equals_a_single_one() -> None:
    recipients(1, locale="pt")
    broadcast_id = begun(ttl=600, caller=Caller(client_id=CLIENT, request_id="r", is_test=True))
    run_page(broadcast_id)
    document = collection("notifications").find_one({"broadcast_id": broadcast_id})
    assert document is not None
    assert document["user_id"] == name(0)
    assert document["recipient"] == {
        "device_ids": [],
        "email": f"{name(0)}@example.com",
        "locale": "pt",
        "given": [],
    }
    assert document["content"]["body"] == "It is spring."
    assert document["client_id"] == CLIENT
    assert document["is_test"] is True
    assert document["request_id"] == "r"
    assert document["expires_at"] == NOON + timedelta(seconds=600)
    assert document["status"] == "queued"


def test_template_is_rendered_in_the_recipients_language() -> None:
    recipients(1, locale="pt")
    recipients(1, first=1, locale="en")
    kind = types.read_type("contest_starting")
    assert kind is not None
    run_to_completion(begun(type="contest_starting", content=..., data=kind["example_data"]))
    bodies = {d["user_id"]: d["content"]["body"] for d in collection("notifications").find()}
    assert len(set(bodies.values())) == 2


def test_priority_is_low_by_default() -> None:
    recipients(1)
    for requested, expected in (
        (None, Priority.LOW),
        ("high", Priority.HIGH),
        ("medium", "normal"),
    ):
        broadcast_id = begun(type="alert", priority=requested)
        run_page(broadcast_id)
        document = collection("notifications").find_one({"broadcast_id": broadcast_id})
        assert document is not None
        assert document["priority"] == read(broadcast_id)["priority"] == expected


def test_opted_out_and_suppressed_recipients_are_counted_as_skipped() -> None:
    names = recipients(4)
    mute = {"preferences": {"marketing": {"muted": True}}}
    collection("recipients").update_many({"_id": {"$in": names[:2]}}, {"$set": mute})
    suppress(f"{names[2]}@example.com", reason=SuppressionReason.UNSUBSCRIBED, marketing_only=True)
    broadcast_id = begun()
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == [names[3]]
    assert read(broadcast_id)["skipped"] == {
        "opted_out": {"count": 2, "examples": names[:2]},
        "suppressed": {"count": 1, "examples": [names[2]]},
    }


def test_unreachable_recipients_are_counted_with_examples() -> None:
    strangers = [f"stranger-{n:02d}" for n in range(30)]
    broadcast_id = begun(AudienceRequest(user_ids=strangers))
    run_to_completion(broadcast_id)
    kept = read(broadcast_id)["skipped"]["no_address"]
    assert (kept["count"], kept["examples"]) == (30, strangers[: repository.MAX_EXAMPLES])


def test_recipients_get_the_requested_channels_that_reach_them() -> None:
    recipients(1)
    recipients(1, first=1, phone="+351912345678")
    run_to_completion(begun(channels=["email", "whatsapp"], type="alert"))
    found = {d["user_id"]: d["channels"] for d in collection("notifications").find()}
    assert found == {name(0): ["email"], name(1): ["email", "whatsapp"]}


@pytest.mark.parametrize("channels", [["push"], None])
def test_broadcast_counts_recipients_without_a_device_as_unreachable(
    channels: list[str] | None,
) -> None:
    with_device, without = recipients(2)
    factories.device("phone", user_id=with_device)
    collection("recipients").update_many(
        {}, {"$set": {"preferences": {"marketing": {"channels": ["push"]}}}}
    )
    broadcast_id = begun(channels=channels)
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == [with_device]
    assert read(broadcast_id)["skipped"] == {"no_address": {"count": 1, "examples": [without]}}


def test_invalid_recipients_are_counted_by_problem() -> None:
    recipients(1)
    # The API refuses such a member, but a topic holds what it is given.
    for user_id in ("tenant/42", name(0)):
        topics.join(topic="news", user_id=user_id, now=NOON)
    broadcast_id = begun(AudienceRequest(topic="news"))
    run_to_completion(broadcast_id)
    assert notified_users(broadcast_id) == [name(0)]
    assert read(broadcast_id)["rejected"] == {"slash": {"count": 1, "examples": ["tenant/42"]}}


def messages(broker: redis.Redis) -> list[list[Any]]:
    return [message.args for message in queued_messages(broker, "broadcasts")]


def test_scheduled_broadcast_reads_its_audience_in_time() -> None:
    recipients(1)
    later = NOON + 2 * MINUTE
    broadcast_id = begun(scheduled_at=later.isoformat())
    assert read(broadcast_id)["status"] == "scheduled"
    assert not run_page(broadcast_id)
    assert notified_users(broadcast_id) == []
    assert run_page(broadcast_id, at=later)
    assert (read(broadcast_id)["status"], read(broadcast_id)["started_at"]) == ("completed", later)
    (document,) = collection("notifications").find()
    assert "scheduled_at" not in document, "notifications of a scheduled broadcast are due at once"


def test_slow_clock_does_not_lose_the_wakeup() -> None:
    assert run_page(begun(), at=NOON - SECOND / 2)


def test_expired_broadcast_notifies_no_more() -> None:
    recipients(4)
    broadcast_id = begun(expires_at=(NOON + MINUTE).isoformat())
    run_page(broadcast_id)
    run_page(broadcast_id, at=NOON + MINUTE)
    assert len(notified_users(broadcast_id)) == 3
    done = read(broadcast_id)
    assert (done["status"], done["failure_code"]) == ("failed", "expired")
    assert done["finished_at"] == NOON + MINUTE


def test_disabled_type_fails_the_broadcast() -> None:
    recipients(4)
    broadcast_id = begun()
    run_page(broadcast_id)
    collection("notification_types").update_one(
        {"_id": "marketing"}, {"$set": {"is_active": False}}
    )
    types.invalidate_types()
    run_page(broadcast_id)
    assert (read(broadcast_id)["status"], read(broadcast_id)["failure_code"]) == (
        "failed",
        "unknown_type",
    )


def test_backpressure_pauses_the_broadcast(settings: Any) -> None:
    recipients(7)
    settings.BULK_PENDING_LIMIT = 2
    broadcast_id = begun()
    run_page(broadcast_id)
    backlog.clear()
    assert run_page(broadcast_id), "it was due, but the backlog was full"
    waiting = read(broadcast_id)
    assert (waiting["is_waiting"], waiting["due_at"]) == (True, NOON + backlog.RETRY_AFTER)
    assert len(notified_users(broadcast_id)) == 3
    assert not run_page(broadcast_id)
    settings.BULK_PENDING_LIMIT = 100
    backlog.clear()
    assert run_to_completion(broadcast_id, at=NOON + backlog.RETRY_AFTER) == 2
    assert read(broadcast_id)["is_waiting"] is False


def test_each_page_wakes_up_the_next(broker: redis.Redis) -> None:
    recipients(4)
    broadcast_id = begun()
    assert messages(broker) == [[str(broadcast_id)]]
    broker.flushdb()
    run_page(broadcast_id)
    assert messages(broker) == [[str(broadcast_id)]]
    broker.flushdb()
    run_page(broadcast_id)
    assert messages(broker) == []


def test_sweep_wakes_up_due_broadcasts(broker: redis.Redis) -> None:
    recipients(1)
    broadcast_id = begun()
    begun(scheduled_at=(NOON + 5 * MINUTE).isoformat())
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert messages(broker) == [[str(broadcast_id)]]
    run_to_completion(broadcast_id)
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert messages(broker) == []


def test_sweep_wakes_up_broadcasts_of_lost_workers(broker: redis.Redis) -> None:
    broadcast_id = begun()
    repository.acquire_lease(broadcast_id, worker="lost", now=NOON)
    broker.flushdb()
    sweeper.sweep(now=NOON)
    assert messages(broker) == []
    sweeper.sweep(now=NOON + repository.LEASES.length)
    assert messages(broker) == [[str(broadcast_id)]]


def test_stopping_worker_leaves_the_broadcast_to_another(broker: redis.Redis) -> None:
    broadcast_id = begun()
    broker.flushdb()
    process.request_shutdown()
    assert not run_page(broadcast_id)
    assert messages(broker) == [[str(broadcast_id)]]


def test_inline_worker_runs_broadcasts(monkeypatch: pytest.MonkeyPatch) -> None:
    recipients(4)
    broadcast_id = begun(type="alert", channels=["in_app"])
    worker.run_inline(SendingRuntime(), clock=lambda: NOON)
    assert read(broadcast_id)["status"] == "completed"
    assert len(notified_users(broadcast_id)) == 4


def test_page_reads_only_its_recipients() -> None:
    recipients(60)
    broadcast_id = begun()
    run_page(broadcast_id)
    with plans("recipients") as found:
        run_page(broadcast_id)
    assert found
    assert all(plan.is_by_id and plan.examined <= 3 and not plan.sorts for plan in found)


def test_status_counts_use_only_an_index() -> None:
    recipients(4)
    first, other = begun(), begun()
    for broadcast_id in (first, other):
        run_to_completion(broadcast_id)
    claimed = factories.claim(
        next(collection("notifications").find({"broadcast_id": first}))["_id"],
        channel=Channel.EMAIL,
    )
    factories.start(claimed)
    with plans("notifications") as found:
        counts = repository.count_by_status(first)
    assert counts == {"queued": 3, "processing": 1}
    (plan,) = found
    assert (plan.is_indexed, plan.examined) == (True, 0)


def test_list_of_a_client_uses_its_index() -> None:
    others = Caller(client_id=ObjectId("d" * 24))
    for n in range(30):
        begun(at=NOON + n * SECOND, caller=CALLER if n % 3 else others)
    with plans("broadcasts") as found:
        page = repository.page(client_id=CLIENT, limit=5)
    assert page.documents[0]["created_at"] == NOON + 29 * SECOND
    assert all("user_ids" not in document for document in page.documents)
    (plan,) = found
    assert (plan.is_indexed, plan.sorts, plan.examined) == (True, False, 6)


def test_ended_broadcast_is_purged_with_its_notifications() -> None:
    broadcast_id = begun()
    assert "purge_at" not in read(broadcast_id)
    run_to_completion(broadcast_id)
    assert read(broadcast_id)["purge_at"] == NOON + 90 * DAY


CONTEST = {"contest_name": "Round 900"}


def reminder(event_at: datetime, **fields: Any) -> ObjectId:
    """Create a broadcast of reminders, whose type's lead time is two hours. Return its ID."""
    at = event_at.isoformat()
    given = {"type": "contest_reminder", "content": ..., "data": CONTEST, "event_at": at}
    return begun(**(given | fields))


def notification_of(user_id: str) -> dict[str, Any]:
    document = collection("notifications").find_one({"user_id": user_id})
    assert document is not None
    return document


def test_each_recipient_is_reminded_with_their_own_lead_time() -> None:
    early, usual, late = recipients(3)
    for user_id, seconds in ((early, 86_400), (late, 600)):
        wish = {"contest_reminder": {"notify_before": seconds}}
        registration.set_preferences(
            user_id=user_id, changes=PreferenceChanges(by_name=wish), now=NOON
        )
    event_at = NOON + 3 * DAY
    broadcast_id = reminder(event_at)
    run_to_completion(broadcast_id)
    assert "scheduled_at" not in read(broadcast_id), "the audience is read at once"
    assert read(broadcast_id)["status"] == "completed"
    for user_id, before in ((early, DAY), (usual, 120 * MINUTE), (late, 10 * MINUTE)):
        document = notification_of(user_id)
        assert document["scheduled_at"] == event_at - before
        assert document["expires_at"] == event_at
        assert document["data"]["hours_until_start"] == max(round(before / (60 * MINUTE)), 1)


@pytest.mark.parametrize("hours", [1, 5])
def test_audience_is_not_read_once_the_event_has_begun(hours: int) -> None:
    recipients(1)
    event_at = NOON + 2 * 60 * MINUTE
    broadcast_id = reminder(event_at, expires_at=(NOON + hours * 60 * MINUTE).isoformat())
    assert read(broadcast_id)["expires_at"] == min(event_at, NOON + hours * 60 * MINUTE)
    run_to_completion(broadcast_id, at=event_at)
    assert (read(broadcast_id)["status"], read(broadcast_id)["failure_code"]) == (
        "failed",
        "expired",
    )
    assert notified_users(broadcast_id) == []


def test_recipient_who_was_notified_about_the_entity_is_skipped() -> None:
    names = recipients(4)
    factories.accepted(user_id=names[1], type="marketing", entity_id="video-7")
    factories.accepted(user_id=names[2], type="marketing", entity_id="video-8")
    broadcast_id = begun(entity_id="video-7")
    run_to_completion(broadcast_id)
    done = read(broadcast_id)
    assert done["accepted"] == 3
    assert done["skipped"] == {"already_notified": {"count": 1, "examples": [names[1]]}}
    assert notified_users(broadcast_id) == [names[0], names[2], names[3]]
    found = collection("notifications").find({"broadcast_id": broadcast_id})
    assert {document["entity_id"] for document in found} == {"video-7"}


def test_second_broadcast_about_an_entity_reaches_only_new_recipients() -> None:
    recipients(2)
    run_to_completion(begun(entity_id="video-7"))
    recipients(1, first=2)
    second = begun(entity_id="video-7")
    run_to_completion(second)
    assert notified_users(second) == [name(2)]
    assert read(second)["skipped"]["already_notified"]["count"] == 2


def test_repeated_page_about_an_entity_counts_its_own_notifications_as_accepted() -> None:
    recipients(2)
    broadcast_id = begun(entity_id="video-7")
    lost = leased(broadcast_id)
    fan_out.fan_out(
        users([name(0)]),
        request=lost.request,
        broadcast_id=broadcast_id,
        caller=lost.caller,
        before_storing=lambda: None,
        now=NOON,
    )
    run_to_completion(broadcast_id, at=lost.claim.until)
    assert (read(broadcast_id)["accepted"], read(broadcast_id)["skipped"]) == (2, {})
