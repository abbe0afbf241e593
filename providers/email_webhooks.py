"""Verifies and reads the webhooks of providers of email with an API."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from domain import signing

from . import http
from .bounces import email_address
from .contract import InvalidSignatureError, Receipt, WebhookRequest, WebhookResult
from .email_kinds import EmailKind, Event, EventRule, WebhookSecrets
from .json_items import read_text, split_array

MAX_TEXT = 200
"""Characters of an ID or a name."""
STANDARD_WINDOW = timedelta(minutes=5)
"""What Standard Webhooks advises: a signed webhook that is older is a replay."""
MAILGUN_WINDOW = timedelta(minutes=15)
"""Mailgun's queue may delay a webhook by minutes."""
PREFIXES = ("svix-", "webhook-")
"""Of the headers of Standard Webhooks; Svix, who wrote it, has its own."""
_EPOCH = re.compile(r"\d{10}", re.ASCII)


class UnknownEventError(ValueError):
    """The provider reports a kind of event that isn't in its table."""


def verify_password(request: WebhookRequest, secrets: WebhookSecrets, _now: datetime) -> None:
    """Check Basic authentication, for providers that sign nothing.

    Raises InvalidSignatureError.
    """
    if not secrets.password:
        raise InvalidSignatureError("no secret of webhooks is configured")
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    try:
        given = base64.b64decode(encoded, validate=True) if scheme.lower() == "basic" else b""
    except (binascii.Error, ValueError):
        given = b""
    if not hmac.compare_digest(given.partition(b":")[2], secrets.password.encode()):
        raise InvalidSignatureError("the password is missing or wrong")


def verify_standard(request: WebhookRequest, secrets: WebhookSecrets, now: datetime) -> None:
    """Check a signature of Standard Webhooks. Raises InvalidSignatureError."""
    if not secrets.signing_key:
        raise InvalidSignatureError("no signing secret is configured")
    found = next(
        (prefix for prefix in PREFIXES if f"{prefix}signature" in request.headers), PREFIXES[0]
    )
    timestamp = request.headers.get(f"{found}timestamp", "")
    _check_age(timestamp, now=now, window=STANDARD_WINDOW)
    message_id = request.headers.get(f"{found}id", "")
    try:
        expected = signing.sign(
            message_id, int(timestamp), request.raw, secret=secrets.signing_key
        ).encode()
    except ValueError:
        raise InvalidSignatureError("the signing secret is none of Standard Webhooks") from None
    given = request.headers.get(f"{found}signature", "").encode(errors="replace").split(b" ")
    if not message_id or not any(hmac.compare_digest(expected, one) for one in given):
        raise InvalidSignatureError("the signature is missing or wrong")


def verify_mailgun(request: WebhookRequest, secrets: WebhookSecrets, now: datetime) -> None:
    """Check the password, and Mailgun's signature, which doesn't cover the event.

    A token's second event has no effect: the token is the event's ID.
    Raises InvalidSignatureError.
    """
    verify_password(request, secrets, now)
    if not secrets.signing_key:
        raise InvalidSignatureError("no signing key is configured")
    signature = http.as_object(http.decode_object(request.raw).get("signature"))
    timestamp = read_text(signature, "timestamp", limit=MAX_TEXT) or ""
    token = read_text(signature, "token", limit=MAX_TEXT) or ""
    _check_age(timestamp, now=now, window=MAILGUN_WINDOW)
    given = read_text(signature, "signature", limit=MAX_TEXT) or ""
    key, signed = secrets.signing_key.encode(), f"{timestamp}{token}".encode()
    expected = hmac.new(key, signed, hashlib.sha256).hexdigest().encode()
    if not token or not hmac.compare_digest(expected, given.encode(errors="replace")):
        raise InvalidSignatureError("the signature is missing or wrong")


def _check_age(timestamp: str, *, now: datetime, window: timedelta) -> None:
    if not _EPOCH.fullmatch(timestamp):
        raise InvalidSignatureError("the timestamp is missing or invalid")
    if abs(now - datetime.fromtimestamp(int(timestamp), UTC)) > window:
        raise InvalidSignatureError("the timestamp is too old, or in the future")


def parse_webhook(kind: EmailKind, raw: bytes) -> WebhookResult:
    """Return the receipts of a webhook: an event, or a list of events. Raises ValueError.

    An event of a list that can't be read is counted, and others take effect.
    """
    if kind.list_field:
        try:
            fields = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
            listed = bytes(fields[kind.list_field])
        except (LookupError, ValueError, RecursionError):
            raise ValueError("the webhook lists no events") from None
        return _read_list(kind, listed, before=f'{{"{kind.list_field}":['.encode(), after=b"]}")
    if raw.lstrip().startswith(b"["):
        return _read_list(kind, raw, before=b"[", after=b"]")
    if not http.decode_object(raw):
        raise ValueError("the webhook is no object")
    try:
        found = _read_event(kind, raw)
    except UnknownEventError:
        # A refusal would be repeated for hours, and turn the webhook off in the end.
        return WebhookResult(unreadable_count=1)
    return WebhookResult(receipts=(found,) if found else ())


def _read_list(kind: EmailKind, raw: bytes, *, before: bytes, after: bytes) -> WebhookResult:
    """Read events one by one, each as a webhook of its own."""
    receipts, unreadable = [], 0
    for item in split_array(raw):
        try:
            receipt = _read_event(kind, before + item + after, item=item)
        except ValueError:
            unreadable += 1
            continue
        if receipt is not None:
            receipts.append(receipt)
    return WebhookResult(receipts=tuple(receipts), unreadable_count=unreadable)


def _read_event(kind: EmailKind, call: bytes, *, item: bytes | None = None) -> Receipt | None:
    """Return the receipt of one event, None for one without effect. Raises ValueError."""
    from . import email_payloads

    raw = call if item is None else item
    rule = rule_of(kind, http.decode_object(raw))
    if rule is None:
        raise UnknownEventError("an event of an unknown kind")
    event = email_payloads.read_event(kind, call)
    if rule.kind is None:
        return None
    if not isinstance(event.timestamp, datetime) or event.timestamp.tzinfo is None:
        raise ValueError("an event without a time")
    metadata = event.metadata if isinstance(event.metadata, Mapping) else {}
    own = {"message": event.message_id, "event": event.event_id if kind.has_event_ids else None}
    return Receipt(
        reference=read_text(metadata, "reference", limit=MAX_TEXT),
        provider_id=read_text(own, "message", limit=MAX_TEXT),
        kind=rule.kind,
        at=event.timestamp,
        reason=_reason(event.mta_response, event.description),
        event_id=read_text(own, "event", limit=MAX_TEXT) or hashlib.sha256(raw).hexdigest(),
        address=email_address(event.recipient),
        effect=rule.effect,
    )


def rule_of(kind: EmailKind, event: Event) -> EventRule | None:
    """Return the rule of an event, by its name or the name's first word. Raises ValueError."""
    try:
        name = kind.event_name(event)
        rule = kind.events.get(name) or kind.events.get(name.partition(" ")[0])
        return rule and kind.refine(rule, event)
    except (AttributeError, LookupError, TypeError) as error:
        raise ValueError("the event can't be read") from error


def _reason(*texts: object) -> str | None:
    """Return the first text: the receiving server's reply, or the provider's description."""
    return next((http.excerpt(text) for text in texts if isinstance(text, str) and text), None)
