"""Fallback channels in the store."""

from datetime import timedelta

import pytest
from bson import ObjectId

from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.store import NewDelivery
from tests.support.factories.notifications import NOON, claim, claimed, delivery, new, read

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
WAIT = timedelta(minutes=10)


def accepted() -> ObjectId:
    """Store a push with email as its fallback after ten minutes."""
    deliveries = (
        NewDelivery(channel=PUSH),
        NewDelivery(channel=EMAIL, fallback_for=PUSH, delay=WAIT),
    )
    one = new(deliveries=deliveries)
    store.accept([one], now=NOON)
    return one.id


def test_fallback_waits_for_the_first_channel() -> None:
    notification_id = accepted()
    document = read(notification_id)
    assert delivery(document, EMAIL)["next_attempt_at"] == NOON + WAIT
    assert (document["status"], document["due_at"]) == ("queued", NOON)
    assert store.claim(ids=[notification_id], channel=EMAIL, worker="w", now=NOON) == []


def test_claim_holds_the_status_of_the_other_channel() -> None:
    notification_id = accepted()
    mail = claim(notification_id, at=NOON + WAIT)
    assert mail.fallback_for is PUSH
    assert mail.channel_statuses == {PUSH: S.PENDING, EMAIL: S.PENDING}
    assert claim(notification_id, channel=PUSH).fallback_channels == (EMAIL,)


def test_fallback_is_due_at_once_when_the_first_channel_failed() -> None:
    notification_id = accepted()
    now = NOON + timedelta(minutes=1)
    assert store.activate_fallback(ids=[notification_id], fallback_for=PUSH, now=now) == 1
    document = read(notification_id)
    assert delivery(document, EMAIL)["next_attempt_at"] == now
    assert delivery(document, PUSH)["next_attempt_at"] == NOON
    assert store.activate_fallback(ids=[notification_id], fallback_for=PUSH, now=now) == 0


def test_activation_ignores_notifications_without_a_fallback() -> None:
    one = claimed()
    assert store.activate_fallback(ids=[one.notification_id], fallback_for=PUSH, now=NOON) == 0
