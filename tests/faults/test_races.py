"""Repeated wake-ups, and staff actions during a send.

``make chaos SCENARIO=9`` and ``SCENARIO=18`` test the same with more load and real workers.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise

import pytest
import urllib3
from bson import ObjectId

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Recipient
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.actions import actions
from notifications.actions.actions import InvalidStateError
from notifications.intake import acceptance, replacement
from notifications.intake.replacement import NotReplaceableError
from notifications.intake.requests import (
    Caller,
    ContentRequest,
    NotificationRecipientRequest,
    NotificationRequest,
)
from notifications.store import leases, removal
from notifyproject.db.collections import collection
from sandbox.assembly import Sandbox
from tests.support.clients.sandbox import Box, copies
from tests.support.factories import notifications as factories
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "broker")
TIMES, AT_ONCE = 10, 5
COUNT = 20
S = DeliveryStatus


def due(count: int) -> list[ObjectId]:
    return [
        factories.accepted(
            created_at=utc_now(), recipient=Recipient(email=f"user-{number}@example.com")
        )["_id"]
        for number in range(count)
    ]


def deliver(ids: Sequence[ObjectId]) -> None:
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL)


def status(notification_id: ObjectId) -> str:
    found: str = factories.delivery(factories.read(notification_id))["status"]
    return found


def test_repeated_concurrent_wakeups_send_once(taker: Sandbox) -> None:
    ids = due(COUNT)
    batches = [
        *([notification_id] for notification_id in ids),
        *(list(pair) for pair in pairwise(ids)),
        ids,
    ]
    with ThreadPoolExecutor(AT_ONCE) as workers:
        list(workers.map(deliver, batches * TIMES))
    assert copies(taker) == dict.fromkeys(map(str, ids), 1)
    assert {status(notification_id) for notification_id in ids} == {S.SENT}


def test_concurrent_retries_during_a_sweep_send_once(taker: Sandbox) -> None:
    ids = due(COUNT)
    for notification_id in ids:
        claimed = factories.start(factories.claim(notification_id, at=utc_now()), at=utc_now())
        failed = factories.settlement(claimed, S.FAILED, at=utc_now())
        leases.settle([failed], now=utc_now())
    reopened: list[ObjectId] = []

    def retry_all() -> None:
        for notification_id in ids:
            try:
                actions.retry(notification_id=notification_id, channels=None, now=utc_now())
            except InvalidStateError:
                continue
            reopened.append(notification_id)

    def deliver_again_and_again() -> None:
        for _ in range(TIMES):
            deliver(ids)

    at_once(
        retry_all, retry_all, *(deliver_again_and_again,) * 2, lambda: sweeper.sweep(now=utc_now())
    )
    deliver(ids)
    assert Counter(reopened) == dict.fromkeys(ids, 1)
    assert copies(taker) == dict.fromkeys(map(str, ids), 1)
    assert {status(notification_id) for notification_id in ids} == {S.SENT}


def test_concurrent_cancel_and_send_never_do_both(taker: Sandbox) -> None:
    ids = due(COUNT)

    def cancel_all() -> None:
        for notification_id in ids:
            try:
                actions.cancel(
                    notification_id=notification_id,
                    channels=None,
                    reason="Not needed.",
                    now=utc_now(),
                )
            except InvalidStateError:
                continue

    at_once(
        cancel_all,
        *(
            lambda notification_id=notification_id: deliver([notification_id])
            for notification_id in reversed(ids)
        ),
    )
    taken = copies(taker)
    ends = {notification_id: status(notification_id) for notification_id in ids}
    assert set(ends.values()) <= {S.SENT, S.CANCELLED}
    for notification_id, end in ends.items():
        assert taken[str(notification_id)] == (1 if end == S.SENT else 0)


def ask_for(address: str, expires_at: datetime | None = None) -> NotificationRequest:
    return NotificationRequest(
        type="transactional",
        channels=["email"],
        recipient=NotificationRecipientRequest(email=address),
        content=ContentRequest(subject="Tomorrow", body="At 15:00."),
        expires_at=expires_at.isoformat() if expires_at else None,
    )


def keyed(count: int, client_id: ObjectId) -> dict[str, ObjectId]:
    """Return the IDs of notifications that are due, by their keys."""
    ids = {}
    for key in [f"key-{number}" for number in range(count)]:
        caller = Caller(client_id=client_id, idempotency_key=key)
        request = ask_for(f"old@{key}.example")
        ids[key] = acceptance.accept(request, caller=caller, now=utc_now()).document["_id"]
    return ids


def put(key: str, client_id: ObjectId, request: NotificationRequest) -> bool:
    """Replace a notification. Return whether that was possible."""
    try:
        replacement.put(request, key=key, caller=Caller(client_id=client_id), now=utc_now())
    except NotReplaceableError:
        return False
    return True


def sent_to(taker: Sandbox) -> Counter[str]:
    with urllib3.PoolManager() as http:
        found = Box(sandbox=taker, http=http).control("GET", "/messages?limit=100")["results"]
    return Counter(address for message in found for address in message["to"])


@pytest.mark.usefixtures("shipped_types")
class TestReplacement:
    """Of what is answered as replaced, only the new message is sent; else, only the old one."""

    client_id = ObjectId()

    def put_all(self, ids: dict[str, ObjectId]) -> dict[str, bool]:
        return {
            key: put(key, self.client_id, ask_for(f"new@{key}.example")) for key in reversed(ids)
        }

    def test_during_a_send(self, taker: Sandbox) -> None:
        ids = keyed(COUNT, self.client_id)
        results: dict[str, bool] = {}
        at_once(
            lambda: results.update(self.put_all(ids)),
            *(partial(deliver, [notification_id]) for notification_id in ids.values()),
        )
        deliver(list(ids.values()))
        assert copies(taker) == dict.fromkeys(map(str, ids.values()), 1)
        assert sent_to(taker) == {
            f"{'new' if results[key] else 'old'}@{key}.example": 1 for key in ids
        }

    def test_between_claim_and_start(self, taker: Sandbox) -> None:
        ids = keyed(1, self.client_id)
        (notification_id,) = ids.values()
        claim = factories.claim(notification_id, at=utc_now())
        assert self.put_all(ids) == {"key-0": True}
        assert leases.start([claim], provider="sendgrid", worker="w", now=utc_now()) == []
        assert leases.release([claim], now=utc_now()) == 0
        deliver([notification_id])
        assert sent_to(taker) == {"new@key-0.example": 1}

    def test_during_another_one(self, taker: Sandbox) -> None:
        ids = keyed(1, self.client_id)
        (notification_id,) = ids.values()
        names = [f"new-{number}@key-0.example" for number in range(AT_ONCE)]
        requests = [ask_for(name) for name in [*names, names[0]]]
        assert all(at_once(*(partial(put, "key-0", self.client_id, one) for one in requests)))
        document = factories.read(notification_id)
        assert document["replaced"]["count"] in (AT_ONCE, AT_ONCE + 1)
        deliver([notification_id])
        assert sent_to(taker) == {document["recipient"]["email"]: 1}
        assert document["recipient"]["email"] in names

    def test_first_ones_of_a_key(self, taker: Sandbox) -> None:
        requests = [ask_for(f"new-{number}@key.example") for number in range(AT_ONCE)]
        assert all(at_once(*(partial(put, "fresh", self.client_id, one) for one in requests)))
        (document,) = collection("notifications").find({})
        deliver([document["_id"]])
        assert sent_to(taker) == {document["recipient"]["email"]: 1}

    def test_during_a_cancellation(self, taker: Sandbox) -> None:
        ids = keyed(COUNT, self.client_id)

        def cancel_all() -> None:
            for notification_id in ids.values():
                actions.cancel(
                    notification_id=notification_id, channels=None, reason="No.", now=utc_now()
                )

        at_once(cancel_all, lambda: self.put_all(ids))
        deliver(list(ids.values()))
        assert {status(notification_id) for notification_id in ids.values()} == {S.CANCELLED}
        assert sent_to(taker) == {}

    def test_during_an_erasure(self, taker: Sandbox) -> None:
        ids = keyed(COUNT, self.client_id)
        at_once(
            lambda: removal.erase_content(list(ids.values()), now=utc_now()),
            lambda: self.put_all(ids),
        )
        documents = list(collection("notifications").find({}))
        assert {len(document["recipient"]) for document in documents} == {1}
        assert not any("@" in str(document["search_keys"]) for document in documents)
        deliver(list(ids.values()))
        assert sent_to(taker) == {}

    def test_during_the_expiry(self, taker: Sandbox) -> None:
        ids = keyed(COUNT, self.client_id)
        past = utc_now() - timedelta(seconds=1)
        collection("notifications").update_many({}, {"$set": {"expires_at": past}})
        results: dict[str, bool] = {}
        at_once(
            lambda: results.update(self.put_all(ids)),
            *(partial(deliver, [notification_id]) for notification_id in ids.values()),
        )
        deliver(list(ids.values()))
        assert sent_to(taker) == {f"new@{key}.example": 1 for key in ids if results[key]}
        ends = {key: status(notification_id) for key, notification_id in ids.items()}
        assert ends == {key: S.SENT if results[key] else S.EXPIRED for key in ids}
