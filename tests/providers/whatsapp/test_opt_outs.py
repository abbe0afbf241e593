"""WhatsApp's webhooks: who wants no marketing any more, or wants it again."""

import json
from datetime import timedelta
from typing import Any

import pytest

from providers.whatsapp.webhooks import (
    MarketingPreference,
    parse_inbound,
    parse_opt_outs,
    parse_receipts,
    redact_webhook,
)
from tests.support.factories.records import NOON
from tests.support.providers.whatsapp import (
    EPOCH,
    PHONE,
    PHONE_NUMBER_ID,
    change,
    status,
    webhook,
    written,
)


def wish(value: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return what Meta tells of Ada's wish; a field that is ... is left out."""
    default = {
        "wa_id": PHONE[1:],
        "detail": "User requested to stop marketing messages",
        "category": "marketing_messages",
        "value": value,
        "timestamp": EPOCH,
    }
    return {name: one for name, one in (default | fields).items() if one is not ...}


def told(*wishes: Any, number: str = PHONE_NUMBER_ID) -> dict[str, Any]:
    """Return the change of an account that tells of wishes."""
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550100000", "phone_number_id": number},
        "contacts": [{"wa_id": PHONE[1:], "profile": {"name": "Ada Lovelace"}}],
        "user_preferences": list(wishes),
    }
    return {"field": "user_preferences", "value": value}


def wishes(raw: bytes) -> list[MarketingPreference]:
    return parse_opt_outs(raw, phone_number_id=PHONE_NUMBER_ID)


@pytest.mark.parametrize(("value", "is_wanted"), [("stop", False), ("resume", True)])
def test_what_a_person_wants_is_read_with_number_and_time(value: str, is_wanted: bool) -> None:
    expected = MarketingPreference(phone=PHONE, is_wanted=is_wanted, at=NOON)
    assert wishes(webhook(told(wish(value)))) == [expected]
    assert wishes(webhook(told(wish(value, timestamp=str(EPOCH))))) == [expected]
    assert PHONE not in repr(expected)


def test_wishes_come_in_the_order_in_which_they_were_decided() -> None:
    raw = webhook(told(wish("resume", timestamp=EPOCH + 60)), told(wish("stop")))
    found = wishes(raw)
    assert [one.is_wanted for one in found] == [False, True]
    assert found[1].at == NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    "other",
    [
        wish("interested"),
        wish(category="service_messages"),
        wish(wa_id=...),
        wish(wa_id=None),
        wish(wa_id="GB.1349120865530274"),
        wish(category=...),
    ],
)
def test_what_says_nothing_of_marketing_or_of_nobody_is_passed_over(other: Any) -> None:
    assert wishes(webhook(told(other, wish()))) == [
        MarketingPreference(phone=PHONE, is_wanted=False, at=NOON)
    ]


def test_a_wish_about_another_number_of_the_account_is_not_about_ours() -> None:
    assert wishes(webhook(told(wish(), number="100000000000002"))) == []


def test_of_other_subjects_no_wish_is_read_and_of_wishes_nothing_else() -> None:
    raw = webhook(change(status(), messages=[written()]), told(wish()))
    assert len(wishes(raw)) == len(parse_receipts(raw)) == 1
    assert len(parse_inbound(raw, phone_number_id=PHONE_NUMBER_ID)) == 1
    assert wishes(webhook(change(status()))) == []


@pytest.mark.parametrize("odd", ["x", 7, wish(timestamp="soon"), wish(timestamp=...), wish(7)])
def test_an_odd_shape_is_a_value_error(odd: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        wishes(webhook(told(odd)))


def test_what_is_kept_of_a_wish_says_the_same_and_names_nobody() -> None:
    raw = webhook(told(wish()), change(status()))
    kept = redact_webhook(raw)
    assert "Lovelace" not in kept
    assert "requested" not in kept
    assert wishes(kept.encode()) == wishes(raw)
    (value, _) = [c["value"] for c in json.loads(kept)["entry"][0]["changes"]]
    assert value["user_preferences"] == [wish(detail=...)]
    assert redact_webhook(webhook(told())) == redact_webhook(
        redact_webhook(webhook(told())).encode()
    )
