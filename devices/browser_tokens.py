"""Tokens with which the service worker of a browser reports, without a key or an inbox token.

Each push carries one for its receipts. Another, which the browser gets at its registration, allows
it to replace its own subscription. Both name the device, and are encrypted, so that nobody else can
make them. They don't expire: a receipt changes what the push itself began, and repeats harmlessly.
"""

from dataclasses import dataclass

import msgspec

from notifyproject.platform.encryption import DecryptionError, decrypt_token, encrypt_token

PURPOSE = "devices.browsers"
PREFIX = "ntfb_"
MAX_TOKEN_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserToken:
    """What a token allows: the receipts of one push, or a device's next subscription."""

    device_id: str
    notification_id: str | None


class _Token(msgspec.Struct, frozen=True, array_like=True):
    device_id: bytes
    notification_id: bytes | None


def issue(*, device_id: str, notification_id: str | None = None) -> str:
    """Return a token for the receipts of a push, or for the device's next subscription."""
    own = bytes.fromhex(notification_id) if notification_id else None
    token = _Token(bytes.fromhex(device_id), own)
    return f"{PREFIX}{encrypt_token(msgspec.msgpack.encode(token), purpose=PURPOSE)}"


def read(text: str) -> BrowserToken | None:
    """Return what a token allows, or None if the service didn't issue it."""
    if not text.startswith(PREFIX) or len(text) > MAX_TOKEN_LENGTH:
        return None
    try:
        plain = decrypt_token(text.removeprefix(PREFIX), purpose=PURPOSE)
        token = msgspec.msgpack.decode(plain, type=_Token)
    except (DecryptionError, msgspec.MsgspecError):
        return None
    notification_id = token.notification_id
    return BrowserToken(
        device_id=token.device_id.hex(),
        notification_id=None if notification_id is None else notification_id.hex(),
    )
