"""WhatsApp's webhooks: inbound messages and redaction."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from providers.whatsapp.webhooks import InboundMessage, redact_webhook
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.whatsapp import EPOCH, PHONE, change, number, status, webhook, written


def who(*messages: Any, **fields: Any) -> list[InboundMessage]:
    return number().parse_inbound(webhook(change(messages=messages, **fields)))


def test_inbound_message_has_number_and_time() -> None:
    assert who(written()) == [InboundMessage(phone=PHONE, at=FIXED_NOON)]


def test_repr_hides_the_number() -> None:
    assert PHONE not in repr(who(written()))


@pytest.mark.parametrize("kind", ["text", "image", "button", "interactive", "reaction", "new-kind"])
def test_any_message_type_is_inbound(kind: str) -> None:
    assert len(who(written(type=kind))) == 1


@pytest.mark.parametrize("kind", ["system", "request_welcome"])
def test_system_messages_are_ignored(kind: str) -> None:
    assert who(written(type=kind)) == []


@pytest.mark.parametrize("sender", [..., None, "", "GB.1349120865530274", "+447700900999", "12"])
def test_sender_without_number_is_skipped(sender: Any) -> None:
    assert who(written(**{"from": sender}), written()) == [
        InboundMessage(phone=PHONE, at=FIXED_NOON)
    ]


def test_message_to_another_number_is_ignored() -> None:
    assert who(written(), number="100000000000002") == []


def test_missing_number_id_counts_as_ours() -> None:
    raw = webhook({"field": "messages", "value": {"messages": [written()]}})
    assert len(number().parse_inbound(raw)) == 1


def test_several_entries_are_read() -> None:
    later = written(timestamp=str(EPOCH + 60), **{"from": "351912345678"})
    raw = webhook(change(status()), change(messages=[written()]), change(messages=[later]))
    assert number().parse_inbound(raw) == [
        InboundMessage(phone=PHONE, at=FIXED_NOON),
        InboundMessage(phone="+351912345678", at=datetime.fromtimestamp(EPOCH + 60, UTC)),
    ]


@pytest.mark.parametrize(
    "message", ["x", None, 7, written(timestamp="soon"), written(timestamp=...), written(type=7)]
)
def test_unexpected_shape_is_a_value_error(message: Any) -> None:
    with pytest.raises(ValueError, match=r"Expected|missing"):
        who(message)


def test_redacted_webhook_has_no_text_or_name() -> None:
    raw = webhook(change(status(), messages=[written("My diagnosis")]))
    kept = redact_webhook(raw)
    assert "diagnosis" not in kept
    assert "Lovelace" not in kept
    (value,) = [c["value"] for c in json.loads(kept)["entry"][0]["changes"]]
    assert value["statuses"] == [status()]
    assert value["messages"] == [
        {"id": "wamid.in.1", "from": PHONE[1:], "timestamp": str(EPOCH), "type": "text"}
    ]


def test_redacted_webhook_keeps_the_field_of_other_changes() -> None:
    raw = webhook({"field": "history", "value": {"messages": [written("My diagnosis")]}})
    assert json.loads(redact_webhook(raw))["entry"] == [{"changes": [{"field": "history"}]}]


def test_redacted_webhook_parses_the_same() -> None:
    raw = webhook(change(status("read"), status()), change(messages=[written("\ud83d")]))
    kept = redact_webhook(raw).encode()
    assert kept.isascii()
    assert number().parse_inbound(kept) == number().parse_inbound(raw)
    assert redact_webhook(kept) == kept.decode()


@pytest.mark.parametrize("raw", [b"", b"{}", b"\xff", webhook(change(messages=["x"]))])
def test_invalid_webhook_is_not_redacted(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        redact_webhook(raw)
