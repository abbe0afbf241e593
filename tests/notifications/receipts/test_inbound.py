"""What people tell WhatsApp about our marketing: heeded once, in any order."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from pymongo.errors import PyMongoError

from notifications.receipts import inbound
from notifyproject.db.collections import collection
from providers.whatsapp.webhooks import MarketingPreference
from recipients import queries
from recipients.models import Suppression, SuppressionReason
from recipients.suppressions import suppress
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import fail_commands

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


def heed(*wishes: MarketingPreference, now: datetime = LATER) -> int:
    return inbound.apply_opt_outs(wishes, provider="whatsapp", now=now)


def held_back() -> str | None:
    found = queries.find_suppressed([PAIR], now=LATER).get(PAIR)
    return found.reason if found else None


def hold_back(reason: SuppressionReason, **fields: Any) -> None:
    given: dict[str, Any] = {"source": "api", "marketing_only": True, "now": NOON} | fields
    suppress(channel="whatsapp", address=PHONE, reason=reason, **given)


def test_who_stops_our_marketing_gets_no_more_of_it() -> None:
    assert heed(stop()) == 1
    one = Suppression.objects.get()
    assert (one.channel, one.address, one.reason) == (*PAIR, "unsubscribed")
    assert (one.source, one.marketing_only, one.created_at) == ("whatsapp", True, NOON)


def test_who_wants_it_again_gets_it() -> None:
    heed(stop())
    assert heed(resume(NOON + MINUTE)) == 1
    assert held_back() is None


def test_a_bounce_is_not_undone_by_a_wish() -> None:
    hold_back(SuppressionReason.HARD_BOUNCE, marketing_only=False)
    heed(resume())
    assert held_back() == "hard_bounce"


def test_what_is_told_again_is_not_done_again() -> None:
    """Meta repeats a webhook for days: a wish that was taken back does not return."""
    heed(stop(), resume(NOON + MINUTE))
    assert heed(stop(), resume(NOON + MINUTE)) == 0
    assert held_back() is None
    assert heed(stop(NOON + 2 * MINUTE)) == 1
    assert held_back() == "unsubscribed"


def test_of_two_wishes_at_once_the_later_holds() -> None:
    heed(resume(NOON + MINUTE), stop())
    assert held_back() is None


def test_a_wish_for_marketing_does_not_undo_a_later_one_against_it() -> None:
    heed(stop(NOON + MINUTE))
    heed(resume())
    assert held_back() == "unsubscribed"


def test_a_clock_that_is_ahead_makes_no_wish_of_the_future() -> None:
    heed(stop(LATER + MINUTE))
    assert Suppression.objects.get().created_at == LATER


@pytest.mark.parametrize(
    ("told", "ours"), [("+551187654321", "+5511987654321"), ("+5215512345678", "+525512345678")]
)
def test_a_number_is_known_in_the_form_in_which_whatsapp_reports_it(told: str, ours: str) -> None:
    heed(stop(phone=told))
    assert ("whatsapp", ours) in queries.find_suppressed([("whatsapp", ours)], now=LATER)


def test_no_number_is_in_what_is_remembered() -> None:
    heed(stop())
    (event,) = collection("provider_events").find()
    assert PHONE[1:] not in event["_id"]
    assert event["expires_at"] == LATER + timedelta(days=30)


def test_what_was_broken_off_is_done_when_it_is_told_again() -> None:
    with fail_commands("update", "provider_events", NO_DISK), pytest.raises(PyMongoError):
        heed(stop())
    assert held_back() == "unsubscribed"
    assert heed(stop()) == 1
    assert Suppression.objects.count() == 1
