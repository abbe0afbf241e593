"""Receipts matched by provider message ID, and early receipts."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from delivery import sweeper
from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.receipts import processor
from notifications.store import leases
from notifyproject.db.collections import collection
from providers.contract import Receipt, ReceiptKind
from tests.support.factories.notifications import NOON, delivery, read, settlement, started

pytestmark = pytest.mark.usefixtures("db")

S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
EARLY = "early_receipts"


def event(provider_id: str | None = "wamid-1", **fields: Any) -> Receipt:
    default: dict[str, Any] = {
        "reference": None,
        "provider_id": provider_id,
        "kind": ReceiptKind.DELIVERED,
        "at": NOON,
        "reason": None,
        "event_id": f"{provider_id}:delivered",
        "address": None,
    }
    return Receipt(**(default | fields))


def apply(*events: Receipt, after: timedelta = SECOND) -> processor.Applied:
    return processor.apply_receipts(events, provider="whatsapp", now=NOON + after)


def sent_as(provider_id: str) -> NotificationDocument:
    begun = started(channel=Channel.WHATSAPP)
    answer = settlement(begun, S.SENT, provider="whatsapp", provider_message_id=provider_id)
    leases.settle([answer], now=NOON)
    return read(begun.notification_id)


def test_receipt_is_matched_by_the_provider_message_id() -> None:
    document = sent_as("wamid-1")
    assert apply(event("wamid-1"), event("wamid-2")).changed == 1
    assert delivery(read(document["_id"]), Channel.WHATSAPP)["status"] == "delivered"


@pytest.mark.parametrize("apply_early", [processor.apply_early_receipts, sweeper.sweep])
def test_early_receipt_is_applied_later(apply_early: Callable[..., object]) -> None:
    begun = started(channel=Channel.WHATSAPP)
    assert apply(event()).unmatched == 1
    answer = settlement(begun, S.SENT, provider="whatsapp", provider_message_id="wamid-1")
    leases.settle([answer], now=NOON)
    assert apply_early(now=NOON + MINUTE)
    assert delivery(read(begun.notification_id), Channel.WHATSAPP)["status"] == "delivered"
    assert collection(EARLY).count_documents({}) == 0


def test_unmatched_receipt_is_dropped_after_five_minutes() -> None:
    apply(event())
    assert processor.apply_early_receipts(now=NOON + 5 * MINUTE - SECOND) == 0
    assert collection(EARLY).count_documents({}) == 1
    assert processor.apply_early_receipts(now=NOON + 5 * MINUTE) == 0
    assert collection(EARLY).count_documents({}) == 0


def test_old_receipt_or_one_without_an_id_is_not_kept() -> None:
    apply(event(), after=5 * MINUTE)
    assert apply(event(None)).unmatched == 1
    assert collection(EARLY).count_documents({}) == 0


def test_repeated_early_receipt_is_kept_once() -> None:
    apply(event())
    apply(event())
    assert collection(EARLY).count_documents({}) == 1


def test_early_receipts_of_a_removed_provider_stop_no_others() -> None:
    gone = event("gone-1", kind=ReceiptKind.BOUNCED, address="ada@example.com")
    processor.apply_receipts([gone], provider="paperboy", now=NOON + SECOND)
    apply(event())
    processor.apply_early_receipts(now=NOON + 5 * MINUTE)
    assert collection(EARLY).count_documents({}) == 0
    assert collection("suppressions").count_documents({}) == 0


@pytest.mark.parametrize(
    "change", [{"kind": "teleported"}, {"effect": "banished"}, {"code": "eaten_by_bees"}]
)
def test_early_receipt_of_a_newer_version_stops_neither_others_nor_the_sweep(
    change: dict[str, str],
) -> None:
    begun = started(channel=Channel.WHATSAPP)
    apply(event("new-1"), event())
    fields = {f"receipt.{name}": value for name, value in change.items()}
    collection(EARLY).update_one({"receipt.provider_id": "new-1"}, {"$set": fields})
    answer = settlement(begun, S.SENT, provider="whatsapp", provider_message_id="wamid-1")
    leases.settle([answer], now=NOON)
    sweeper.sweep(now=NOON + MINUTE)
    assert delivery(read(begun.notification_id), Channel.WHATSAPP)["status"] == "delivered"
    assert collection(EARLY).count_documents({}) == 1, "it is left to that version"
