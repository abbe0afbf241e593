"""Verifies callbacks, which are signed as Standard Webhooks describes."""

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .errors import InvalidCallbackError

MAX_AGE = 300
"""Seconds between the time of a callback and now, in either direction."""


def verify_callback(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secret: str | Sequence[str],
    now: float | None = None,
) -> dict[str, Any]:
    """Return the event of a callback whose signature is genuine and whose time is recent.

    ``body`` are the raw bytes of the request. ``secret`` is the endpoint's ``whsec_…``, or several
    of which any may have signed it. ``now`` is a Unix time, for tests. An event may arrive twice:
    the header ``webhook-id`` is then the same.

    Raises InvalidCallbackError; answer it with 400. Raises ValueError if a secret is none.
    """
    keys = [_key(one) for one in ([secret] if isinstance(secret, str) else secret)]
    found = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, sent_at = found["webhook-id"], found["webhook-timestamp"]
        signatures = found["webhook-signature"].split()
    except KeyError as missing:
        raise InvalidCallbackError(f"The header {missing} is missing.") from None
    if not re.fullmatch("[0-9]{1,15}", sent_at):
        raise InvalidCallbackError("The header 'webhook-timestamp' isn't a number.")
    if abs((time.time() if now is None else now) - int(sent_at)) > MAX_AGE:
        raise InvalidCallbackError("It is too old, or from the future.")
    signed = f"{message_id}.{sent_at}.".encode() + body
    expected = [_sign(signed, key) for key in keys]
    if not any(
        hmac.compare_digest(ours.encode(), theirs.encode())
        for ours in expected
        for theirs in signatures
    ):
        raise InvalidCallbackError("No signature matches.")
    event: dict[str, Any] = json.loads(body)
    return event


def _key(secret: str) -> bytes:
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    # An empty key would verify what anybody signs.
    if not key:
        raise ValueError("The secret isn't one of the service.")
    return key


def _sign(signed: bytes, key: bytes) -> str:
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
