"""Verifies and parses WhatsApp webhooks: receipts, inbound messages, and opt-outs."""

import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.errors import RecipientAction

from .. import http
from ..contract import AddressEffect, InvalidSignatureError, Receipt, ReceiptKind
from ..response_rules import ResponseKind
from .responses import MAX_CODE, MAX_ID_LENGTH, append_code, rule_for

SIGNATURE_HEADER = "x-hub-signature-256"
OBJECT = "whatsapp_business_account"
MESSAGES_FIELD = "messages"
PREFERENCES_FIELD = "user_preferences"
"""The field of webhooks with marketing preferences. Any third field is ignored."""
PREFERENCE_VALUES = {"stop": False, "resume": True}
MARKETING_CATEGORY = "marketing_messages"
MAX_ITEMS = 1_000
"""Meta's limit per webhook."""
MAX_CHALLENGE_LENGTH = 200
STATUS_KINDS: Mapping[str, ReceiptKind] = {
    "sent": ReceiptKind.SENT,
    "delivered": ReceiptKind.DELIVERED,
    "read": ReceiptKind.READ,
    "failed": ReceiptKind.FAILED,
}
"""By message status; further statuses are ignored."""
SYSTEM_MESSAGE_TYPES = frozenset({"system", "request_welcome"})
"""Inbound messages that no person wrote, such as a changed number or an opened chat."""
_SIGNATURE = re.compile(r"sha256=([0-9a-f]{64})", re.ASCII)
_CHALLENGE = re.compile(rf"[\w.-]{{1,{MAX_CHALLENGE_LENGTH}}}", re.ASCII)
_REFERENCE = re.compile(rf"[!-~]{{1,{MAX_ID_LENGTH}}}", re.ASCII)
_DIGITS = re.compile(r"[1-9]\d{6,14}", re.ASCII)
Epoch = Annotated[int, Meta(ge=0, lt=10**11)]
"""Seconds since 1970; Meta sends a string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboundMessage:
    """A message that a recipient sent to us."""

    phone: str = field(repr=False)
    """The sender's number in E.164; never logged."""
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketingPreference:
    """A recipient's opt-out from WhatsApp marketing, or opt-in to it."""

    phone: str = field(repr=False)
    """The recipient's number in E.164; never logged."""
    is_wanted: bool
    at: datetime


class _Error(msgspec.Struct):
    code: Annotated[int, Meta(ge=0, lt=MAX_CODE)]
    title: str | None = None


class _Status(msgspec.Struct):
    id: Annotated[str, Meta(pattern=rf"\A[!-~]{{1,{MAX_ID_LENGTH}}}\Z")]
    status: str
    timestamp: Epoch
    recipient_id: str | None = None
    biz_opaque_callback_data: str | None = None
    errors: list[_Error] | None = None


class _InboundMessage(msgspec.Struct):
    timestamp: Epoch
    sender: str | None = msgspec.field(name="from", default=None)
    type: str = ""


class _Preference(msgspec.Struct):
    timestamp: Epoch
    wa_id: str | None = None
    category: str = ""
    value: str = ""


class _Metadata(msgspec.Struct):
    phone_number_id: str


class _Value(msgspec.Struct):
    metadata: _Metadata | None = None
    statuses: Annotated[list[_Status], Meta(max_length=MAX_ITEMS)] | None = None
    messages: Annotated[list[_InboundMessage], Meta(max_length=MAX_ITEMS)] | None = None
    user_preferences: Annotated[list[_Preference], Meta(max_length=MAX_ITEMS)] | None = None


class _Change(msgspec.Struct):
    field: str
    value: Any = None


class _Entry(msgspec.Struct):
    changes: Annotated[list[_Change], Meta(max_length=MAX_ITEMS)]


class _Webhook(msgspec.Struct):
    object: str
    entry: Annotated[list[_Entry], Meta(max_length=MAX_ITEMS)]


def verify(headers: Mapping[str, str], raw: bytes, *, app_secret: str) -> None:
    """Raise InvalidSignatureError unless the body is signed with the app secret."""
    if not app_secret:
        raise InvalidSignatureError("no app secret is configured")
    signature = _SIGNATURE.fullmatch(headers.get(SIGNATURE_HEADER, ""))
    if signature is None:
        raise InvalidSignatureError("the signature is missing or malformed")
    expected = hmac.digest(app_secret.encode(), raw, hashlib.sha256).hex()
    if not hmac.compare_digest(signature[1], expected):
        raise InvalidSignatureError("the signature is wrong")


def challenge(query: Mapping[str, str], *, verify_token: str) -> str:
    """Return the response to Meta's webhook handshake. Raises InvalidSignatureError."""
    if not verify_token:
        raise InvalidSignatureError("no verify token is configured")
    token = query.get("hub.verify_token", "").encode(errors="replace")
    is_known = hmac.compare_digest(token, verify_token.encode())
    if not is_known or query.get("hub.mode") != "subscribe":
        raise InvalidSignatureError("the verify token is wrong")
    text = query.get("hub.challenge", "")
    if not _CHALLENGE.fullmatch(text):
        raise InvalidSignatureError("the challenge is missing or malformed")
    return text


def parse_receipts(raw: bytes) -> list[Receipt]:
    """Return the receipts of a webhook. Raises ValueError."""
    return [
        receipt
        for value in _iterate_values(_decode(raw))
        for status in value.statuses or ()
        if status.status in STATUS_KINDS
        for receipt in _build_receipts(status)
    ]


