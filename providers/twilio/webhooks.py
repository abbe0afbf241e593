"""Verifies and parses Twilio's webhooks: status callbacks, and what people write."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from domain.addresses import E164
from domain.errors import FailureCode

from .. import http
from ..contract import (
    AddressEffect,
    InvalidSignatureError,
    Receipt,
    ReceiptKind,
    WebhookResult,
)
from ..inbound import Inbound, MarketingPreference
from ..json_items import read_text
from .responses import PUMPING, append_code, failure_rule, parse_code

SIGNATURE_HEADER = "x-twilio-signature"
FORM = "application/x-www-form-urlencoded"
MAX_PARAMETERS = 200
MAX_TEXT = 200
"""Characters of an ID or a name. Twilio's are shorter."""
STATUS_KINDS: Mapping[str, ReceiptKind] = {
    "accepted": ReceiptKind.QUEUED,
    "queued": ReceiptKind.QUEUED,
    "sending": ReceiptKind.QUEUED,
    "sent": ReceiptKind.SENT,
    "delivered": ReceiptKind.DELIVERED,
    "read": ReceiptKind.READ,
    "undelivered": ReceiptKind.FAILED,
    "failed": ReceiptKind.FAILED,
    "canceled": ReceiptKind.REJECTED,
}
"""By message status; further statuses are ignored."""
INBOUND_STATUSES = frozenset({"receiving", "received"})
OPT_OUT_WORDS = frozenset(
    {"stop", "unsubscribe", "end", "quit", "stopall", "revoke", "optout", "cancel"}
)
"""What a person writes, as a whole message, so that Twilio sends nothing more."""
OPT_IN_WORDS = frozenset({"start", "yes", "unstop"})
_KINDS_BY_CODE: Mapping[FailureCode, ReceiptKind] = {FailureCode.BLOCKED: ReceiptKind.BLOCKED}
_PORTS: Mapping[str, int] = {"https": 443, "http": 80}
_SID = re.compile(r"[A-Z]{2}[0-9a-f]{32}", re.ASCII)
Parameters = Mapping[str, str]


def verify(
    headers: Mapping[str, str], raw: bytes, *, url: str, auth_tokens: tuple[str, ...]
) -> Parameters:
    """Return the parameters of a webhook. Raises InvalidSignatureError unless Twilio signed them.

    The signature has no time. An event that is repeated takes effect once.
    """
    if not auth_tokens:
        raise InvalidSignatureError("no auth token is configured")
    if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        raise InvalidSignatureError("the webhook is no form")
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            strict_parsing=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError:
        raise InvalidSignatureError("the form is malformed") from None
    signature = headers.get(SIGNATURE_HEADER, "").encode(errors="replace")
    signed = "".join(name + value for name, value in sorted(set(pairs)))
    for known_url in _known_urls(url):
        for token in auth_tokens:
            text = f"{known_url}{signed}".encode()
            digest = hmac.digest(token.encode(), text, hashlib.sha1)
            if hmac.compare_digest(base64.b64encode(digest), signature):
                return dict(pairs)
    raise InvalidSignatureError("the signature is missing or wrong")


def _known_urls(url: str) -> Iterator[str]:
    """Yield a URL with and without its port: Twilio signs either."""
    yield url
    parts = urlsplit(url)
    host, port = parts.netloc, parts.port
    other = host.rpartition(":")[0] if port else f"{host}:{_PORTS.get(parts.scheme, 80)}"
    yield url.replace(f"//{host}", f"//{other}", 1)


def describe(parameters: Parameters, *, reference: str | None, now: datetime) -> str:
    """Return what a webhook says, for the log: without what people wrote. Twilio tells no time."""
    status = parameters.get("MessageStatus") or parameters.get("SmsStatus")
    found: dict[str, Any] = {
        "at": now.isoformat(),
        "MessageSid": parameters.get("MessageSid") or parameters.get("SmsSid"),
        "MessageStatus": status,
        "AccountSid": parameters.get("AccountSid"),
        "From": parameters.get("From"),
        "To": parameters.get("To"),
        "ErrorCode": parameters.get("ErrorCode"),
        "ref": reference,
    }
    if status in INBOUND_STATUSES:
        found["OptOutType"] = _intent(parameters)
    return json.dumps({name: value for name, value in found.items() if value})


def _intent(parameters: Parameters) -> str | None:
    """Return what a person asks for. Twilio names it if the account has Advanced Opt-Out."""
    if parameters.get("OptOutType"):
        return parameters["OptOutType"]
    word = parameters.get("Body", "").strip().lower()
    if word in OPT_OUT_WORDS:
        return "STOP"
    return "START" if word in OPT_IN_WORDS else None


def parse_logged(raw: bytes) -> WebhookResult:
    """Return the contents of a webhook as it is logged. Raises ValueError."""
    found = http.decode_object(raw)
    at = datetime.fromisoformat(read_text(found, "at", limit=MAX_TEXT) or "")
    status = read_text(found, "MessageStatus", limit=MAX_TEXT)
    if status is None:
        raise ValueError("the webhook has no message status")
    if status in INBOUND_STATUSES:
        return _parse_inbound(found, at)
    kind = STATUS_KINDS.get(status)
    if kind is None:
        return WebhookResult(unreadable_count=1)
    return WebhookResult(receipts=tuple(_build_receipts(found, status, kind, at)))


def _build_receipts(
    found: Mapping[str, Any], status: str, kind: ReceiptKind, at: datetime
) -> Iterator[Receipt]:
    sid, code = read_text(found, "MessageSid", limit=MAX_TEXT), parse_code(found.get("ErrorCode"))
    if sid is None or not _SID.fullmatch(sid):
        raise ValueError("the webhook has no message SID")
    to = read_text(found, "To", limit=MAX_TEXT) or ""
    receipt = Receipt(
        reference=read_text(found, "ref", limit=MAX_TEXT),
        provider_id=sid,
        kind=kind,
        at=at,
        reason=None,
        # The same event comes again after a failed webhook.
        event_id=f"{sid}:{status}:{code or ''}",
        address=to if E164.fullmatch(to) else None,
    )
    if kind is not ReceiptKind.FAILED:
        yield receipt
        return
    rule = failure_rule(code) if code is not None else None
    if rule is None:
        reason = "Twilio gave no known reason." if code is not None else "Twilio gave no reason."
        yield replace(receipt, reason=append_code(reason, code))
        return
    has_opted_out = rule.effect is AddressEffect.UNSUBSCRIBED
    yield replace(
        receipt,
        kind=_KINDS_BY_CODE.get(rule.code, kind),
        code=rule.code,
        effect=None if has_opted_out else rule.effect,
        reason=append_code(rule.reason, code),
        is_pumping=code == PUMPING,
    )
    if has_opted_out:
        event_id = f"{receipt.event_id}:unsubscribed"
        yield replace(receipt, kind=ReceiptKind.UNSUBSCRIBED, event_id=event_id)


def _parse_inbound(found: Mapping[str, Any], at: datetime) -> WebhookResult:
    intent, sender = found.get("OptOutType"), read_text(found, "From", limit=MAX_TEXT) or ""
    wanted = {"STOP": False, "START": True}.get(intent if isinstance(intent, str) else "")
    if wanted is None or not E164.fullmatch(sender):
        return WebhookResult(inbound=Inbound())
    sid = read_text(found, "MessageSid", limit=MAX_TEXT) or ""
    preference = MarketingPreference(phone=sender, is_wanted=wanted, at=at, event_id=sid)
    return WebhookResult(inbound=Inbound(preferences=(preference,)))
