"""Inbound WhatsApp marketing preferences: applied once, in any order."""

import hashlib
from datetime import datetime, timedelta

import pytest
from pymongo.errors import PyMongoError

from notifications.receipts import inbound
from notifyproject.db.collections import collection
from providers.inbound import MarketingPreference
from recipients import queries
from recipients.models import Suppression, SuppressionReason
from recipients.suppressions import suppress
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

PHONE = "+351912345678"
PAIR = ("whatsapp", PHONE)
MINUTE = timedelta(minutes=1)
NO_DISK = {"errorCode": 14031}
LATER = NOON + timedelta(hours=1)


def stop(at: datetime = NOON, phone: str = PHONE) -> MarketingPreference:
    return MarketingPreference(phone=phone, is_wanted=False, at=at)


def resume(at: datetime = NOON, phone: str = PHONE) -> MarketingPreference:
    return MarketingPreference(phone=phone, is_wanted=True, at=at)


def apply(*preferences: MarketingPreference, now: datetime = LATER) -> int:
    return inbound.apply_opt_outs(preferences, provider="whatsapp", now=now)


def suppression_reason() -> str | None:
    found = queries.find_suppressed([PAIR], now=LATER).get(PAIR)
    return found.reason if found else None


def test_opt_out_suppresses_marketing() -> None:
    assert apply(stop()) == 1
    stored = Suppression.objects.get()
    assert (stored.channel, stored.address, stored.reason) == (*PAIR, "unsubscribed")
    assert (stored.source, stored.marketing_only, stored.created_at) == ("whatsapp", True, NOON)


def test_opt_in_removes_the_suppression() -> None:
    apply(stop())
    assert apply(resume(NOON + MINUTE)) == 1
    assert suppression_reason() is None


def test_opt_in_keeps_a_hard_bounce() -> None:
    bounce = {"reason": SuppressionReason.HARD_BOUNCE, "source": "api", "marketing_only": False}
    suppress(channel="whatsapp", address=PHONE, **bounce, now=NOON)
    apply(resume())
    assert suppression_reason() == "hard_bounce"


def test_repeated_webhook_changes_nothing() -> None:
    """Meta repeats a webhook for days: a withdrawn opt-out must not return."""
    apply(stop(), resume(NOON + MINUTE))
    assert apply(stop(), resume(NOON + MINUTE)) == 0
    assert suppression_reason() is None
    assert apply(stop(NOON + 2 * MINUTE)) == 1
    assert suppression_reason() == "unsubscribed"


def test_later_of_two_preferences_wins() -> None:
    apply(resume(NOON + MINUTE), stop())
    assert suppression_reason() is None


def test_earlier_opt_in_does_not_undo_a_later_opt_out() -> None:
    apply(stop(NOON + MINUTE))
    apply(resume())
    assert suppression_reason() == "unsubscribed"


def test_preference_from_the_future_counts_from_now() -> None:
    apply(stop(LATER + MINUTE))
    assert Suppression.objects.get().created_at == LATER


@each_case(
    "reported, stored", [("+551187654321", "+5511987654321"), ("+5215512345678", "+525512345678")]
)
def test_number_is_suppressed_in_its_stored_form(reported: str, stored: str) -> None:
    apply(stop(phone=reported))
    assert ("whatsapp", stored) in queries.find_suppressed([("whatsapp", stored)], now=LATER)


def test_stored_event_holds_no_number() -> None:
    apply(stop())
    (event,) = collection("provider_events").find()
    assert PHONE[1:] not in event["_id"]
    assert event["expires_at"] == LATER + timedelta(days=30)


def test_interrupted_webhook_is_completed_by_its_repetition() -> None:
    with fail_commands("update", "provider_events", NO_DISK), pytest.raises(PyMongoError):
        apply(stop())
    assert suppression_reason() == "unsubscribed"
    assert apply(stop()) == 1
    assert Suppression.objects.count() == 1


def test_stored_event_does_not_reveal_the_number_to_guessing() -> None:
    apply(stop())
    (event,) = collection("provider_events").find()
    assert event["_id"] != unkeyed_id(stop())


def unkeyed_id(wish: MarketingPreference) -> str:
    identity = f"{wish.phone}:{wish.is_wanted}:{wish.at.isoformat()}"
    return f"whatsapp:wish:{hashlib.sha256(identity.encode()).hexdigest()}"
