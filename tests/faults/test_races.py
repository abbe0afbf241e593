"""Repeated wake-ups, and staff actions during a send.

``make chaos SCENARIO=9`` and ``SCENARIO=18`` test the same with more load and real workers.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from bson import ObjectId

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Recipient
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.actions import actions
from notifications.actions.actions import InvalidStateError
from notifications.store import leases
from sandbox.assembly import Sandbox
from tests.support.clients.sandbox import copies
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
