"""When something was sent, delivered and read: in this order, whoever was told of it first."""

import itertools
from datetime import datetime, timedelta

import pytest
from bson import ObjectId

from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.store import AttemptReference, DeliveryReceipt
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, delivery, read, settlement, started

pytestmark = pytest.mark.usefixtures("db")

S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
TIMES = (NOON - SECOND / 2, NOON, NOON + SECOND)
"""Before, when, and after our own write says that it was sent."""


def told(notification_id: ObjectId, status: DeliveryStatus, at: datetime) -> bool:
    reference = AttemptReference(notification_id, Channel.EMAIL, 1)
    report = DeliveryReceipt(reference=reference, status=status, at=at, provider="sendgrid")
    return store.apply_receipt(report, now=NOON + MINUTE)


def times(notification_id: ObjectId) -> list[datetime]:
    """Return when it was sent, delivered and read, as far as that is known."""
    one = delivery(read(notification_id))
    return [one[n] for n in ("sent_at", "delivered_at", "read_at") if one.get(n) is not None]


def test_a_receipt_that_overtook_our_own_write_says_when_it_was_sent() -> None:
    """Providers tell the second; we write the millisecond in which the answer was read."""
    one = started()
    sent = NOON + timedelta(milliseconds=430)
    store.settle([settlement(one, S.SENT, at=sent)], now=sent)
    assert told(one.notification_id, S.DELIVERED, NOON)
    assert times(one.notification_id) == [NOON, NOON]
    assert read(one.notification_id)["sent_at"] == NOON


def test_a_receipt_that_comes_later_leaves_when_it_was_sent() -> None:
    notification_id = ObjectId(factories.settled(S.SENT)["_id"])
    told(notification_id, S.DELIVERED, NOON + SECOND)
    assert times(notification_id) == [NOON, NOON + SECOND]


@pytest.mark.parametrize("beginning", [S.SENT, S.UNKNOWN])
def test_whatever_is_reported_with_whatever_times_they_are_in_order(
    beginning: DeliveryStatus,
) -> None:
    reports = (S.SENT, S.DELIVERED, S.READ)
    for order in itertools.permutations(reports):
        for some in itertools.permutations(TIMES):
            notification_id = ObjectId(factories.settled(beginning)["_id"])
            for status, at in zip(order, some, strict=True):
                told(notification_id, status, at)
            found = times(notification_id)
            assert (len(found), found) == (3, sorted(found)), (order, some)


def test_what_is_sent_again_after_a_bounce_is_read_after_it_was_sent() -> None:
    one = started()
    store.settle([settlement(one, S.SENT)], now=NOON)
    told(one.notification_id, S.DELIVERED, NOON)
    told(one.notification_id, S.FAILED, NOON + SECOND)
    later = NOON + MINUTE
    store.reopen(
        notification_id=one.notification_id, channels=[Channel.EMAIL], extra_attempts=1, now=later
    )
    again = factories.start(factories.claim(one.notification_id, at=later), at=later)
    store.settle([settlement(again, S.SENT, at=later)], now=later)
    told(one.notification_id, S.READ, later + SECOND)
    assert times(one.notification_id) == [later, later, later + SECOND]
