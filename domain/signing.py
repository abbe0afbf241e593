"""Signs callbacks and messages to webhooks as in Standard Webhooks 1. Pure.

A signature is the HMAC-SHA256 of ``{id}.{timestamp}.{body}``.
"""

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Sequence

PREFIX = "whsec_"
SECRET_BYTES = 32
VERSION = "v1"


def new_secret() -> str:
    """Return a new random secret as text."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def decode_secret(secret: str) -> bytes:
    """Decode a secret's text into the key. Raises ValueError if the text is invalid."""
    if not secret.startswith(PREFIX):
        raise ValueError("invalid secret")
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("invalid secret") from error


def sign_headers(
    *, message_id: str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """Return a message's headers with a signature per secret. Raises ValueError for a bad ID."""
    if "." in message_id:
        raise ValueError("a message id must not have a full stop")
    signatures = [sign(message_id, timestamp, body, secret=secret) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


def sign(message_id: str, timestamp: int, body: bytes, *, secret: str) -> str:
    """Return the signature of a message with one secret."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(decode_secret(secret), signed, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"
