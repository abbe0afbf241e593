"""WhatsApp's webhooks: signatures, statuses, inbound messages, preferences, and redaction."""

import hashlib
import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pywa.utils import webhook_updates_validator

from providers.contract import InvalidSignatureError, Receipt, ReceiptKind, WebhookResult
from providers.http import EXCERPT_LENGTH
from providers.inbound import InboundMessage, MarketingPreference
from providers.whatsapp.provider import WhatsApp
from providers.whatsapp.responses import CODE_RULES
from providers.whatsapp.webhooks import (
    MAX_CHALLENGE_LENGTH,
    SIGNATURE_HEADER,
    parse_webhook,
    redact_webhook,
)
from tests.support.factories.notifications import FIXED_NOON
from tests.support.providers.webhook_requests import receipts_of, webhook_request
from tests.support.providers.whatsapp import (
    EPOCH,
    PHONE,
    PHONE_NUMBER_ID,
    REFERENCE,
    SECRET,
    change,
    failed,
    number,
    preference,
    preferences_change,
    signed,
    status,
    webhook,
    written,
)
from tests.support.tables import each_case

K = ReceiptKind


def received(*statuses: Any) -> list[Receipt]:
    raw = webhook(change(*statuses))
    return receipts_of(number(), signed(raw), raw)


@given(st.binary(max_size=200))
def test_our_signature_equals_pywas(raw: bytes) -> None:
    assert webhook_updates_validator(SECRET, raw, signed(raw)[SIGNATURE_HEADER])


@each_case("secret, used", [("", ""), ("app-secret", "another")])
def test_foreign_signature_is_refused(secret: str, used: str) -> None:
    raw = webhook()
    with pytest.raises(InvalidSignatureError, match=None if secret else "no app secret"):
        receipts_of(number(app_secret=secret), signed(raw, secret=used), raw)


@each_case(
    "signature",
    [
        None,
        "",
        " ",
        "sha256",
        "sha256=",
        "sha1=" + "0" * 40,
        "é" * 64,
        "sha256=" + "é" * 64,
        "sha256=" + "٣" * 64,
        "sha256=" + "0" * 63,
        "sha256=" + "0" * 65,
        "\ud800",
        "sha256=" + "A" * 100_000,
        "0" * 64,
        "sha256=" + "0" * 64,
    ],
)
def test_missing_or_malformed_signature_is_refused(signature: str | None) -> None:
    headers = {} if signature is None else {SIGNATURE_HEADER: signature}
    with pytest.raises(InvalidSignatureError):
        receipts_of(number(), headers, webhook())


def test_signature_needs_its_algorithm() -> None:
    raw = webhook()
    bare = signed(raw)[SIGNATURE_HEADER].removeprefix("sha256=")
    old = "sha1=" + hmac.new(SECRET.encode(), raw, hashlib.sha1).hexdigest()
    for signature in (bare, old, f"SHA256={bare}"):
        with pytest.raises(InvalidSignatureError):
            receipts_of(number(), {SIGNATURE_HEADER: signature}, raw)


def handshake(**query: str) -> str:
    default = {"mode": "subscribe", "verify_token": "verify-token", "challenge": "1158201444"}
    return greeted(number(), {f"hub.{name}": value for name, value in (default | query).items()})


def greeted(account: WhatsApp, query: dict[str, str]) -> str:
    reply = account.parse_webhook(webhook_request(method="GET", query=query)).reply
    return reply.body


def test_handshake_with_the_token_returns_the_challenge() -> None:
    assert handshake() == "1158201444"


@each_case(
    "query",
    [
        *({"verify_token": token} for token in ("", "verify", "verify-token ", "é", "\ud800")),
        *({"mode": mode} for mode in ("", "unsubscribe", "SUBSCRIBE")),
        *({"challenge": text} for text in ("", "<script>", "a b", "é", "1\n", "\ud800")),
        {"challenge": "1" * (MAX_CHALLENGE_LENGTH + 1)},
    ],
)
def test_invalid_handshake_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidSignatureError):
        handshake(**query)


def test_empty_handshake_is_refused() -> None:
    for item in (number(), number(verify_token="")):
        with pytest.raises(InvalidSignatureError):
            greeted(item, {})
    with pytest.raises(InvalidSignatureError, match="no verify token"):
        greeted(number(verify_token=""), {"hub.mode": "subscribe", "hub.verify_token": ""})


