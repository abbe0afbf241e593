"""Erasure of a user's notifications."""

from datetime import timedelta

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.content import Content, Recipient
from domain.states import DeliveryStatus
from notifications.actions import actions
from notifications.store import leases, removal
from notifications.store.reading import content_of, recipient_of
from notifications.store.search_keys import search_keys_of
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
LATER = NOON + timedelta(hours=1)
CONTENT = Content(
    subject="Paid",
    body="Your payment has arrived.",
    template_id="payment_confirmed",
    template_version=3,
    deep_link="app://orders/1",
    payload={"order": "1"},
    reply_to="us@example.com",
)


def erase(user_id: str = "ada") -> int:
    return removal.erase(removal.erasable(user_id=user_id, limit=100), user_id=user_id, now=LATER)


def test_erasure_removes_content_and_recipient() -> None:
    before = factories.accepted(content=CONTENT, data={"amount": "49.90"}, entity_id="order-1")
    assert erase() == 1
    after = factories.read(before["_id"])
    assert after["content"] == {"template_id": "payment_confirmed", "template_version": 3}
    assert (after["recipient"], after["data"]) == ({"device_ids": []}, {})
    assert (after["is_active"], after["erased_at"]) == (False, LATER)
    kept = ("user_id", "client_id", "type", "category", "priority", "channels", "entity_id")
    assert [after.get(name) for name in kept] == [before.get(name) for name in kept]
    assert after["created_at"] == before["created_at"]


def test_content_without_a_template_is_emptied() -> None:
    document = factories.accepted(content=Content(subject="Hello", body="Ada"))
    erase()
    assert factories.read(document["_id"])["content"] == {}


def test_pending_delivery_is_cancelled() -> None:
    document = factories.accepted(channels=(EMAIL, WHATSAPP), send_at=LATER + timedelta(days=1))
    erase()
    after = factories.read(document["_id"])
    assert {d["status"] for d in after["delivery"]} == {"cancelled"}
    assert after["delivery"][0]["failure_reason"] == "Recipient erased."
    assert after["status"] == "cancelled"
    assert "due_at" not in after


def test_claimed_delivery_is_not_sent() -> None:
    claimed = factories.claimed()
    erase()
    assert leases.start([claimed], provider="sendgrid", worker="w", now=LATER) == []


def test_started_delivery_is_settled() -> None:
    started = factories.started()
    erase()
    leases.settle([factories.settlement(started, S.SENT)], now=LATER)
    after = factories.read(started.notification_id)
    assert (after["status"], after["recipient"]) == ("sent", {"device_ids": []})


@pytest.mark.parametrize("status", [S.SENT, S.FAILED])
def test_outcome_is_kept(status: DeliveryStatus) -> None:
    before = factories.settled(status)
    erase()
    after = factories.read(before["_id"])
    assert after["status"] == before["status"]
    assert after["delivery"][0]["attempt_count"] == 1
    assert after["delivery"][0].get("failure_code") == before["delivery"][0].get("failure_code")
    assert after.get("failed_at") == before.get("failed_at")
    assert [attempt["status"] for attempt in factories.attempts(before["_id"])] == [status.value]


def test_provider_texts_are_removed() -> None:
    document = factories.settled(S.FAILED)
    erase()
    after = factories.read(document["_id"])
    assert "error" not in after
    assert "failure_reason" not in after["delivery"][0]
    (line,) = after["error_history"]
    assert (line["code"], line["error"]) == ("provider_error", "")
    (attempt,) = factories.attempts(document["_id"])
    assert {"platform_response", "error_message"}.isdisjoint(attempt)


def test_in_app_notification_leaves_the_inbox() -> None:
    document = factories.accepted(channels=(IN_APP,))
    erase()
    after = factories.read(document["_id"])
    assert (after["status"], after["is_active"]) == ("delivered", False)


def test_repeated_erasure_changes_nothing() -> None:
    document = factories.accepted()
    some = removal.erasable(user_id="ada", limit=100)
    erase()
    first = factories.read(document["_id"])
    assert removal.erasable(user_id="ada", limit=100) == []
    removal.erase(some, user_id="ada", now=LATER + timedelta(days=1))
    again = factories.read(document["_id"])
    assert {**again, "updated_at": None} == {**first, "updated_at": None}
    assert removal.erase([], user_id="ada", now=LATER) == 0


def test_erased_notification_is_readable() -> None:
    document = factories.accepted(content=CONTENT)
    erase()
    after = factories.read(document["_id"])
    assert recipient_of(after) == Recipient()
    assert content_of(after) == Content(template_id="payment_confirmed", template_version=3)


@pytest.fixture
def many() -> None:
    """Store notifications of 20 users, one per second; each tenth has no user_id."""
    model = dict(factories.accepted())
    del model["user_id"]
    documents = [
        model
        | {"_id": ObjectId(), "created_at": NOON + timedelta(seconds=n)}
        | {"recipient": {"email": f"p{n % 20}@example.com"}}
        | ({"user_id": f"user-{n % 20}"} if n % 200 >= 20 else {})
        for n in range(2_000)
    ]
    collection("notifications").delete_many({})
    collection("notifications").insert_many(
        [document | {"search_keys": search_keys_of(document)} for document in documents]
    )


@pytest.mark.usefixtures("many")
def test_notifications_of_a_user_are_found_by_an_index_newest_first() -> None:
    first = removal.erasable(user_id="user-7", limit=40)
    with plans("notifications") as found:
        rest = removal.erasable(user_id="user-7", limit=40, after=first[-1])
    (plan,) = found
    assert plan.is_indexed
    assert not plan.sorts
    assert plan.examined <= 2 * plan.returned
    times = [document.created_at for document in (*first, *rest)]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == 80


@pytest.mark.usefixtures("many")
def test_notifications_of_an_address_are_found_by_an_index() -> None:
    with plans("notifications") as found:
        some = removal.erasable_at(EMAIL, "p7@example.com", limit=100)
    (plan,) = found
    assert plan.is_indexed
    assert plan.examined <= 100, "one address only"
    assert len(some) == 10
    removal.erase(some, user_id="user-7", now=LATER)
    assert removal.erasable_at(EMAIL, "p7@example.com", limit=100) == []
    assert removal.erasable_at(WHATSAPP, "+351912345678", limit=100) == []


def test_erased_notification_is_not_sent_again() -> None:
    document = factories.settled(S.FAILED)
    erase()
    for act in (actions.retry, actions.resend):
        with pytest.raises(actions.InvalidStateError, match="erased"):
            act(notification_id=document["_id"], channels=None, now=LATER)
