"""The callback outbox: claims, settlement, replay, and the subscription."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from callbacks import outbox, subscriptions
from callbacks.events import CallbackState, DisabledReason, Event, EventType
from callbacks.outbox import LEASE, ClaimedMessage
from callbacks.retry import AttemptOutcome, Decision
from callbacks.subscriptions import TooManySecretsError
from notifyproject.db.collections import collection
from notifyproject.platform.endpoints import EndpointResponse
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.fakes.callback_receiver import called_back

pytestmark = pytest.mark.usefixtures("db", "broker")
E = EventType
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
ELSEWHERE = "http://127.0.0.1:9/hooks"


def event(number: int = 1, *, client_id: ObjectId = CLIENT, **fields: Any) -> Event:
    default: dict[str, Any] = {"type": E.DELIVERY_SENT, "at": NOON, "data": {"number": number}}
    return Event(id=f"evt_{client_id}_{number}", client_id=client_id, **(default | fields))


def recorded(count: int = 1) -> list[str]:
    called_back(ELSEWHERE)
    events = [event(number) for number in range(count)]
    outbox.store_messages(events, now=NOON)
    return [event.id for event in events]


def claim(*, limit: int = 100, at: Any = NOON) -> list[ClaimedMessage]:
    return outbox.claim(client_id=CLIENT, limit=limit, now=at)


def stored(message_id: str) -> dict[str, Any]:
    found = collection("callback_messages").find_one({"_id": message_id})
    assert found is not None
    return found


def settle(held: ClaimedMessage, decision: Decision, *, at: Any = NOON, **fields: Any) -> bool:
    response = {"status": None, "error": None, "duration_ms": 12} | fields
    return outbox.settle(held, EndpointResponse(**response), decision, at=at)


def test_event_is_stored_once() -> None:
    called_back(ELSEWHERE)
    assert outbox.store_messages([event(1), event(2)], now=NOON) == [CLIENT]
    outbox.store_messages([event(2), event(3)], now=NOON + MINUTE)
    assert collection("callback_messages").count_documents({}) == 3
    assert stored(event(2).id)["created_at"] == NOON


def test_event_without_callback_is_not_stored() -> None:
    called_back(ELSEWHERE)
    assert outbox.store_messages([event(client_id=ObjectId())], now=NOON) == []


def test_delivered_message_is_settled() -> None:
    (message_id,) = recorded()
    (held,) = claim()
    settle(held, Decision(AttemptOutcome.DELIVERED), status=204)
    document = stored(message_id)
    assert (document["status"], document["tries"]) == ("delivered", 1)
    assert "next_try_at" not in document
    assert document["history"] == [{"at": NOON, "duration_ms": 12, "status_code": 204}]
    assert document["purge_at"] == NOON + 30 * DAY


def test_failed_message_is_due_at_the_decided_time() -> None:
    (message_id,) = recorded()
    (held,) = claim()
    decision = Decision(AttemptOutcome.RETRY, at=NOON + MINUTE)
    settle(held, decision, status=503, error="HTTP 503.", excerpt="busy")
    assert (stored(message_id)["status"], stored(message_id)["error"]) == (
        "pending",
        "HTTP 503.",
    )
    assert claim() == []
    (again,) = claim(at=NOON + MINUTE)
    assert again.tries == 1


def test_last_ten_attempts_are_kept() -> None:
    (message_id,) = recorded()
    for number in range(12):
        at = NOON + number * LEASE
        (held,) = claim(at=at)
        settle(held, Decision(AttemptOutcome.RETRY, at=at), at=at, duration_ms=number)
    assert [document["duration_ms"] for document in stored(message_id)["history"]] == list(
        range(2, 12)
    )


@pytest.mark.parametrize("outcome", [AttemptOutcome.GIVE_UP, AttemptOutcome.GONE])
def test_failed_message_can_be_replayed(outcome: AttemptOutcome) -> None:
    (message_id,) = recorded()
    (held,) = claim()
    settle(held, Decision(outcome), error="HTTP 500.")
    assert stored(message_id)["status"] == "failed"
    outbox.replay(message_id=message_id, client_id=CLIENT, now=NOON + DAY)
    document = stored(message_id)
    assert (document["status"], document["tries"], document["replayed_at"]) == (
        "pending",
        0,
        NOON + DAY,
    )
    assert [message.id for message in claim(at=NOON + DAY)] == [message_id]


def test_event_of_a_disabled_callback_is_stored_as_failed() -> None:
    called_back(ELSEWHERE)
    subscriptions.disable(client_id=CLIENT, reason=DisabledReason.FAILING, now=NOON)
    assert outbox.store_messages([event()], now=NOON) == []
    assert stored(event().id)["status"] == "failed"
    assert claim() == []
    subscriptions.enable(client_id=CLIENT, now=NOON)
    outbox.replay(message_id=event().id, client_id=CLIENT, now=NOON)
    assert len(claim()) == 1


def test_callback_secret_is_returned_once_and_stored_encrypted() -> None:
    made = called_back(ELSEWHERE)
    assert made.secret is not None
    assert made.secret.removeprefix("whsec_") not in str(subscriptions.get(CLIENT))
    assert called_back(ELSEWHERE).secret is None


def test_concurrent_puts_create_one_callback() -> None:
    barrier = threading.Barrier(4)

    def work(_: int) -> str | None:
        barrier.wait()
        return called_back(ELSEWHERE).secret

    with ThreadPoolExecutor(4) as workers:
        assert len([secret for secret in workers.map(work, range(4)) if secret]) == 1
    assert collection("callbacks").count_documents({}) == 1


def test_put_enables_a_disabled_callback() -> None:
    called_back(ELSEWHERE)
    subscriptions.disable(client_id=CLIENT, reason=DisabledReason.GONE, now=NOON)
    document = called_back(ELSEWHERE, now=NOON + DAY).document
    assert document["state"] == CallbackState.ACTIVE
    assert not {"disabled_at", "disabled_reason", "failing_since", "open_until"} & set(document)


def test_put_keeps_an_operators_disabling() -> None:
    called_back(ELSEWHERE)
    subscriptions.disable(client_id=CLIENT, reason=DisabledReason.BY_OPERATOR, now=NOON)
    changed = called_back(f"{ELSEWHERE}/new").document
    assert (changed["state"], changed["url"]) == ("disabled", f"{ELSEWHERE}/new")
    assert subscriptions.enable(client_id=CLIENT, now=NOON)


def test_put_of_the_same_url_keeps_the_failures() -> None:
    called_back(ELSEWHERE)
    trouble = {"failures": 7, "failing_since": NOON}
    collection("callbacks").update_one({"_id": CLIENT}, {"$set": trouble})
    assert called_back(ELSEWHERE).document["failures"] == 7
    elsewhere = called_back(f"{ELSEWHERE}/new").document
    assert elsewhere["failures"] == 0
    assert "failing_since" not in elsewhere


def test_secret_rotations_are_limited() -> None:
    called_back(ELSEWHERE)
    for _ in range(4):
        subscriptions.rotate(CLIENT, now=NOON)
    with pytest.raises(TooManySecretsError):
        subscriptions.rotate(CLIENT, now=NOON)
    subscriptions.rotate(CLIENT, now=NOON + DAY)
    assert len(subscriptions.get(CLIENT)["secrets"]) == 2
