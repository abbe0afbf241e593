"""WhatsApp's webhooks: marketing preferences."""

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
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.whatsapp import (
    EPOCH,
    PHONE,
    PHONE_NUMBER_ID,
    change,
    status,
    webhook,
    written,
)


def preference(value: str = "stop", **fields: Any) -> dict[str, Any]:
    """Return Ada's preference. The value ... leaves a field out."""
    default = {
        "wa_id": PHONE[1:],
        "detail": "User requested to stop marketing messages",
        "category": "marketing_messages",
        "value": value,
        "timestamp": EPOCH,
    }
    return {name: one for name, one in (default | fields).items() if one is not ...}


def preferences_change(*values: Any, number: str = PHONE_NUMBER_ID) -> dict[str, Any]:
    """Return a change with preferences."""
    value = {
        "messaging_product": "whatsapp",
        "metadata": {"display_phone_number": "15550100000", "phone_number_id": number},
        "contacts": [{"wa_id": PHONE[1:], "profile": {"name": "Ada Lovelace"}}],
        "user_preferences": list(values),
    }
    return {"field": "user_preferences", "value": value}


def preferences(raw: bytes) -> list[MarketingPreference]:
    return parse_opt_outs(raw, phone_number_id=PHONE_NUMBER_ID)


@pytest.mark.parametrize(("value", "is_wanted"), [("stop", False), ("resume", True)])
def test_marketing_preference_has_number_and_time(value: str, is_wanted: bool) -> None:
    expected = MarketingPreference(phone=PHONE, is_wanted=is_wanted, at=FIXED_NOON)
    assert preferences(webhook(preferences_change(preference(value)))) == [expected]
    assert preferences(webhook(preferences_change(preference(value, timestamp=str(EPOCH))))) == [
        expected
    ]
    assert PHONE not in repr(expected)


def test_preferences_are_sorted_by_time() -> None:
    raw = webhook(
        preferences_change(preference("resume", timestamp=EPOCH + 60)),
        preferences_change(preference("stop")),
    )
    found = preferences(raw)
    assert [one.is_wanted for one in found] == [False, True]
    assert found[1].at == FIXED_NOON + timedelta(minutes=1)


@pytest.mark.parametrize(
    "other",
    [
        preference("interested"),
        preference(category="service_messages"),
        preference(wa_id=...),
        preference(wa_id=None),
        preference(wa_id="GB.1349120865530274"),
        preference(category=...),
    ],
)
def test_other_preferences_are_skipped(other: Any) -> None:
    assert preferences(webhook(preferences_change(other, preference()))) == [
        MarketingPreference(phone=PHONE, is_wanted=False, at=FIXED_NOON)
    ]


def test_preference_for_another_number_is_ignored() -> None:
    assert preferences(webhook(preferences_change(preference(), number="100000000000002"))) == []


def test_each_parser_reads_its_own_changes() -> None:
    raw = webhook(change(status(), messages=[written()]), preferences_change(preference()))
    assert len(preferences(raw)) == len(parse_receipts(raw)) == 1
    assert len(parse_inbound(raw, phone_number_id=PHONE_NUMBER_ID)) == 1
    assert preferences(webhook(change(status()))) == []


@pytest.mark.parametrize(
    "odd", ["x", 7, preference(timestamp="soon"), preference(timestamp=...), preference(7)]
)
def test_unexpected_shape_is_a_value_error(odd: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        preferences(webhook(preferences_change(odd)))


def test_redacted_preference_parses_the_same() -> None:
    raw = webhook(preferences_change(preference()), change(status()))
    kept = redact_webhook(raw)
    assert "Lovelace" not in kept
    assert "requested" not in kept
    assert preferences(kept.encode()) == preferences(raw)
    (value, _) = [c["value"] for c in json.loads(kept)["entry"][0]["changes"]]
    assert value["user_preferences"] == [preference(detail=...)]
    assert redact_webhook(webhook(preferences_change())) == redact_webhook(
        redact_webhook(webhook(preferences_change())).encode()
    )
