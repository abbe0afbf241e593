"""Signatures in the form of Standard Webhooks, version 1. Pure.

What is signed is ``{id}.{timestamp}.{body}`` with HMAC-SHA256. The parts are told apart by the full
stops, so an id holds none.
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
    """Return a secret as its owner is shown it."""
    return PREFIX + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def decode_secret(secret: str) -> bytes:
    """Return the key that a secret is written for; raises ValueError for anything else."""
    if not secret.startswith(PREFIX):
        raise ValueError("not a secret of a callback")
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError("not a secret of a callback") from error


def sign_headers(
    *, message_id: str, timestamp: int, body: bytes, secrets: Sequence[str]
) -> dict[str, str]:
    """Return the headers of a message, signed with every secret that is valid now.

    ``timestamp``: when it is sent, in seconds since 1970. Raises ValueError for an id that a
    receiver could not tell from what follows it.
    """
    if "." in message_id:
        raise ValueError("an id with a full stop in it is signed for two messages")
    signatures = [sign(message_id, timestamp, body, secret=secret) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signatures),
    }


def sign(message_id: str, timestamp: int, body: bytes, *, secret: str) -> str:
    """Return one signature of a message."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    digest = hmac.new(decode_secret(secret), signed, hashlib.sha256).digest()
    return f"{VERSION},{base64.b64encode(digest).decode()}"
