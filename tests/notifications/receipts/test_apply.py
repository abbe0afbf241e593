"""Applying receipts in any order and any number of times."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from domain.errors import RECEIPT_FAILURES, FailureCode
from domain.retry import GiveUp
from domain.states import TRANSITIONS, DeliveryStatus
from notifications.store import actions, leases, receipts, recovery
from notifications.store.pipelines import ERROR_LENGTH
from notifications.store.receipts import RANK, DeliveryReceipt
from notifications.store.references import AttemptReference
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    accepted,
    claim,
    claimed,
    delivery,
    read,
    settlement,
    start,
    started,
)
from tests.support.samples import sampled
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")


EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
RECEIPT_STATUSES = (S.SENT, S.DELIVERED, S.FAILED, S.READ)
ORDERS = list(itertools.permutations(RECEIPT_STATUSES))


def report(
    notification_id: ObjectId, status: DeliveryStatus, *, attempt: int = 1, **fields: Any
) -> DeliveryReceipt:
    default = DeliveryReceipt(
        reference=AttemptReference(notification_id, EMAIL, attempt),
        status=status,
        at=NOON + MINUTE,
        provider="sendgrid",
        provider_message_id="sg-1",
        code=FailureCode.BOUNCED if status is S.FAILED else None,
        reason="550 no such user" if status is S.FAILED else None,
    )
    return replace(default, **fields)


def apply_status(notification_id: ObjectId, status: DeliveryStatus, **fields: Any) -> bool:
    return receipts.apply_receipt(report(notification_id, status, **fields), now=NOON + MINUTE)


def status_of(notification_id: ObjectId) -> str:
    return str(delivery(read(notification_id))["status"])


def given_up() -> ObjectId:
    """Return a notification whose unknown outcome was resolved as failed."""
    document = factories.settled(S.UNKNOWN)
    now = NOON + 5 * MINUTE
    give_up = GiveUp(FailureCode.OUTCOME_UNKNOWN)
    recovery.resolve_unknown(
        [(outcome, give_up) for outcome in recovery.unknown_outcomes(now=now)], now=now
    )
    return ObjectId(document["_id"])


INITIAL_STATES: dict[str, Callable[[], ObjectId]] = {
    "claimed": lambda: claimed().notification_id,
    "sending": lambda: started().notification_id,
    "sent": lambda: ObjectId(factories.settled(S.SENT)["_id"]),
    "unknown": lambda: ObjectId(factories.settled(S.UNKNOWN)["_id"]),
    "waiting for a retry": lambda: ObjectId(factories.settled(S.PENDING)["_id"]),
    "given up": given_up,
}


@pytest.mark.parametrize("initial", INITIAL_STATES)
def test_highest_status_wins_in_any_order(initial: str) -> None:
    """Orders of all receipts suffice, because each order of some is the start of one."""
    for order in sampled(ORDERS, each=4):
        notification_id = INITIAL_STATES[initial]()
        for count, status in enumerate(order, start=1):
            apply_status(notification_id, status)
            highest = max(order[:count], key=lambda status: RANK[status])
            assert status_of(notification_id) == highest, order[:count]


@pytest.mark.parametrize("initial", ["sending", "unknown"])
def test_repeated_receipts_change_nothing(initial: str) -> None:
    for order in sampled(ORDERS, each=6):
        notification_id = INITIAL_STATES[initial]()
        for status in order:
            apply_status(notification_id, status)
        document = read(notification_id)
        for status in order * 2:
            assert not apply_status(notification_id, status)
        assert read(notification_id) == document


def test_receipts_follow_the_table_of_transitions() -> None:
    for initial in INITIAL_STATES.values():
        for status in RECEIPT_STATUSES:
            notification_id = initial()
            before = DeliveryStatus(status_of(notification_id))
            if apply_status(notification_id, status):
                assert status in TRANSITIONS[before]


def test_delivered_receipt_closes_the_delivery() -> None:
    notification_id = started().notification_id
    apply_status(notification_id, S.DELIVERED)
    document = read(notification_id)
    delivered = delivery(document)
    assert document["status"] == "delivered"
    assert delivered["sent_at"] == delivered["delivered_at"] == NOON + MINUTE
    assert delivered["claim"] is None
    assert delivered["provider_message_id"] == "sg-1"
    assert "due_at" not in document


def test_earlier_times_and_ids_are_kept() -> None:
    notification_id = ObjectId(factories.settled(S.SENT)["_id"])
    apply_status(notification_id, S.DELIVERED, provider_message_id="another")
    apply_status(notification_id, S.READ, at=NOON + 2 * MINUTE, provider_message_id="another")
    done = delivery(read(notification_id))
    assert (done["sent_at"], done["delivered_at"], done["read_at"]) == (
        NOON,
        NOON + MINUTE,
        NOON + 2 * MINUTE,
    )
    assert done["provider_message_id"] == "sg-1"


def test_read_receipt_implies_delivered() -> None:
    notification_id = started().notification_id
    apply_status(notification_id, S.READ)
    done = delivery(read(notification_id))
    assert done["sent_at"] == done["delivered_at"] == done["read_at"] == NOON + MINUTE
    assert read(notification_id)["is_read"]


def test_bounce_fails_the_delivery_with_its_reason() -> None:
    notification_id = ObjectId(factories.settled(S.DELIVERED)["_id"])
    assert apply_status(notification_id, S.FAILED)
    document = read(notification_id)
    bounced = delivery(document)
    assert (bounced["status"], document["status"]) == ("failed", "failed")
    assert (bounced["failure_code"], bounced["failure_reason"]) == ("bounced", "550 no such user")
    assert document["failed_at"] == bounced["failed_at"] == NOON + MINUTE
    assert document["error_history"][-1]["code"] == "bounced"


def test_success_after_giving_up_clears_the_failure() -> None:
    notification_id = given_up()
    apply_status(notification_id, S.SENT)
    document = read(notification_id)
    sent = delivery(document)
    assert (sent["failure_code"], sent["failure_reason"], sent["failed_at"]) == (None, None, None)
    assert "failed_at" not in document
    assert document["status"] == "sent"


def test_failure_without_a_code_has_a_default_code() -> None:
    notification_id = started().notification_id
    apply_status(notification_id, S.FAILED, code=None, reason=None)
    assert delivery(read(notification_id))["failure_code"] == "reported_failed"


def test_long_reason_is_truncated() -> None:
    notification_id = started().notification_id
    apply_status(notification_id, S.FAILED, reason="x" * 5_000)
    assert len(delivery(read(notification_id))["failure_reason"]) == ERROR_LENGTH


@each_case("text", ["$$ROOT", "$delivery", "$$d.claim", "{{ x }}", "$"])
def test_texts_are_stored_literally(text: str) -> None:
    notification_id = started().notification_id
    apply_status(notification_id, S.FAILED, reason=text, provider=text, provider_message_id=text)
    failed = delivery(read(notification_id))
    assert failed["failure_reason"] == failed["provider"] == failed["provider_message_id"] == text
    assert read(notification_id)["error"] == text


@each_case("early", [S.SENT, S.DELIVERED, S.READ, S.FAILED])
@each_case("ours", [S.SENT, S.PENDING, S.UNKNOWN, S.FAILED])
def test_early_receipt_wins_over_our_own_write(early: DeliveryStatus, ours: DeliveryStatus) -> None:
    begun = started()
    assert apply_status(begun.notification_id, early)
    assert leases.settle([settlement(begun, ours)], now=NOON + MINUTE) == 0
    assert status_of(begun.notification_id) == early


def test_receipt_resolves_an_unknown_outcome() -> None:
    notification_id = ObjectId(factories.settled(S.UNKNOWN)["_id"])
    assert apply_status(notification_id, S.DELIVERED)
    assert recovery.unknown_outcomes(now=NOON + timedelta(days=1)) == []
    assert status_of(notification_id) == "delivered"


def second_attempt() -> ObjectId:
    """Return a notification with a started second attempt."""
    document = factories.settled(S.PENDING)
    at = NOON + 5 * MINUTE
    start(claim(document["_id"], at=at), at=at)
    return ObjectId(document["_id"])


def test_failure_of_an_earlier_attempt_is_ignored() -> None:
    notification_id = second_attempt()
    assert not apply_status(notification_id, S.FAILED, attempt=1)
    assert status_of(notification_id) == "sending"
    assert apply_status(notification_id, S.FAILED, attempt=2)
    assert status_of(notification_id) == "failed"


def repeat(notification_id: ObjectId, *, series_first: int | None) -> None:
    """Start the next attempt, with or without the mark of a repeat, and leave it unknown."""
    at = NOON + 5 * MINUTE
    begun = start(replace(claim(notification_id, at=at), series_first=series_first), at=at)
    leases.settle([settlement(begun, S.PENDING, at=at, next_attempt_at=at)], now=at)


def test_failure_of_a_repeated_attempt_counts() -> None:
    """All attempts since are repeats, and the failure names the first of them."""
    for later in ([1], [1, 1]):
        notification_id = ObjectId(factories.settled(S.PENDING)["_id"])
        for first in later:
            repeat(notification_id, series_first=first)
        assert not apply_status(notification_id, S.FAILED, attempt=0)
        assert apply_status(notification_id, S.FAILED, attempt=1)
        assert status_of(notification_id) == "failed"


def test_failure_before_another_message_is_ignored() -> None:
    """The last attempt repeats nothing, also if an earlier version made it, or a later one."""
    for later in ([1, None], [None, 2], [1, 3], [1, None, 3]):
        notification_id = ObjectId(factories.settled(S.PENDING)["_id"])
        for first in later:
            repeat(notification_id, series_first=first)
        assert not apply_status(notification_id, S.FAILED, attempt=1), later
        assert status_of(notification_id) == "pending"


@each_case("status", [S.SENT, S.DELIVERED, S.READ])
def test_success_of_an_earlier_attempt_counts(status: DeliveryStatus) -> None:
    notification_id = second_attempt()
    assert apply_status(notification_id, status, attempt=1)
    assert status_of(notification_id) == status


@each_case("code", sorted(RECEIPT_FAILURES))
@each_case("status", [S.SENT, S.DELIVERED])
def test_reported_failure_wins_over_success(code: FailureCode, status: DeliveryStatus) -> None:
    notification_id = started().notification_id
    apply_status(notification_id, S.FAILED, code=code)
    assert not apply_status(notification_id, status)
    assert status_of(notification_id) == "failed"


def test_reported_failure_replaces_our_own() -> None:
    notification_id = given_up()
    assert apply_status(notification_id, S.FAILED)
    assert delivery(read(notification_id))["failure_code"] == "bounced"


@each_case("status", RECEIPT_STATUSES)
def test_cancelled_delivery_stays_cancelled(status: DeliveryStatus) -> None:
    document = accepted()
    actions.cancel(notification_id=document["_id"], channels=[EMAIL], reason="x", now=NOON)
    assert not apply_status(document["_id"], status)
    assert status_of(document["_id"]) == "cancelled"


@each_case("channel", [PUSH, WHATSAPP, IN_APP])
def test_other_channels_are_unchanged(channel: Channel) -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    first_report = report(document["_id"], S.DELIVERED)
    receipts.apply_receipt(
        replace(first_report, reference=AttemptReference(document["_id"], channel, 1)),
        now=NOON + MINUTE,
    )
    assert status_of(document["_id"]) == "pending"


def test_receipt_for_an_unknown_notification_changes_nothing() -> None:
    assert not apply_status(ObjectId(), S.DELIVERED)


TIMES = (NOON - SECOND / 2, NOON, NOON + SECOND)
"""Before, at, and after our own time of the answer."""


def times(notification_id: ObjectId, channel: Channel = EMAIL) -> list[datetime]:
    stored = delivery(read(notification_id), channel)
    return [stored[n] for n in ("sent_at", "delivered_at", "read_at") if stored.get(n) is not None]


ATTEMPT, ANSWER = NOON + timedelta(milliseconds=430), NOON + timedelta(milliseconds=520)


@each_case("status", [S.SENT, S.DELIVERED, S.READ])
@each_case("channel", [EMAIL, PUSH, WHATSAPP])
def test_sent_at_stays_our_own_time_of_the_answer(channel: Channel, status: DeliveryStatus) -> None:
    """Providers report whole seconds; our write has milliseconds."""
    begun = started(at=ATTEMPT, channel=channel, created_at=ATTEMPT)
    leases.settle([settlement(begun, S.SENT, at=ANSWER)], now=ANSWER)
    reference = AttemptReference(begun.notification_id, channel, 1)
    apply_status(begun.notification_id, status, at=NOON, reference=reference)
    assert set(times(begun.notification_id, channel)) == {ANSWER}
    assert read(begun.notification_id)["sent_at"] == ANSWER


@each_case("status", [S.SENT, S.DELIVERED, S.READ])
@each_case("channel", [EMAIL, WHATSAPP])
def test_receipt_before_our_write_is_not_before_the_attempt(
    channel: Channel, status: DeliveryStatus
) -> None:
    begun = started(at=ATTEMPT, channel=channel, created_at=NOON)
    reference = AttemptReference(begun.notification_id, channel, 1)
    assert apply_status(begun.notification_id, status, at=NOON, reference=reference)
    assert set(times(begun.notification_id, channel)) == {ATTEMPT}


def test_device_receipt_before_our_write_is_not_before_the_attempt() -> None:
    begun = started(at=ATTEMPT, channel=PUSH, created_at=NOON)
    reference = AttemptReference(begun.notification_id, PUSH, 1, "phone")
    assert apply_status(begun.notification_id, S.READ, at=NOON, reference=reference)
    leases.settle([settlement(begun, S.SENT, at=ANSWER)], now=ANSWER)
    assert set(times(begun.notification_id, PUSH)) == {ATTEMPT}


@pytest.mark.parametrize("initial", [S.SENT, S.UNKNOWN])
def test_times_are_in_order_for_any_receipts(initial: DeliveryStatus) -> None:
    orders = itertools.permutations((S.SENT, S.DELIVERED, S.READ))
    cases = list(itertools.product(orders, itertools.permutations(TIMES)))
    for order, some in sampled(cases, each=3):
        notification_id = ObjectId(factories.settled(initial)["_id"])
        for status, at in zip(order, some, strict=True):
            apply_status(notification_id, status, at=at)
        found = times(notification_id)
        assert (len(found), found) == (3, sorted(found)), (order, some)


def test_delivery_sent_again_after_a_bounce_is_read_after_it() -> None:
    begun = started()
    leases.settle([settlement(begun, S.SENT)], now=NOON)
    apply_status(begun.notification_id, S.DELIVERED, at=NOON)
    apply_status(begun.notification_id, S.FAILED, at=NOON + SECOND)
    later = NOON + MINUTE
    actions.reopen(notification_id=begun.notification_id, channels=[Channel.EMAIL], now=later)
    again = factories.start(factories.claim(begun.notification_id, at=later), at=later)
    leases.settle([settlement(again, S.SENT, at=later)], now=later)
    apply_status(begun.notification_id, S.READ, at=later + SECOND)
    assert times(begun.notification_id) == [later, later, later + SECOND]
