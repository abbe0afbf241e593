"""Notifications of API clients in test mode: known as such to the end, and beside the real ones."""

from typing import Any

import pytest
from bson import ObjectId

from domain.states import Channel
from notifications import store
from notifications.receipts import processor
from notifications.resend import actions
from notifications.store import DuplicateEntity
from notifyproject.db.collections import collection
from providers.contract import Receipt, ReceiptKind
from recipients import suppressions
from recipients.models import SuppressionReason
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, new

pytestmark = pytest.mark.usefixtures("db", "broker")


def report(notification_id: ObjectId, channel: Channel, kind: ReceiptKind, **fields: Any) -> None:
    """Have the sandbox report, as the provider that it stands in for."""
    receipt = Receipt(
        reference=f"{notification_id}.{channel}.1",
        provider_id="from-the-sandbox",
        kind=kind,
        at=NOON,
        reason="It is a test.",
        event_id=str(ObjectId()),
        address="ada@example.com" if channel is Channel.EMAIL else "351912345678",
        **fields,
    )
    processor.apply_receipts([receipt], provider="sendgrid", now=NOON)


def started(*, channel: Channel = Channel.EMAIL, is_test: bool = True) -> ObjectId:
    """Return a delivery that a provider has been given."""
    claimed = factories.claimed(channel=channel, is_test=is_test)
    factories.start(claimed, provider=f"sandbox-{channel}" if is_test else channel)
    return claimed.notification_id


@pytest.mark.parametrize("is_test", [True, False])
def test_a_claim_knows_whether_it_is_a_test(is_test: bool) -> None:
    assert factories.claimed(is_test=is_test).is_test is is_test


def test_only_tests_are_marked() -> None:
    assert factories.accepted(is_test=True)["is_test"] is True
    assert "is_test" not in factories.accepted()


@pytest.mark.parametrize("is_test", [True, False])
def test_a_resend_is_what_the_original_was(is_test: bool) -> None:
    original = factories.accepted(is_test=is_test)
    resent = actions.resend(notification_id=original["_id"], channels=None, now=NOON)
    assert factories.read(resent["_id"]).get("is_test", False) is is_test


def test_a_test_about_an_entity_does_not_stand_in_the_way_of_the_real_one() -> None:
    rehearsal, real = new(entity_id="order-1", is_test=True), new(entity_id="order-1")
    for one in (rehearsal, real):
        (result,) = store.accept([one], now=NOON)
        assert isinstance(result, store.Accepted)
    for first, is_test in ((rehearsal, True), (real, False)):
        again = new(entity_id="order-1", is_test=is_test)
        told = DuplicateEntity(notification_id=first.id, client_id=first.client_id)
        assert store.accept([again], now=NOON) == [told]


def test_both_of_a_batch_are_told_of_their_own_first() -> None:
    firsts = [new(entity_id="order-1", is_test=is_test) for is_test in (True, False)]
    store.accept(firsts, now=NOON)
    again = [new(entity_id="order-1", is_test=is_test) for is_test in (False, True)]
    found = store.accept(again, now=NOON)
    assert [one.notification_id for one in found if isinstance(one, DuplicateEntity)] == [
        firsts[1].id,
        firsts[0].id,
    ]


@pytest.mark.parametrize(
    "kind", [ReceiptKind.BOUNCED, ReceiptKind.COMPLAINED, ReceiptKind.UNSUBSCRIBED]
)
def test_what_the_sandbox_reports_suppresses_nobody(kind: ReceiptKind) -> None:
    report(started(), Channel.EMAIL, kind)
    assert collection("suppressions").count_documents({}) == 0
    report(started(is_test=False), Channel.EMAIL, kind)
    assert collection("suppressions").count_documents({}) == 1


def test_what_the_sandbox_cannot_deliver_is_nobodys_strike() -> None:
    for _ in range(suppressions.MAX_SOFT_BOUNCES):
        report(
            started(channel=Channel.WHATSAPP),
            Channel.WHATSAPP,
            ReceiptKind.FAILED,
            is_undeliverable=True,
        )
    assert collection("suppressions").count_documents({}) == 0


def test_what_the_sandbox_delivers_is_no_proof_of_life() -> None:
    channel, phone = Channel.WHATSAPP, "+351912345678"
    for n in range(suppressions.MAX_SOFT_BOUNCES):
        report(started(channel=channel), channel, ReceiptKind.DELIVERED)
        strikes = suppressions.record_soft_bounce(
            channel=channel.value, address=phone, event=f"event-{n}", now=NOON
        )
    assert strikes == suppressions.MAX_SOFT_BOUNCES


def test_a_report_leaves_the_name_of_who_sent_it() -> None:
    notification_id = started()
    report(notification_id, Channel.EMAIL, ReceiptKind.DELIVERED)
    delivery = factories.delivery(factories.read(notification_id))
    assert (delivery["status"], delivery["provider"]) == ("delivered", "sandbox-email")


def test_a_bounce_of_the_sandbox_is_a_failure_like_any_other() -> None:
    notification_id = started()
    report(notification_id, Channel.EMAIL, ReceiptKind.BOUNCED)
    delivery = factories.delivery(factories.read(notification_id))
    assert (delivery["status"], delivery["failure_code"]) == ("failed", "bounced")
    assert SuppressionReason.HARD_BOUNCE not in collection("suppressions").distinct("reason")
