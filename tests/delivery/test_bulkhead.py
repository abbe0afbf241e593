"""The bulkhead: one batch per provider at a time."""

import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest
from bson import ObjectId

from delivery.dispatcher import MIN_LEASE_LEFT, Bulkhead
from notifications.store import ClaimedDelivery
from tests.support.factories.notifications import NOON
from tests.support.factories.notifications import claimed_delivery as claimed

MARGIN = timedelta(seconds=0.05)


def batch(
    *, lease_left: timedelta = timedelta(seconds=90), count: int = 2
) -> Sequence[ClaimedDelivery]:
    return [
        claimed(notification_id=ObjectId(), lease_until=NOON + lease_left) for _ in range(count)
    ]


def test_free_slot_is_acquired_at_once() -> None:
    with Bulkhead().acquire("sendgrid", batch(), now=NOON) as acquired:
        assert acquired


def test_second_batch_waits_for_the_first() -> None:
    bulkhead, order, begun = Bulkhead(), [], threading.Event()

    def second() -> None:
        begun.set()
        with bulkhead.acquire("sendgrid", batch(), now=NOON) as acquired:
            order.append(("second", acquired))

    with bulkhead.acquire("sendgrid", batch(), now=NOON):
        other = threading.Thread(target=second)
        other.start()
        begun.wait()
        order.append(("first", True))
    other.join()
    assert order == [("first", True), ("second", True)]


def test_each_provider_has_its_own_slot() -> None:
    bulkhead = Bulkhead()
    with (
        bulkhead.acquire("sendgrid", batch(), now=NOON),
        bulkhead.acquire("whatsapp", batch(), now=NOON) as acquired,
    ):
        assert acquired


def test_isolated_delivery_does_not_wait() -> None:
    bulkhead = Bulkhead()
    with (
        bulkhead.acquire("sendgrid", batch(), now=NOON),
        bulkhead.acquire("sendgrid", batch(count=1), now=NOON) as acquired,
    ):
        assert acquired


def test_acquire_gives_up_before_the_lease_is_too_short() -> None:
    bulkhead = Bulkhead()
    with bulkhead.acquire("sendgrid", batch(), now=NOON):
        short_lease = batch(lease_left=MIN_LEASE_LEFT + MARGIN)
        with bulkhead.acquire("sendgrid", short_lease, now=NOON) as acquired:
            assert not acquired
    with bulkhead.acquire("sendgrid", batch(lease_left=timedelta(0)), now=NOON) as acquired:
        assert acquired


def test_slot_is_released_when_sending_fails() -> None:
    bulkhead = Bulkhead()
    with pytest.raises(ZeroDivisionError), bulkhead.acquire("sendgrid", batch(), now=NOON):
        raise ZeroDivisionError
    with bulkhead.acquire("sendgrid", batch(lease_left=timedelta(0)), now=NOON) as acquired:
        assert acquired
