"""Turns: one round at a time is being sent to a provider."""

import threading
from collections.abc import Sequence
from datetime import timedelta

import pytest
from bson import ObjectId

from delivery.dispatcher import MIN_LEASE_LEFT, Bulkhead
from notifications.store import ClaimedDelivery
from tests.support.factories.notifications import NOON
from tests.support.factories.notifications import claimed_delivery as claimed

LATE = timedelta(seconds=0.05)


def batch(*, left: timedelta = timedelta(seconds=90), count: int = 2) -> Sequence[ClaimedDelivery]:
    return [claimed(notification_id=ObjectId(), lease_until=NOON + left) for _ in range(count)]


def test_a_turn_that_is_free_is_taken() -> None:
    with Bulkhead().acquire("sendgrid", batch(), now=NOON) as is_ours:
        assert is_ours


def test_one_has_it_at_a_time() -> None:
    turns, order, begun = Bulkhead(), [], threading.Event()

    def second() -> None:
        begun.set()
        with turns.acquire("sendgrid", batch(), now=NOON) as is_ours:
            order.append(("second", is_ours))

    with turns.acquire("sendgrid", batch(), now=NOON):
        other = threading.Thread(target=second)
        other.start()
        begun.wait()
        order.append(("first", True))
    other.join()
    assert order == [("first", True), ("second", True)]


def test_each_provider_has_its_own() -> None:
    turns = Bulkhead()
    with (
        turns.acquire("sendgrid", batch(), now=NOON),
        turns.acquire("whatsapp", batch(), now=NOON) as is_ours,
    ):
        assert is_ours


def test_what_goes_alone_waits_for_nobody() -> None:
    turns = Bulkhead()
    with (
        turns.acquire("sendgrid", batch(), now=NOON),
        turns.acquire("sendgrid", batch(count=1), now=NOON) as is_ours,
    ):
        assert is_ours


def test_nobody_waits_beyond_what_the_lease_leaves_room_for() -> None:
    turns = Bulkhead()
    with turns.acquire("sendgrid", batch(), now=NOON):
        late = batch(left=MIN_LEASE_LEFT + LATE)
        with turns.acquire("sendgrid", late, now=NOON) as is_ours:
            assert not is_ours
    with turns.acquire("sendgrid", batch(left=timedelta(0)), now=NOON) as is_ours:
        assert is_ours


def test_a_turn_is_given_back_when_sending_fails() -> None:
    turns = Bulkhead()
    with pytest.raises(ZeroDivisionError), turns.acquire("sendgrid", batch(), now=NOON):
        raise ZeroDivisionError
    with turns.acquire("sendgrid", batch(left=timedelta(0)), now=NOON) as is_ours:
        assert is_ours