def test_status_becomes_a_receipt() -> None:
    assert received(status("delivered")) == [
        Receipt(
            reference=REFERENCE,
            provider_id="wamid.1",
            kind=K.DELIVERED,
            at=FIXED_NOON,
            reason=None,
            event_id="wamid.1:delivered",
            address=PHONE,
        )
    ]


@each_case("name, kind", [("sent", K.SENT), ("delivered", K.DELIVERED), ("read", K.READ)])
def test_status_has_its_kind(name: str, kind: ReceiptKind) -> None:
    (receipt,) = received(status(name))
    assert receipt.kind is kind


@each_case("name", ["deleted", "warning", "played", "pending", "", "DELIVERED"])
def test_unknown_status_is_ignored(name: str) -> None:
    assert [r.event_id for r in received(status(name), status("read"))] == ["wamid.1:read"]


def test_receipt_without_reference_has_the_message_id() -> None:
    for missing in (..., None, "", "\ud83d", "a b", "x" * 1_000):
        (receipt,) = received(status(biz_opaque_callback_data=missing))
        assert (receipt.reference, receipt.provider_id) == (None, "wamid.1")


def test_receipt_with_hidden_number_has_no_address() -> None:
    for recipient in (..., None, "", "GB.13491208655302741918", "+44", "0123456789"):
        (receipt,) = received(status(recipient_id=recipient))
        assert receipt.address is None


def test_event_id_repeats_with_the_event() -> None:
    later = str(EPOCH + 60)
    events = [
        *received(status("sent"), status("sent"), status("sent", timestamp=later)),
        *received(failed(), failed(), failed(timestamp=later)),
    ]
    assert len({receipt.event_id for receipt in events}) == 3


def test_receipts_keep_their_order() -> None:
    first, two = change(status("read"), status("sent")), change(status("delivered"))
    entries = [{"id": "1", "changes": [first, two]}, {"id": "2", "changes": [change(failed())]}]
    raw = json.dumps({"object": "whatsapp_business_account", "entry": entries}).encode()
    kinds = [receipt.kind for receipt in receipts_of(number(), signed(raw), raw)]
    assert kinds == [K.READ, K.SENT, K.DELIVERED, K.FAILED]


@each_case("code", [131026, 131047, 131000, 132001])
def test_failure_has_the_reason_of_its_code(code: int) -> None:
    (receipt,) = received(failed(code))
    rule = next(rule for rule in CODE_RULES if code in rule.codes)
    assert (receipt.kind, receipt.reason) == (K.FAILED, f"{rule.reason} ({code})")


@each_case("code", [131049, 130472])
def test_undelivered_by_choice_is_rejected(code: int) -> None:
    (receipt,) = received(failed(code))
    assert receipt.kind is K.REJECTED


def test_opt_out_failure_is_also_an_unsubscribe() -> None:
    refusal, opt_out = received(failed(131050))
    assert (refusal.kind, opt_out.kind) == (K.REJECTED, K.UNSUBSCRIBED)
    assert (opt_out.address, opt_out.reference) == (PHONE, REFERENCE)
    assert refusal.event_id != opt_out.event_id


def test_unknown_code_keeps_the_redacted_title() -> None:
    errors = [{"code": 139999, "title": f"{PHONE} is \ud83d odd"}]
    (receipt,) = received(failed(errors=errors))
    assert receipt.reason == "[address] is ? odd (139999)"
    (receipt,) = received(failed(errors=[{"code": 139999, "title": "x" * 10_000}]))
    assert len(receipt.reason or "") <= EXCERPT_LENGTH + 10


@each_case("errors", [..., None, []])
def test_failure_without_error_has_no_reason(errors: Any) -> None:
    (receipt,) = received(failed(errors=errors))
    assert (receipt.kind, receipt.reason) == (K.FAILED, None)


def test_escaped_unicode_is_verified_as_received() -> None:
    raw = webhook(change(status(), messages=[written("\u2764\ufe0f \U0001f468\u200d")]))
    raw = raw.replace(b"/", b"\\/")
    assert b"\\u2764" in raw
    assert len(receipts_of(number(), signed(raw), raw)) == 1


def test_half_an_emoji_is_read() -> None:
    raw = webhook(change(status(), messages=[written("\ud83d")]))
    assert len(receipts_of(number(), signed(raw), raw)) == 1
    assert len(contents(raw).inbound.messages) == 1


