"""Subscriptions to web push, as browsers make them. Pure.

Who has a subscription's endpoint and keys can push to the browser, so nothing here shows them.
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NewType

MAX_ENDPOINT_LENGTH = 1_024
POINT_LENGTH, AUTH_LENGTH = 65, 16
FINGERPRINT_LENGTH = 16
"""Hex digits that tell the keys of one service apart."""
_ENDPOINT = re.compile(r"https://([a-z0-9.-]+)(/[\w.~:/?\[\]!$&'()*+,;=%-]*)", re.ASCII)
"""No character that two parsers of URLs read differently, and no port: VAPID names the origin,
which has none for 443. Push services refuse another text of it as they refuse a wrong key."""
_PUBLIC_HOST = r"(?!localhost\b)[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
SUBJECT_PATTERN = (
    rf"mailto:[^\s<>@,;:]+@{_PUBLIC_HOST}|https://{_PUBLIC_HOST}(?::[0-9]+)?(?:/[^\s<>]*)?"
)
"""A sender's address as every push service takes it. Apple refuses ``localhost``, and spaces as in
``mailto: a@b.example``, with BadJwtToken."""
_BASE64URL = re.compile(r"[A-Za-z0-9_-]+={0,2}", re.ASCII)
_UNCOMPRESSED = 4
_P = 2**256 - 2**224 + 2**192 + 2**96 - 1
_B = 0x5AC635D8AA3A93E7B3EBBD55769886BC651D06B0CC53B0F63BCE3C3E27D2604B
"""P-256: the points with y² = x³ - 3x + B modulo P."""
TOPIC_BYTES = 24
"""They make 32 characters, the most that are allowed. Apple decodes them, and refuses a length that
no bytes have, such as 29."""
Fingerprint = NewType("Fingerprint", str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a browser says of its subscription, once it is checked."""

    endpoint: str = field(repr=False)
    host: str
    """The host of the endpoint, which is the push service."""
    p256dh: bytes = field(repr=False)
    """The browser's public key: an uncompressed point on P-256."""
    auth: bytes = field(repr=False)
    fingerprint: Fingerprint
    """Of the VAPID key that the browser subscribed with. No other can push to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedSubscription:
    """A stored subscription. Endpoint and keys are encrypted until the message is."""

    device_id: str
    host: str
    fingerprint: Fingerprint
    secrets: str = field(repr=False)


def endpoint_host(endpoint: str, *, services: Iterable[str], stand_in: str = "") -> str:
    """Return the host of an endpoint of these services, or of hosts below them.

    ``stand_in`` is the address of a sandbox, whose endpoints name the service that it stands in
    for. Raises ValueError, whose text says what was expected.
    """
    prefix = f"{stand_in}/push/"
    is_of_sandbox = bool(stand_in) and endpoint.startswith(prefix)
    text = f"https://{endpoint.removeprefix(prefix)}" if is_of_sandbox else endpoint
    found = _ENDPOINT.fullmatch(text)
    if found is None or len(endpoint) > MAX_ENDPOINT_LENGTH:
        raise ValueError(
            f"an https URL of at most {MAX_ENDPOINT_LENGTH:,} characters, without a user name or "
            "a port"
        )
    host = found[1]
    if not any(host == service or host.endswith(f".{service}") for service in services):
        raise ValueError("a host of WEBPUSH_HOSTS")
    return host


def decode_base64url(text: str) -> bytes:
    """Return the bytes of a text in base64url, with or without padding. Raises ValueError."""
    if not _BASE64URL.fullmatch(text):
        raise ValueError("expected base64url")
    bare = text.rstrip("=")
    try:
        return base64.urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    except binascii.Error as error:
        raise ValueError("expected base64url") from error


def encode_base64url(raw: bytes) -> str:
    """Return bytes as base64url without padding."""
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def read_point(text: str) -> bytes:
    """Return an uncompressed point on P-256, given in base64url. Raises ValueError."""
    point = decode_base64url(text)
    if len(point) != POINT_LENGTH or point[0] != _UNCOMPRESSED:
        raise ValueError("expected 65 bytes that begin with 4")
    half = POINT_LENGTH // 2 + 1
    x, y = int.from_bytes(point[1:half]), int.from_bytes(point[half:])
    if x >= _P or y >= _P or (y * y - x * x * x + 3 * x - _B) % _P:
        raise ValueError("expected a point on P-256")
    return point


def read_auth(text: str) -> bytes:
    """Return the secret of a subscription, given in base64url. Raises ValueError."""
    auth = decode_base64url(text)
    if len(auth) != AUTH_LENGTH:
        raise ValueError("expected 16 bytes")
    return auth


def topic(notification_id: str) -> str:
    """Return the name by which a push service replaces an earlier copy that it still keeps."""
    digest = hashlib.sha256(f"{notification_id}-push".encode()).digest()
    return encode_base64url(digest[:TOPIC_BYTES])


def fingerprint(public: bytes) -> Fingerprint:
    """Return the fingerprint of a VAPID public key: the beginning of its SHA-256."""
    return Fingerprint(hashlib.sha256(public).hexdigest()[:FINGERPRINT_LENGTH])
