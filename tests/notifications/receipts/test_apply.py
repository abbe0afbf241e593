"""Applying receipts: in any order, any number of times, to one end and one set of times."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.errors import RECEIPT_FAILURES, FailureCode
from domain.retry import GiveUp
from domain.states import TRANSITIONS, Channel, DeliveryStatus
from notifications import store
from notifications.store import AttemptReference, DeliveryReceipt
from notifications.store.documents import ERROR_LENGTH
from notifications.store.receipts import RANK
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

pytestmark = pytest.mark.usefixtures("db")


EMAIL, PUSH, WHATSAPP, IN_APP = Channel

S = DeliveryStatus

MINUTE = timedelta(minutes=1)

REPORTABLE = (S.SENT, S.DELIVERED, S.FAILED, S.READ)


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


def told(notification_id: ObjectId, status: DeliveryStatus, **fields: Any) -> bool:
    """Apply one report; return whether it changed anything."""
    return store.apply_receipt(report(notification_id, status, **fields), now=NOON + MINUTE)


def status_of(notification_id: ObjectId) -> str:
    return str(delivery(read(notification_id))["status"])


def declared_failed() -> ObjectId:
    """Return a notification that we gave up on without knowing."""
    document = factories.settled(S.UNKNOWN)
    now = NOON + 5 * MINUTE
    give_up = GiveUp(FailureCode.OUTCOME_UNKNOWN)
    store.resolve_unknown([(one, give_up) for one in store.unknown_outcomes(now=now)], now=now)
    return ObjectId(document["_id"])


BEGINNINGS: dict[str, Callable[[], ObjectId]] = {
    "claimed": lambda: claimed().notification_id,
    "sending": lambda: started().notification_id,
    "sent": lambda: ObjectId(factories.settled(S.SENT)["_id"]),
    "unknown": lambda: ObjectId(factories.settled(S.UNKNOWN)["_id"]),
    "waiting for a retry": lambda: ObjectId(factories.settled(S.PENDING)["_id"]),
    "failed by our own account": declared_failed,
}


@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_in_any_order_the_highest_report_stands(beginning: str) -> None:
    """Every order of any of them is the beginning of an order of all."""
    for order in itertools.permutations(REPORTABLE):
        notification_id = BEGINNINGS[beginning]()
        for count, status in enumerate(order, start=1):
            told(notification_id, status)
            highest = max(order[:count], key=lambda status: RANK[status])
            assert status_of(notification_id) == highest, order[:count]


@pytest.mark.parametrize("beginning", ["sending", "unknown"])
def test_any_number_of_times_the_same_stands(beginning: str) -> None:
    for order in itertools.permutations(REPORTABLE):
        notification_id = BEGINNINGS[beginning]()
        for status in order:
            told(notification_id, status)
        document = read(notification_id)
        for status in order * 2:
            assert not told(notification_id, status)
        assert read(notification_id) == document


def test_a_report_says_whether_it_changed_anything() -> None:
    notification_id = started().notification_id
    changed = [told(notification_id, s) for s in (S.SENT, S.SENT, S.DELIVERED, S.SENT, S.READ)]
    assert changed == [True, False, True, False, True]


def test_every_step_a_report_takes_is_on_the_table_of_transitions() -> None:
    for beginning in BEGINNINGS.values():
        for status in REPORTABLE:
            notification_id = beginning()
            before = DeliveryStatus(status_of(notification_id))
            if told(notification_id, status):
                assert status in TRANSITIONS[before]


def test_delivered_says_when_and_is_open_no_more() -> None:
    notification_id = started().notification_id
    told(notification_id, S.DELIVERED)
    document = read(notification_id)
    delivered = delivery(document)
    assert document["status"] == "delivered"
    assert delivered["sent_at"] == delivered["delivered_at"] == NOON + MINUTE
    assert delivered["claim"] is None
    assert delivered["provider_message_id"] == "sg-1"
    assert "due_at" not in document


def test_what_was_known_before_stays_known() -> None:
    notification_id = ObjectId(factories.settled(S.SENT)["_id"])
    told(notification_id, S.DELIVERED, provider_message_id="another")
    told(notification_id, S.READ, at=NOON + 2 * MINUTE, provider_message_id="another")
    done = delivery(read(notification_id))
    assert (done["sent_at"], done["delivered_at"], done["read_at"]) == (
        *(NOON, NOON + MINUTE, NOON + 2 * MINUTE),
    )
    assert done["provider_message_id"] == "sg-1"


def test_who_read_it_has_got_it() -> None:
    notification_id = started().notification_id
    told(notification_id, S.READ)
    done = delivery(read(notification_id))
    assert done["sent_at"] == done["delivered_at"] == done["read_at"] == NOON + MINUTE
    assert read(notification_id)["is_read"]


def test_a_bounce_is_a_failure_with_its_reason() -> None:
    notification_id = ObjectId(factories.settled(S.DELIVERED)["_id"])
    assert told(notification_id, S.FAILED)
    document = read(notification_id)
    bounced = delivery(document)
    assert (bounced["status"], document["status"]) == ("failed", "failed")
    assert (bounced["failure_code"], bounced["failure_reason"]) == ("bounced", "550 no such user")
    assert document["failed_at"] == bounced["failed_at"] == NOON + MINUTE
    assert document["error_history"][-1]["code"] == "bounced"


def test_better_news_clear_a_failure() -> None:
    notification_id = declared_failed()
    told(notification_id, S.SENT)
    document = read(notification_id)
    sent = delivery(document)
    assert (sent["failure_code"], sent["failure_reason"], sent["failed_at"]) == (None, None, None)
    assert "failed_at" not in document
    assert document["status"] == "sent"


def test_a_failure_without_a_code_or_reason_has_some() -> None:
    notification_id = started().notification_id
    told(notification_id, S.FAILED, code=None, reason=None)
    assert delivery(read(notification_id))["failure_code"] == "reported_failed"


def test_a_long_reason_is_cut() -> None:
    notification_id = started().notification_id
    told(notification_id, S.FAILED, reason="x" * 5_000)
    assert len(delivery(read(notification_id))["failure_reason"]) == ERROR_LENGTH


@pytest.mark.parametrize("text", ["$$ROOT", "$delivery", "$$d.claim", "{{ x }}", "$"])
def test_what_a_provider_reports_is_stored_literally(text: str) -> None:
    notification_id = started().notification_id
    told(notification_id, S.FAILED, reason=text, provider=text, provider_message_id=text)
    failed = delivery(read(notification_id))
    assert failed["failure_reason"] == failed["provider"] == failed["provider_message_id"] == text
    assert read(notification_id)["error"] == text


@pytest.mark.parametrize("early", [S.SENT, S.DELIVERED, S.READ, S.FAILED])
@pytest.mark.parametrize("ours", [S.SENT, S.PENDING, S.UNKNOWN, S.FAILED])
def test_an_early_receipt_wins_over_our_own_write(
    early: DeliveryStatus, ours: DeliveryStatus
) -> None:
    one = started()
    assert told(one.notification_id, early)
    assert store.settle([settlement(one, ours)], now=NOON + MINUTE) == 0
    assert status_of(one.notification_id) == early


def test_a_receipt_settles_an_unknown_outcome() -> None:
    notification_id = ObjectId(factories.settled(S.UNKNOWN)["_id"])
    assert told(notification_id, S.DELIVERED)
    assert store.unknown_outcomes(now=NOON + timedelta(days=1)) == []
    assert status_of(notification_id) == "delivered"


def test_a_receipt_stops_a_retry_that_was_to_come() -> None:
    notification_id = ObjectId(factories.settled(S.PENDING)["_id"])
    assert told(notification_id, S.DELIVERED)
    later = store.claim(ids=[notification_id], channel=EMAIL, worker="w", now=NOON + 9 * MINUTE)
    assert later == []


def second_attempt() -> ObjectId:
    """Return a notification whose second attempt is under way."""
    document = factories.settled(S.PENDING)
    at = NOON + 5 * MINUTE
    start(claim(document["_id"], at=at), at=at)
    return ObjectId(document["_id"])


def test_that_an_earlier_attempt_failed_says_nothing_about_the_later_one() -> None:
    notification_id = second_attempt()
    assert not told(notification_id, S.FAILED, attempt=1)
    assert status_of(notification_id) == "sending"
    assert told(notification_id, S.FAILED, attempt=2)
    assert status_of(notification_id) == "failed"


@pytest.mark.parametrize("status", [S.SENT, S.DELIVERED, S.READ])
def test_that_an_earlier_attempt_arrived_says_all(status: DeliveryStatus) -> None:
    notification_id = second_attempt()
    assert told(notification_id, status, attempt=1)
    assert status_of(notification_id) == status


@pytest.mark.parametrize("code", sorted(RECEIPT_FAILURES))
@pytest.mark.parametrize("status", [S.SENT, S.DELIVERED])
def test_a_reported_failure_stands_against_lesser_news(
    code: FailureCode, status: DeliveryStatus
) -> None:
    notification_id = started().notification_id
    told(notification_id, S.FAILED, code=code)
    assert not told(notification_id, status)
    assert status_of(notification_id) == "failed"


def test_a_reported_failure_replaces_our_own() -> None:
    notification_id = declared_failed()
    assert told(notification_id, S.FAILED)
    assert delivery(read(notification_id))["failure_code"] == "bounced"


@pytest.mark.parametrize("status", REPORTABLE)
def test_what_was_withdrawn_stays_withdrawn(status: DeliveryStatus) -> None:
    document = accepted()
    store.cancel(notification_id=document["_id"], channels=[EMAIL], reason="x", now=NOON)
    assert not told(document["_id"], status)
    assert status_of(document["_id"]) == "cancelled"


@pytest.mark.parametrize("channel", [PUSH, WHATSAPP, IN_APP])
def test_another_channel_is_not_touched(channel: Channel) -> None:
    document = accepted(channels=[EMAIL, WHATSAPP])
    one = report(document["_id"], S.DELIVERED)
    store.apply_receipt(
        replace(one, reference=AttemptReference(document["_id"], channel, 1)), now=NOON + MINUTE
    )
    assert status_of(document["_id"]) == "pending"


def test_a_report_about_nothing_changes_nothing() -> None:
    assert not told(ObjectId(), S.DELIVERED)


SECOND = timedelta(seconds=1)

TIMES = (NOON - SECOND / 2, NOON, NOON + SECOND)
"""Before, when, and after our own write says that it was sent."""


def apply_status_at(notification_id: ObjectId, status: DeliveryStatus, at: datetime) -> bool:
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
    assert apply_status_at(one.notification_id, S.DELIVERED, NOON)
    assert times(one.notification_id) == [NOON, NOON]
    assert read(one.notification_id)["sent_at"] == NOON


def test_a_receipt_that_comes_later_leaves_when_it_was_sent() -> None:
    notification_id = ObjectId(factories.settled(S.SENT)["_id"])
    apply_status_at(notification_id, S.DELIVERED, NOON + SECOND)
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
                apply_status_at(notification_id, status, at)
            found = times(notification_id)
            assert (len(found), found) == (3, sorted(found)), (order, some)


def test_what_is_sent_again_after_a_bounce_is_read_after_it_was_sent() -> None:
    one = started()
    store.settle([settlement(one, S.SENT)], now=NOON)
    apply_status_at(one.notification_id, S.DELIVERED, NOON)
    apply_status_at(one.notification_id, S.FAILED, NOON + SECOND)
    later = NOON + MINUTE
    store.reopen(
        notification_id=one.notification_id, channels=[Channel.EMAIL], extra_attempts=1, now=later
    )
    again = factories.start(factories.claim(one.notification_id, at=later), at=later)
    store.settle([settlement(again, S.SENT, at=later)], now=later)
    apply_status_at(one.notification_id, S.READ, later + SECOND)
    assert times(one.notification_id) == [later, later, later + SECOND]
