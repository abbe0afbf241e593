"""Tokens with which the service worker of a browser reports, without a key or an inbox token.

Each push carries one for its receipts. Another, which the browser gets at its registration, allows
it to replace its own subscription. Both name the device, and are encrypted, so that nobody else can
make them. They don't expire: a receipt changes what the push itself began, and repeats harmlessly.
The other also names the person whose device it was: in a shared browser, a device becomes that of
whoever signs in next.
"""

import hashlib
from dataclasses import dataclass

import msgspec

from notifyproject.platform.encryption import DecryptionError, decrypt_token, encrypt_token

PURPOSE = "devices.browsers"
PREFIX = "ntfb_"
MAX_TOKEN_LENGTH = 300
_OWNER_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserToken:
    """What a token allows: the receipts of one push, or a device's next subscription."""

    device_id: str
    notification_id: str | None
    """The push whose receipts it allows. None: it allows the next subscription."""
    owner: bytes | None = None
    """A digest of the device's user, for the next subscription."""

    def renews_for(self, user_id: str) -> bool:
        """Return whether it allows the next subscription of a device of this user."""
        return self.notification_id is None and self.owner == _digest(user_id)


class _Token(msgspec.Struct, frozen=True, array_like=True):
    device_id: bytes
    notification_id: bytes | None
    owner: bytes | None = None


def issue_for_receipts(*, device_id: str, notification_id: str) -> str:
    """Return a token for the receipts of a push."""
    return _issue(_Token(bytes.fromhex(device_id), bytes.fromhex(notification_id)))


def issue_for_renewal(*, device_id: str, user_id: str) -> str:
    """Return a token for a device's next subscription, while the device is this user's."""
    return _issue(_Token(bytes.fromhex(device_id), None, _digest(user_id)))


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
        owner=token.owner,
    )


def _issue(token: _Token) -> str:
    return f"{PREFIX}{encrypt_token(msgspec.msgpack.encode(token), purpose=PURPOSE)}"


def _digest(user_id: str) -> bytes:
    return hashlib.sha256(user_id.encode()).digest()[:_OWNER_LENGTH]
