"""Test mode: marked notifications, separate from the real ones."""

from typing import Any

import pytest
from bson import ObjectId

from domain.channels import Channel
from notifications.actions import actions
from notifications.receipts import processor
from notifications.store import acceptance
from notifications.store.acceptance import Accepted, DuplicateEntity
from notifyproject.db.collections import collection
from providers.contract import AddressEffect, Receipt, ReceiptKind
from recipients import suppressions
from recipients.models import SuppressionReason
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, new

pytestmark = pytest.mark.usefixtures("db", "broker")


def report(notification_id: ObjectId, channel: Channel, kind: ReceiptKind, **fields: Any) -> None:
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
    processor.apply_receipts([receipt], provider=factories.provider_of(channel), now=NOON)


def started(*, channel: Channel = Channel.EMAIL, is_test: bool = True) -> ObjectId:
    claimed = factories.claimed(channel=channel, is_test=is_test)
    provider = factories.provider_of(channel)
    factories.start(claimed, provider=f"sandbox-{provider}" if is_test else provider)
    return claimed.notification_id


@pytest.mark.parametrize("is_test", [True, False])
def test_claim_holds_the_test_flag(is_test: bool) -> None:
    assert factories.claimed(is_test=is_test).is_test is is_test


def test_only_test_notifications_are_marked() -> None:
    assert factories.accepted(is_test=True)["is_test"] is True
    assert "is_test" not in factories.accepted()


@pytest.mark.parametrize("is_test", [True, False])
def test_resend_keeps_the_test_flag(is_test: bool) -> None:
    original = factories.accepted(is_test=is_test)
    resent = actions.resend(notification_id=original["_id"], channels=None, now=NOON)
    assert factories.read(resent["_id"]).get("is_test", False) is is_test


def test_test_notification_does_not_block_the_real_one() -> None:
    test, real = new(entity_id="order-1", is_test=True), new(entity_id="order-1")
    for item in (test, real):
        (result,) = acceptance.accept([item], now=NOON)
        assert isinstance(result, Accepted)
    for first, is_test in ((test, True), (real, False)):
        again = new(entity_id="order-1", is_test=is_test)
        duplicate = DuplicateEntity(notification_id=first.id)
        assert acceptance.accept([again], now=NOON) == [duplicate]


def test_duplicates_name_the_original_of_the_same_mode() -> None:
    firsts = [new(entity_id="order-1", is_test=is_test) for is_test in (True, False)]
    acceptance.accept(firsts, now=NOON)
    again = [new(entity_id="order-1", is_test=is_test) for is_test in (False, True)]
    found = acceptance.accept(again, now=NOON)
    assert [item.notification_id for item in found if isinstance(item, DuplicateEntity)] == [
        firsts[1].id,
        firsts[0].id,
    ]


@pytest.mark.parametrize(
    "kind", [ReceiptKind.BOUNCED, ReceiptKind.COMPLAINED, ReceiptKind.UNSUBSCRIBED]
)
def test_receipt_of_the_sandbox_suppresses_no_address(kind: ReceiptKind) -> None:
    report(started(), Channel.EMAIL, kind)
    assert collection("suppressions").count_documents({}) == 0
    report(started(is_test=False), Channel.EMAIL, kind)
    assert collection("suppressions").count_documents({}) == 1


def test_undeliverable_test_is_no_soft_bounce() -> None:
    for _ in range(suppressions.MAX_SOFT_BOUNCES):
        report(
            started(channel=Channel.WHATSAPP),
            Channel.WHATSAPP,
            ReceiptKind.FAILED,
            effect=AddressEffect.SOFT_BOUNCE,
        )
    assert collection("suppressions").count_documents({}) == 0


def test_delivered_test_resets_no_soft_bounces() -> None:
    channel, phone = Channel.WHATSAPP, "+351912345678"
    for n in range(suppressions.MAX_SOFT_BOUNCES):
        report(started(channel=channel), channel, ReceiptKind.DELIVERED)
        bounces = suppressions.record_soft_bounce(
            channel=channel.value, address=phone, event=f"event-{n}", now=NOON
        )
    assert bounces == suppressions.MAX_SOFT_BOUNCES


def test_receipt_keeps_the_provider_name() -> None:
    notification_id = started()
    report(notification_id, Channel.EMAIL, ReceiptKind.DELIVERED)
    delivery = factories.delivery(factories.read(notification_id))
    assert (delivery["status"], delivery["provider"]) == ("delivered", "sandbox-sendgrid")


def test_bounce_of_the_sandbox_fails_the_delivery() -> None:
    notification_id = started()
    report(notification_id, Channel.EMAIL, ReceiptKind.BOUNCED)
    delivery = factories.delivery(factories.read(notification_id))
    assert (delivery["status"], delivery["failure_code"]) == ("failed", "bounced")
    assert SuppressionReason.HARD_BOUNCE not in collection("suppressions").distinct("reason")