def parse_inbound(raw: bytes, *, phone_number_id: str) -> list[InboundMessage]:
    """Return the inbound messages to one of our phone numbers. Raises ValueError."""
    return [
        InboundMessage(
            phone=f"+{message.sender}", at=datetime.fromtimestamp(message.timestamp, UTC)
        )
        for value in _iterate_values(_decode(raw))
        if value.metadata is None or value.metadata.phone_number_id == phone_number_id
        for message in value.messages or ()
        if message.type not in SYSTEM_MESSAGE_TYPES and _is_phone_number(message.sender)
    ]


def parse_opt_outs(raw: bytes, *, phone_number_id: str) -> list[MarketingPreference]:
    """Return the marketing opt-outs and opt-ins for a number, oldest first. Raises ValueError."""
    found = [
        MarketingPreference(
            phone=f"+{preference.wa_id}",
            is_wanted=PREFERENCE_VALUES[preference.value],
            at=datetime.fromtimestamp(preference.timestamp, UTC),
        )
        for value in _iterate_values(_decode(raw), field_name=PREFERENCES_FIELD)
        if value.metadata is None or value.metadata.phone_number_id == phone_number_id
        for preference in value.user_preferences or ()
        if preference.category == MARKETING_CATEGORY
        and preference.value in PREFERENCE_VALUES
        and _is_phone_number(preference.wa_id)
    ]
    return sorted(found, key=lambda one: one.at)


def redact_webhook(raw: bytes) -> str:
    """Return a webhook for the log, without message texts and names. Raises ValueError."""
    webhook = _decode(raw)
    entries = [
        {"changes": [_redact_change(change) for change in entry.changes]} for entry in webhook.entry
    ]
    return json.dumps({"object": webhook.object, "entry": entries}, separators=(",", ":"))


def _redact_change(change: _Change) -> dict[str, Any]:
    if change.field == PREFERENCES_FIELD:
        preferences = _parse_value(change).user_preferences and change.value["user_preferences"]
        picked = [
            _pick(one, "wa_id", "category", "value", "timestamp") for one in preferences or ()
        ]
        redacted = _pick(change.value, "metadata") | {"user_preferences": picked}
        return {"field": change.field, "value": redacted}
    if change.field != MESSAGES_FIELD:
        return {"field": change.field}
    has_messages = bool(_parse_value(change).messages)
    redacted = _pick(change.value, "metadata", "statuses")
    if has_messages:
        messages = change.value["messages"]
        redacted["messages"] = [_pick(one, "id", "from", "timestamp", "type") for one in messages]
    return {"field": change.field, "value": redacted}


def _pick(found: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: found[name] for name in names if name in found}


def _decode(raw: bytes) -> _Webhook:
    try:
        # Not msgspec: it rejects the whole webhook for a text that was cut within an emoji.
        webhook = msgspec.convert(json.loads(raw.decode()), _Webhook, strict=False)
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    if webhook.object != OBJECT:
        raise ValueError("the webhook is not about a WhatsApp account")
    return webhook


def _iterate_values(webhook: _Webhook, *, field_name: str = MESSAGES_FIELD) -> Iterator[_Value]:
    for entry in webhook.entry:
        for change in entry.changes:
            if change.field == field_name:
                yield _parse_value(change)


def _parse_value(change: _Change) -> _Value:
    return msgspec.convert(change.value, _Value, strict=False)


def _build_receipts(status: _Status) -> Iterator[Receipt]:
    kind, event_id, reason = STATUS_KINDS[status.status], f"{status.id}:{status.status}", None
    error = status.errors[0] if status.errors else None
    rule = rule_for(error.code) if error else None
    if kind is ReceiptKind.FAILED:
        kind = rule.receipt_kind if rule else kind
        event_id = f"{event_id}:{status.timestamp}"
        reason = _reason(error)
    receipt = _build_receipt(status, kind, event_id, reason)
    is_undeliverable = (
        rule is not None
        and rule.kind is ResponseKind.INVALID_RECIPIENT
        and rule.action is RecipientAction.SUSPECT
    )
    yield replace(receipt, effect=AddressEffect.SOFT_BOUNCE) if is_undeliverable else receipt
    if rule and rule.action is RecipientAction.SUPPRESS_MARKETING:
        yield _build_receipt(status, ReceiptKind.UNSUBSCRIBED, f"{event_id}:unsubscribed", reason)


def _build_receipt(
    status: _Status, kind: ReceiptKind, event_id: str, reason: str | None
) -> Receipt:
    reference = status.biz_opaque_callback_data or ""
    return Receipt(
        reference=reference if _REFERENCE.fullmatch(reference) else None,
        provider_id=status.id,
        kind=kind,
        at=datetime.fromtimestamp(status.timestamp, UTC),
        reason=reason,
        event_id=event_id,
        address=f"+{status.recipient_id}" if _is_phone_number(status.recipient_id) else None,
    )


def _reason(error: _Error | None) -> str | None:
    if error is None:
        return None
    rule = rule_for(error.code)
    title = (error.title or "WhatsApp gave no reason.").encode(errors="replace").decode()
    return append_code(rule.reason if rule else http.excerpt(title), error.code)


def _is_phone_number(text: str | None) -> bool:
    return text is not None and _DIGITS.fullmatch(text) is not None
