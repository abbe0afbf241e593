"""What the providers of text messages report: opt-outs, prices, and why one failed."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.receipts import inbound, processor
from notifications.store import country_units, leases
from notifyproject.db.collections import collection
from providers import discovery
from providers.contract import AddressEffect, Receipt, ReceiptKind
from providers.inbound import MarketingPreference
from recipients import queries
from recipients.models import SuppressionReason
from recipients.suppressions import suppress
from tests.support.factories.notifications import NOON, delivery, read, settlement, started
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "courier")

PHONE = "+351912345678"
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
LATER = NOON + timedelta(hours=1)


@pytest.fixture
def courier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a provider of text messages."""
    spec = replace(discovery.SPECS["whatsapp"], name="courier", channel=Channel.SMS)
    monkeypatch.setitem(discovery.SPECS, "courier", spec)


def answered(*, is_wanted: bool, at: Any = NOON) -> None:
    wish = MarketingPreference(phone=PHONE, is_wanted=is_wanted, at=at)
    inbound.apply_opt_outs([wish], provider="courier", now=LATER)


def reasons(channel: str = "sms") -> set[tuple[str, bool]]:
    found = queries.find_suppressed([(channel, PHONE)], now=LATER)
    return {(active.reason, active.marketing_only) for active in found.values()}


def test_stop_suppresses_the_number_for_everything_on_this_channel() -> None:
    answered(is_wanted=False)
    assert reasons() == {("unsubscribed", False)}
    assert reasons("whatsapp") == set()


def test_start_lifts_an_older_stop_alone() -> None:
    answered(is_wanted=False, at=NOON + MINUTE)
    answered(is_wanted=True)
    assert reasons() == {("unsubscribed", False)}
    answered(is_wanted=True, at=NOON + 2 * MINUTE)
    assert reasons() == set()
    other = {"reason": SuppressionReason.COMPLAINT, "source": "api", "marketing_only": False}
    suppress(channel="sms", address=PHONE, **other, now=NOON)
    answered(is_wanted=True, at=NOON + 3 * MINUTE)
    assert reasons() == {("complaint", False)}


def test_repeated_stop_does_not_undo_a_later_start() -> None:
    """Some providers tell no time, so that a repeated webhook has a later one."""
    stop = MarketingPreference(phone=PHONE, is_wanted=False, at=NOON, event_id="SM1")
    start = replace(stop, is_wanted=True, at=NOON + MINUTE, event_id="SM2")
    for wish in (stop, start, replace(stop, at=NOON + 2 * MINUTE)):
        inbound.apply_opt_outs([wish], provider="courier", now=LATER)
    assert reasons() == set()
    again = replace(stop, at=NOON + 3 * MINUTE, event_id="SM3")
    inbound.apply_opt_outs([again], provider="courier", now=LATER)
    assert reasons() == {("unsubscribed", False)}


def sent() -> NotificationDocument:
    begun = started(channel=Channel.SMS)
    leases.settle([settlement(begun, DeliveryStatus.SENT, provider="courier", units=2)], now=NOON)
    return read(begun.notification_id)


def report(document: NotificationDocument, **fields: Any) -> None:
    default: dict[str, Any] = {
        "reference": f"{document['_id']}.sms.1",
        "provider_id": None,
        "kind": ReceiptKind.FAILED,
        "at": NOON,
        "reason": None,
        "event_id": f"{document['_id']}",
        "address": PHONE,
    }
    receipt = Receipt(**(default | fields))
    processor.apply_receipts([receipt], provider="courier", now=NOON + SECOND)


@each_case(
    "code",
    [
        FailureCode.FILTERED,
        FailureCode.DESTINATION_DISABLED,
        FailureCode.SENDER_UNREGISTERED,
        FailureCode.EXPIRED,
    ],
    at_once=True,
)
def test_receipt_may_say_more_exactly_why_it_failed(code: FailureCode) -> None:
    document = sent()
    report(document, code=code)
    stored = delivery(read(document["_id"]), Channel.SMS)
    assert (stored["status"], stored["failure_code"]) == ("failed", code.value)