@each_case("subject", ["account_update", "message_template_status_update", "calls"])
def test_other_changes_are_ignored(subject: str) -> None:
    raw = webhook({"field": subject, "value": {"statuses": "odd"}}, {"field": subject})
    assert receipts_of(number(), signed(raw), raw) == []


@each_case(
    "raw",
    [
        b"",
        b"{}",
        b"null",
        b"[]",
        b'"x"',
        b"{",
        b"\xff",
        b"7",
        b'{"object": 7, "entry": []}',
        b'{"object": "page", "entry": []}',
        b'{"object": ' + b"[" * 100_000,
        b'{"object": ' + b"1" * 5_000,
    ],
)
def test_signed_body_of_another_shape_is_a_value_error(raw: bytes) -> None:
    for read in (number().parse_logged, redact_webhook):
        with pytest.raises(ValueError, match=r"."):
            read(raw)


def test_numeric_time_is_accepted() -> None:
    (receipt,) = received(status(timestamp=0))
    assert receipt.at == datetime(1970, 1, 1, tzinfo=UTC)


def contents(raw: bytes) -> WebhookResult:
    return parse_webhook(raw, phone_number_id=PHONE_NUMBER_ID)


def inbound(*messages: Any, **fields: Any) -> list[InboundMessage]:
    return list(contents(webhook(change(messages=messages, **fields))).inbound.messages)


def test_inbound_message_has_number_and_time() -> None:
    assert inbound(written()) == [InboundMessage(phone=PHONE, at=FIXED_NOON)]


def test_repr_hides_the_number() -> None:
    assert PHONE not in repr(inbound(written()))


@each_case("kind", ["text", "image", "button", "interactive", "reaction", "new-kind"])
def test_any_message_type_is_inbound(kind: str) -> None:
    assert len(inbound(written(type=kind))) == 1


@each_case("kind", ["system", "request_welcome"])
def test_system_messages_are_ignored(kind: str) -> None:
    assert inbound(written(type=kind)) == []


@each_case("sender", [..., None, "", "GB.", "++447700900999", "12", 7])
def test_sender_without_number_or_user_id_is_skipped(sender: Any) -> None:
    assert inbound(written(**{"from": sender}), written()) == [
        InboundMessage(phone=PHONE, at=FIXED_NOON)
    ]
    assert contents(webhook(change(messages=[written(**{"from": sender})]))).unreadable_count == 1


@each_case("sender", [PHONE, PHONE[1:], int(PHONE[1:])])
def test_number_is_read_in_any_form(sender: Any) -> None:
    assert inbound(written(**{"from": sender})) == [InboundMessage(phone=PHONE, at=FIXED_NOON)]


def test_message_to_another_number_is_ignored() -> None:
    assert inbound(written(), number="100000000000002") == []


def test_missing_number_id_counts_as_ours() -> None:
    raw = webhook({"field": "messages", "value": {"messages": [written()]}})
    assert len(contents(raw).inbound.messages) == 1


def test_several_entries_are_read() -> None:
    later = written(timestamp=str(EPOCH + 60), **{"from": "351912345678"})
    raw = webhook(change(status()), change(messages=[written()]), change(messages=[later]))
    assert contents(raw).inbound.messages == (
        InboundMessage(phone=PHONE, at=FIXED_NOON),
        InboundMessage(phone="+351912345678", at=datetime.fromtimestamp(EPOCH + 60, UTC)),
    )


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
    assert contents(kept) == contents(raw)
    assert redact_webhook(kept) == kept.decode()


def preferences(raw: bytes) -> list[MarketingPreference]:
    return list(contents(raw).inbound.preferences)


@each_case("value, is_wanted", [("stop", False), ("resume", True)])
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
    assert [item.is_wanted for item in found] == [False, True]
    assert found[1].at == FIXED_NOON + timedelta(minutes=1)


@each_case(
    "other",
    [
        preference("interested"),
        preference(category="service_messages"),
        preference(wa_id=...),
        preference(wa_id=None),
        preference(wa_id="GB"),
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
    assert [
        len(preferences(raw)),
        len(contents(raw).receipts),
        len(contents(raw).inbound.messages),
    ] == [1] * 3
    assert preferences(webhook(change(status()))) == []


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
