"""Events that name no reference of ours, or are faster than our own write."""

from datetime import timedelta
from typing import Any

import pytest

from delivery import sweeper
from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.receipts import processor
from notifications.store import ProviderAnswer
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


def told(*events: Receipt, after: timedelta = SECOND) -> processor.Applied:
    return processor.apply_receipts(events, provider="whatsapp", now=NOON + after)


def sent_as(provider_id: str) -> store.Document:
    one = started(channel=Channel.WHATSAPP)
    answer = ProviderAnswer(provider="whatsapp", message_id=provider_id)
    store.settle([settlement(one, S.SENT, answer=answer)], now=NOON)
    return read(one.notification_id)


def test_a_message_is_found_by_the_providers_own_id() -> None:
    document = sent_as("wamid-1")
    assert told(event("wamid-1"), event("wamid-2")).changed == 1
    assert delivery(read(document["_id"]), Channel.WHATSAPP)["status"] == "delivered"


def test_an_event_before_our_own_write_waits_for_it() -> None:
    one = started(channel=Channel.WHATSAPP)
    assert told(event()).unmatched == 1
    answer = ProviderAnswer(provider="whatsapp", message_id="wamid-1")
    store.settle([settlement(one, S.SENT, answer=answer)], now=NOON)
    assert processor.apply_early_receipts(now=NOON + MINUTE) == 1
    assert delivery(read(one.notification_id), Channel.WHATSAPP)["status"] == "delivered"
    assert collection(EARLY).count_documents({}) == 0


def test_the_sweep_tries_again() -> None:
    one = started(channel=Channel.WHATSAPP)
    told(event())
    answer = ProviderAnswer(provider="whatsapp", message_id="wamid-1")
    store.settle([settlement(one, S.SENT, answer=answer)], now=NOON)
    sweeper.sweep(now=NOON + MINUTE)
    assert delivery(read(one.notification_id), Channel.WHATSAPP)["status"] == "delivered"


def test_an_event_about_nothing_we_know_is_given_up_after_five_minutes() -> None:
    told(event())
    assert processor.apply_early_receipts(now=NOON + 5 * MINUTE - SECOND) == 0
    assert collection(EARLY).count_documents({}) == 1
    assert processor.apply_early_receipts(now=NOON + 5 * MINUTE) == 0
    assert collection(EARLY).count_documents({}) == 0


def test_an_old_event_about_nothing_we_know_is_not_kept() -> None:
    told(event(), after=5 * MINUTE)
    assert collection(EARLY).count_documents({}) == 0


def test_an_event_that_names_nothing_at_all_is_not_kept() -> None:
    assert told(event(None)).unmatched == 1
    assert collection(EARLY).count_documents({}) == 0


def test_the_same_early_event_twice_waits_once() -> None:
    told(event())
    told(event())
    assert collection(EARLY).count_documents({}) == 1