def test_parts_and_price_are_stored() -> None:
    document = sent()
    (attempt,) = collection("delivery_attempts").find({"notification_id": document["_id"]})
    assert attempt["units"] == 2
    cost = Decimal("0.00790")
    report(document, kind=ReceiptKind.DELIVERED, units=3, cost=cost, currency="USD")
    (event,) = collection("provider_events").find({})
    assert (event["units"], event["cost"], event["currency"]) == (3, "0.00790", "USD")


def test_early_receipt_keeps_its_code_and_price() -> None:
    begun = started(channel=Channel.SMS)
    document = read(begun.notification_id)
    ids: dict[str, Any] = {"reference": None, "provider_id": "SM1"}
    report(document, **ids, code=FailureCode.FILTERED, units=2, cost=Decimal(1), currency="EUR")
    answer = settlement(begun, DeliveryStatus.SENT, provider="courier", provider_message_id="SM1")
    leases.settle([answer], now=NOON)
    processor.apply_early_receipts(now=NOON + MINUTE)
    assert delivery(read(document["_id"]), Channel.SMS)["failure_code"] == "filtered"
    (event,) = collection("provider_events").find({})
    assert (event["units"], event["cost"], event["currency"]) == (2, "1", "EUR")


@pytest.mark.parametrize("ids", [{}, {"reference": None, "provider_id": "SM1"}])
def test_block_for_pumping_is_counted_for_its_country(ids: dict[str, Any]) -> None:
    """Also if the receipt came before the settlement."""
    begun = started(channel=Channel.SMS)
    report(read(begun.notification_id), **ids, code=FailureCode.FILTERED, is_pumping=True)
    answer = settlement(begun, DeliveryStatus.SENT, provider="courier", provider_message_id="SM1")
    leases.settle([answer], now=NOON)
    processor.apply_early_receipts(now=NOON + MINUTE)
    (slot,) = country_units.slots_since(NOON, now=NOON + MINUTE)
    assert (slot["country"], slot["provider"], slot["blocks"]) == ("PT", "courier", 1)


def blocked(*documents: NotificationDocument) -> processor.Applied:
    """Apply the receipts of texts that were blocked for pumping, of one webhook."""
    receipts = [
        Receipt(
            reference=f"{document['_id']}.sms.1",
            provider_id=None,
            kind=ReceiptKind.FAILED,
            at=NOON,
            reason=None,
            event_id=f"{document['_id']}",
            address=PHONE,
            code=FailureCode.FILTERED,
            is_pumping=True,
        )
        for document in documents
    ]
    return processor.apply_receipts(receipts, provider="courier", now=NOON + SECOND)


def test_blocks_of_one_webhook_are_one_write() -> None:
    documents = [sent() for _ in range(20)]
    with plans("country_units") as found:
        blocked(*documents)
    (slot,) = country_units.slots_since(NOON, now=NOON + MINUTE)
    assert (slot["blocks"], len(found)) == (20, 1)
    blocked(*documents)
    (slot,) = country_units.slots_since(NOON, now=NOON + MINUTE)
    assert slot["blocks"] == 20, "a repeated webhook counts nothing"


def test_uncounted_blocks_keep_no_receipt_from_being_applied() -> None:
    document = sent()
    with fail_commands("update", "country_units", {"errorCode": 14031}, times=9):
        assert blocked(document).changed == 1
    assert delivery(read(document["_id"]), Channel.SMS)["status"] == "failed"
    assert blocked(document).repeated == 1


def test_probable_bounce_counts_as_two() -> None:
    first, second = sent(), sent()
    report(first, effect=AddressEffect.PROBABLE_BOUNCE)
    assert reasons() == set()
    report(second, effect=AddressEffect.SOFT_BOUNCE)
    assert reasons() == {("hard_bounce", False)}
