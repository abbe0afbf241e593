"""Events of AWS SMS, and what people write."""

import json
from decimal import Decimal
from typing import Any

import pytest

from domain.errors import FailureCode
from providers.aws_sms.webhooks import EVENT_RULES, OPT_IN_WORDS, OPT_OUT_WORDS
from providers.contract import AddressEffect, ReceiptKind
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.aws_sms import (
    MESSAGE_ID,
    PHONE,
    REFERENCE,
    account,
    event,
    parsed,
    receipt_of,
    written,
)
from tests.support.tables import each_case

K, E, F = ReceiptKind, AddressEffect, FailureCode
EVENTS: list[tuple[str, ReceiptKind, FailureCode | None, AddressEffect | None]] = [
    ("TEXT_QUEUED", K.QUEUED, None, None),
    ("TEXT_PENDING", K.QUEUED, None, None),
    ("TEXT_SENT", K.SENT, None, None),
    ("TEXT_SUCCESSFUL", K.SENT, None, None),
    ("TEXT_DELIVERED", K.DELIVERED, None, None),
    ("TEXT_UNKNOWN", K.SENT, None, None),
    ("TEXT_UNREACHABLE", K.FAILED, F.REPORTED_FAILED, E.SOFT_BOUNCE),
    ("TEXT_CARRIER_UNREACHABLE", K.FAILED, F.REPORTED_FAILED, None),
    ("TEXT_INVALID", K.FAILED, F.REPORTED_FAILED, E.PROBABLE_BOUNCE),
    ("TEXT_INVALID_MESSAGE", K.FAILED, F.FILTERED, None),
    ("TEXT_BLOCKED", K.BLOCKED, F.BLOCKED, None),
    ("TEXT_CARRIER_BLOCKED", K.FAILED, F.FILTERED, None),
    ("TEXT_SPAM", K.FAILED, F.FILTERED, None),
    ("TEXT_PROTECT_BLOCKED", K.FAILED, F.DESTINATION_DISABLED, None),
    ("TEXT_TTL_EXPIRED", K.FAILED, F.REPORTED_FAILED, None),
]


@each_case("name, kind, code, effect", EVENTS)
def test_event_has_its_meaning(
    name: str, kind: ReceiptKind, code: FailureCode | None, effect: AddressEffect | None
) -> None:
    receipt = receipt_of(event(name))
    assert (receipt.kind, receipt.code, receipt.address_effect) == (kind, code, effect)
    assert (receipt.reference, receipt.provider_id) == (REFERENCE, MESSAGE_ID)
    assert (receipt.event_id, receipt.address) == (f"{MESSAGE_ID}:{name}", PHONE)


def test_every_type_of_events_of_a_text_is_tested() -> None:
    assert [name for name, *_ in EVENTS] == list(EVENT_RULES)


def test_event_tells_its_time_its_parts_and_its_price_with_the_carriers_fee() -> None:
    receipt = receipt_of(event())
    assert receipt.at.isoformat() == "2026-11-21T11:59:59+00:00"
    assert receipt.units == 2
    assert (receipt.cost, receipt.currency) == (Decimal("0.10182"), "USD")


@each_case(
    "changes, units, cost",
    [
        ({"totalCarrierFee": ...}, 2, Decimal("0.09582")),
        ({"totalMessagePrice": ...}, 2, None),
        ({"totalMessagePrice": 0, "totalCarrierFee": 0.0}, 2, Decimal(0)),
        ({"totalMessagePrice": -1}, 2, None),
        ({"totalMessagePrice": 1e300}, 2, None),
        ({"totalMessagePrice": True, "totalMessageParts": True}, None, None),
        ({"totalMessagePrice": "1", "totalMessageParts": "2"}, None, None),
        ({"totalMessageParts": 0, "totalMessagePrice": ...}, None, None),
    ],
)
def test_odd_price_or_count_is_left_out(
    changes: dict[str, Any], units: int | None, cost: Decimal | None
) -> None:
    receipt = receipt_of(event(**changes))
    assert (receipt.units, receipt.cost) == (units, cost)
    assert (receipt.currency is None) == (cost is None)


def test_failure_that_is_not_final_fails_nothing() -> None:
    """AWS tries on, and the same event may come again as the last one."""
    early = receipt_of(event("TEXT_INVALID", isFinal=False))
    assert (early.kind, early.code, early.address_effect) == (K.DEFERRED, None, None)
    assert early.event_id != receipt_of(event("TEXT_INVALID")).event_id


def test_event_of_another_message_with_the_same_topic_has_no_reference() -> None:
    for changes in ({"context": ...}, {"context": {"account": "bar"}}, {"context": 7}):
        receipt = receipt_of(event(**changes))
        assert (receipt.reference, receipt.provider_id) == (None, MESSAGE_ID)


@each_case("number", ["VAJZNBLLDX", "447700900999", 7, None])
def test_odd_number_is_no_address(number: Any) -> None:
    assert receipt_of(event(destinationPhoneNumber=number)).address is None


@each_case("name", ["MEDIA_DELIVERED", "VOICE_COMPLETED", "RCS_READ", "TEXT_NEW"])
def test_further_event_changes_nothing(name: str) -> None:
    result = parsed(event(name))
    assert (result.receipts, result.unreadable_count) == ((), 0)
    assert result.reply is not None
    assert result.reply.status == 200


def test_sentence_is_counted_and_acknowledged() -> None:
    result = parsed("Hello from the console")
    assert (result.receipts, result.unreadable_count, result.logged) == ((), 1, None)


@each_case(
    "found",
    [
        event(eventTimestamp=...),
        event(eventTimestamp="soon"),
        event(eventTimestamp=True),
        event(eventTimestamp=-1),
        event(messageId=...),
        event(messageId="a b"),
        {"messageId": MESSAGE_ID},
        event(eventType=7),
    ],
)
def test_unreadable_event_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"time|event|ID"):
        parsed(found)


def test_log_is_read_again_and_has_no_context_of_others() -> None:
    result = parsed(event(context={"ref": REFERENCE, "name": "Ada"}))
    logged = result.logged or ""
    assert "Ada" not in logged
    assert account().parse_logged(logged.encode()).receipts == result.receipts


@each_case("word", [*OPT_OUT_WORDS, " Stop\n", "STOP", "Stop.", "stop texting me"])
def test_word_opts_out(word: str) -> None:
    (preference,) = inbound(written(word)).preferences
    assert (preference.phone, preference.is_wanted) == (PHONE, False)
    assert (preference.at, preference.event_id) == (
        FIXED_NOON,
        "cae173d2-66b9-564c-8309-21f858e9fb84",
    )


@each_case("word", [*OPT_IN_WORDS, "Start"])
def test_word_lifts_an_opt_out(word: str) -> None:
    (preference,) = inbound(written(word)).preferences
    assert preference.is_wanted


@each_case(
    "found",
    [
        written("please stop"),
        written("stopped"),
        written(""),
        written("HELP"),
        written("yes"),
        written("STOP", originationNumber="SHOP"),
        written("STOP", originationNumber=7),
        written("STOP", messageBody=["STOP"]),
    ],
)
def test_other_message_says_nothing(found: dict[str, Any]) -> None:
    assert inbound(found).preferences == ()


def test_log_of_a_persons_message_has_no_text() -> None:
    result = parsed(written("Ada's secret"))
    assert "secret" not in (result.logged or "")
    assert json.loads(result.logged or "")["intent"] is None


def inbound(found: dict[str, Any]) -> Any:
    result = parsed(found)
    assert result.inbound is not None
    assert account().parse_logged((result.logged or "").encode()).inbound == result.inbound
    return result.inbound
