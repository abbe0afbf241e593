"""Validation of a message's values, as far as the service uses them.

The tests check the fields and types of every push by Google's own description of its API
(``tests/support/providers/fcm_schema.py``), and this module doesn't again.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

MAX_PAYLOAD, MAX_TOPIC_PAYLOAD = 4096, 2048
MAX_TTL = 28 * 24 * 3600
MAX_COLLAPSE_ID = 64


@dataclass(frozen=True, slots=True)
class Violation:
    """The path of an invalid field, and the error message."""

    field: str
    description: str


INVALID_TOKEN = Violation(
    "message.token", "The registration token is not a valid FCM registration token"
)
BAD_TTL = Violation("message.android.ttl", "Invalid TTL value.")
TOO_LARGE = Violation("message", "Message is too big.")
WRONG_SHAPE = Violation("message", "Invalid JSON payload received. A value has a wrong type.")
_TOKEN = re.compile(r"[A-Za-z0-9_:-]{1,4096}", re.ASCII)
_TOPIC = re.compile(r"[A-Za-z0-9\-_.~%]{1,900}", re.ASCII)
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}", re.ASCII)
_RESERVED = re.compile(r"from|message_type|(?:google|gcm).*", re.ASCII | re.DOTALL)


def problem(message: Mapping[str, Any]) -> Violation | None:
    """Return the first error of a message; None if it is valid."""
    try:
        return next(_problems(message), None)
    except (AttributeError, TypeError, ValueError):
        return WRONG_SHAPE


def _problems(message: Mapping[str, Any]) -> Iterator[Violation]:
    yield from _target(message)
    yield from _data_keys(message)
    yield from _android(message.get("android", {}))
    yield from _apns(message.get("apns", {}))
    yield from _webpush(message.get("webpush", {}))
    yield from _size(message)


def _target(message: Mapping[str, Any]) -> Iterator[Violation]:
    token, topic = message.get("token"), message.get("topic")
    if token and topic:
        yield Violation("message", "oneof field 'target' is already set. Cannot set 'topic'")
    elif token:
        if not _TOKEN.fullmatch(token):
            yield INVALID_TOKEN
    elif not topic:
        yield Violation("message", "Recipient of the message is not set.")
    elif not _TOPIC.fullmatch(topic.removeprefix("/topics/")):
        yield Violation("message.topic", "Invalid topic name.")


def _data_keys(message: Mapping[str, Any]) -> Iterator[Violation]:
    for field, data in (
        ("message.data", message.get("data", {})),
        ("message.android.data", message.get("android", {}).get("data", {})),
    ):
        for key in data:
            if _RESERVED.fullmatch(key):
                yield Violation(field, f"Invalid data payload key: {key}")


def _android(android: Mapping[str, Any]) -> Iterator[Violation]:
    ttl = android.get("ttl")
    if ttl is not None and not 0 <= float(ttl[:-1]) <= MAX_TTL:
        yield BAD_TTL
    colour = android.get("notification", {}).get("color")
    if colour is not None and not _COLOUR.fullmatch(colour):
        text = "Invalid color format. It must be of the form #RRGGBB."
        yield Violation("message.android.notification.color", text)


def _apns(apns: Mapping[str, Any]) -> Iterator[Violation]:
    headers = {name.lower(): value for name, value in apns.get("headers", {}).items()}
    if headers.get("apns-priority", "10") not in ("1", "5", "10"):
        yield Violation("message.apns.headers", "Invalid value for header apns-priority.")
    expiration = headers.get("apns-expiration", "0")
    if not (expiration.isascii() and expiration.isdigit()):
        yield Violation("message.apns.headers", "Invalid value for header apns-expiration.")
    if len(headers.get("apns-collapse-id", "").encode()) > MAX_COLLAPSE_ID:
        text = "Header apns-collapse-id must not be longer than 64 bytes."
        yield Violation("message.apns.headers", text)
    aps = apns.get("payload", {}).get("aps", {})
    if not isinstance(aps, dict):
        yield Violation("message.apns.payload.aps", "Invalid APNs payload: aps is no object.")


def _webpush(webpush: Mapping[str, Any]) -> Iterator[Violation]:
    link = webpush.get("fcm_options", {}).get("link")
    if link is not None and not link.startswith("https://"):
        yield Violation("message.webpush.fcm_options.link", "The link must be an HTTPS URL.")


def _size(message: Mapping[str, Any]) -> Iterator[Violation]:
    limit = MAX_PAYLOAD if message.get("token") else MAX_TOPIC_PAYLOAD
    if max(_payloads(message)) > limit:
        yield TOO_LARGE


def _payloads(message: Mapping[str, Any]) -> Iterator[int]:
    """Yield the payload's size on Android, Apple, and web, in bytes of keys and values."""
    android, apns, webpush = (message.get(name, {}) for name in ("android", "apns", "webpush"))
    data, notification = message.get("data", {}), message.get("notification", {})
    own = android.get("notification", {})
    yield _bytes(android.get("data") or data) + _bytes({**notification, **own})
    yield _bytes(data) + _bytes(notification) + _json(apns.get("payload", {}))
    own = webpush.get("notification", {})
    yield _bytes(webpush.get("data") or data) + _bytes(notification) + _json(own)


def _bytes(texts: Mapping[str, Any]) -> int:
    pairs = [(key, value) for key, value in texts.items() if isinstance(value, str)]
    return sum(len(key.encode()) + len(value.encode()) for key, value in pairs)


def _json(payload: Mapping[str, Any]) -> int:
    return len(msgspec.json.encode(payload)) if payload else 0
