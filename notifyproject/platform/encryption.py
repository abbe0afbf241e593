"""Sealing: small secrets that are kept for a while, unreadable without a key of ours.

A sealed text is ``v1.{key id}.{base64url of nonce and ciphertext}``: AES-256-GCM, with a key that
is derived from one of ``FIELD_ENCRYPTION_KEYS``. The associated data is authenticated with it, so a
ciphertext that is copied from one document to another does not decrypt there.

New secrets take the first key; old ones open as long as theirs is listed. See
docs/decisions/0016-sensitive-variables.md.
"""

import base64
import binascii
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core import checks

MIN_KEY_BYTES = 32
VERSION = "v1"
_PURPOSE = b"notifyproject sealing v1"
_NONCE_BYTES = 12
"""What NIST SP 800-38D recommends. Random, so no key should seal more than 2**32 secrets."""
_TAG_BYTES = 16
_ENCRYPTED = re.compile(r"v1\.([a-z0-9_-]{1,32})\.([A-Za-z0-9_-]+)", re.ASCII)


class DecryptionError(Exception):
    """A sealed text does not open: changed, about something else, or its key is not listed.

    It says which of these, and never what was sealed.
    """


class NoEncryptionKeyError(Exception):
    """``FIELD_ENCRYPTION_KEYS`` lists no key."""


def encrypt(plain: bytes, *, associated_data: str) -> str:
    """Return a text that only our keys open, and only for what it is ``about``.

    Sealing the same twice gives two texts. Raises NoEncryptionKeyError.
    """
    keys: Mapping[str, bytes] = settings.FIELD_ENCRYPTION_KEYS
    for key_id, secret in keys.items():
        nonce = os.urandom(_NONCE_BYTES)
        encrypted = nonce + _cipher(secret).encrypt(
            nonce, plain, _bound_data(key_id, associated_data)
        )
        return f"{VERSION}.{key_id}.{_encode(encrypted)}"
    raise NoEncryptionKeyError("FIELD_ENCRYPTION_KEYS lists no key")


def decrypt(encrypted: str, *, associated_data: str) -> bytes:
    """Return what was sealed about this; raises DecryptionError."""
    match = _ENCRYPTED.fullmatch(encrypted)
    if match is None:
        raise DecryptionError("not a sealed text")
    key_id, text = match.groups()
    secret = settings.FIELD_ENCRYPTION_KEYS.get(key_id)
    if secret is None:
        raise DecryptionError(f"FIELD_ENCRYPTION_KEYS does not list its key, {key_id}")
    raw = _decode(text)
    if len(raw) < _NONCE_BYTES + _TAG_BYTES:
        raise DecryptionError("cut short")
    nonce, ciphertext = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
    try:
        return _cipher(secret).decrypt(nonce, ciphertext, _bound_data(key_id, associated_data))
    except InvalidTag as error:
        raise DecryptionError("changed, or sealed about something else") from error


def check_keys(**_: Any) -> list[checks.CheckMessage]:
    """Return what is wrong with the keys that secrets are sealed with: a system check."""
    keys: Mapping[str, bytes] = settings.FIELD_ENCRYPTION_KEYS
    hint = "`openssl rand -base64 48` makes one: FIELD_ENCRYPTION_KEYS=2026:… , the newest first."
    if not keys:
        return [
            checks.Error("FIELD_ENCRYPTION_KEYS lists no key.", hint=hint, id="notifyproject.E001")
        ]
    problems: list[checks.CheckMessage] = [
        checks.Error(
            f"The key {key_id} of FIELD_ENCRYPTION_KEYS has fewer than {MIN_KEY_BYTES} bytes.",
            hint=hint,
            id="notifyproject.E002",
        )
        for key_id, secret in keys.items()
        if len(secret) < MIN_KEY_BYTES
    ]
    other_keys = {settings.SECRET_KEY, settings.INBOX_SIGNING_KEY}
    other_key_bytes = {
        form for key in other_keys for form in (key.encode(), _decode_or_empty(key)) if form
    }
    if other_key_bytes & set(keys.values()):
        problems.append(
            checks.Error(
                "A key of FIELD_ENCRYPTION_KEYS is the SECRET_KEY or the INBOX_SIGNING_KEY.",
                hint="Each needs a key of its own: they are changed at different times.",
                id="notifyproject.E003",
            )
        )
    return problems


def _decode_or_empty(key: str) -> bytes:
    """Return what a key is if it is read as base64; nothing if it is none."""
    try:
        return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _bound_data(key_id: str, associated_data: str) -> bytes:
    return f"{VERSION}.{key_id}.{associated_data}".encode()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    """Return the bytes of a text; raises DecryptionError if it is not how we would write them."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise DecryptionError("not base64") from error
    if _encode(raw) != text:
        raise DecryptionError("not base64 as it is written here")
    return raw


@lru_cache(maxsize=16)
def _cipher(secret: bytes) -> AESGCM:
    """Return a key's cipher. It is derived: a key may be longer than what AES takes."""
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret)
    return AESGCM(derived)
