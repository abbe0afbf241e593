"""Encryption of stored values (AES-256-GCM) and of tokens in links (AES-SIV), and keyed digests.

A stored value is ``v1.{key id}.{base64url of nonce and ciphertext}``. The first of
``FIELD_ENCRYPTION_KEYS`` encrypts; any of them decrypts. Associated data is authenticated, so a
ciphertext copied to another document does not decrypt there. See
docs/decisions/0016-sensitive-variables.md.

A token is deterministic: the same text for the same bytes. Its key is derived from ``SECRET_KEY``.

A keyed digest (HMAC-SHA256) shows whether two values are equal. Its key is derived from one of
``FIELD_ENCRYPTION_KEYS``. Without the key, nobody finds a value, such as six digits, by trying all.
"""

import base64
import binascii
import hmac
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.core import checks
from django.utils.crypto import salted_hmac

MIN_KEY_BYTES = 32
VERSION = "v1"
_PURPOSE = b"notifyproject sealing v1"
_DIGEST_PURPOSE = b"notifyproject digest v1"
_NONCE_BYTES = 12
"""From NIST SP 800-38D. Nonces are random, so a key should encrypt at most 2**32 values."""
_TAG_BYTES = 16
_ENCRYPTED = re.compile(r"v1\.([a-z0-9_-]{1,32})\.([A-Za-z0-9_-]+)", re.ASCII)


class DecryptionError(Exception):
    """A ciphertext was changed, has other associated data, or its key is not listed."""


class NoEncryptionKeyError(Exception):
    """``FIELD_ENCRYPTION_KEYS`` lists no key."""


def encrypt(plain: bytes, *, associated_data: str) -> str:
    """Encrypt a value under the first key, with a random nonce. Raises NoEncryptionKeyError."""
    keys: Mapping[str, bytes] = settings.FIELD_ENCRYPTION_KEYS
    for key_id, secret in keys.items():
        nonce = os.urandom(_NONCE_BYTES)
        encrypted = nonce + _cipher(secret).encrypt(
            nonce, plain, _bound_data(key_id, associated_data)
        )
        return f"{VERSION}.{key_id}.{_encode(encrypted)}"
    raise NoEncryptionKeyError("FIELD_ENCRYPTION_KEYS lists no key")


def decrypt(encrypted: str, *, associated_data: str) -> bytes:
    """Decrypt a value that :func:`encrypt` returned. Raises DecryptionError."""
    match = _ENCRYPTED.fullmatch(encrypted)
    if match is None:
        raise DecryptionError("not an encrypted value")
    key_id, text = match.groups()
    secret = settings.FIELD_ENCRYPTION_KEYS.get(key_id)
    if secret is None:
        raise DecryptionError(f"FIELD_ENCRYPTION_KEYS does not list its key, {key_id}")
    raw = _decode(text)
    if len(raw) < _NONCE_BYTES + _TAG_BYTES:
        raise DecryptionError("truncated")
    nonce, ciphertext = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
    try:
        return _cipher(secret).decrypt(nonce, ciphertext, _bound_data(key_id, associated_data))
    except InvalidTag as error:
        raise DecryptionError("changed, or encrypted with other associated data") from error


def key_id_of(encrypted: str) -> str:
    """Return the ID of the key of an encrypted value. Raises DecryptionError."""
    match = _ENCRYPTED.fullmatch(encrypted)
    if match is None:
        raise DecryptionError("not an encrypted value")
    return match[1]


def newest_key_id() -> str:
    """Return the ID of the key that encrypts. Raises NoEncryptionKeyError."""
    for key_id in settings.FIELD_ENCRYPTION_KEYS:
        return str(key_id)
    raise NoEncryptionKeyError("FIELD_ENCRYPTION_KEYS lists no key")


def reencrypt(encrypted: str, *, associated_data: str) -> str:
    """Return the value under the first key. Raises DecryptionError and NoEncryptionKeyError."""
    return encrypt(
        decrypt(encrypted, associated_data=associated_data), associated_data=associated_data
    )


def keyed_digest(value: bytes, *, associated_data: str) -> str:
    """Return a digest of a value under the first key. Raises NoEncryptionKeyError."""
    for secret in settings.FIELD_ENCRYPTION_KEYS.values():
        return _keyed_digest(secret, value, associated_data)
    raise NoEncryptionKeyError("FIELD_ENCRYPTION_KEYS lists no key")


def keyed_digests(value: bytes, *, associated_data: str) -> list[str]:
    """Return the digests of a value under all keys. The first is :func:`keyed_digest`."""
    secrets = settings.FIELD_ENCRYPTION_KEYS.values()
    return [_keyed_digest(secret, value, associated_data) for secret in secrets]


def is_digest_of(digest: str, value: bytes, *, associated_data: str) -> bool:
    """Return whether :func:`keyed_digest` returned this digest for the value, under any key."""
    return any(
        hmac.compare_digest(digest, known)
        for known in keyed_digests(value, associated_data=associated_data)
    )


def encrypt_token(plain: bytes, *, purpose: str) -> str:
    """Encrypt a token under ``SECRET_KEY``, as base64url. Each ``purpose`` has its own key."""
    return _encode(_token_cipher(settings.SECRET_KEY, purpose).encrypt(plain, None))


def decrypt_token(token: str, *, purpose: str) -> bytes:
    """Decrypt a token under ``SECRET_KEY`` or a fallback of it. Raises DecryptionError."""
    raw = _decode(token)
    for secret in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS):
        try:
            return _token_cipher(secret, purpose).decrypt(raw, None)
        except InvalidTag:
            continue
    raise DecryptionError("encrypted with another key, or changed")


def check_keys(**_: Any) -> list[checks.CheckMessage]:
    """Check ``FIELD_ENCRYPTION_KEYS``: Django's system check."""
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
                hint="Use a separate key for each: they are rotated at different times.",
                id="notifyproject.E003",
            )
        )
    return problems


def _decode_or_empty(key: str) -> bytes:
    try:
        return base64.b64decode(key, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _bound_data(key_id: str, associated_data: str) -> bytes:
    return f"{VERSION}.{key_id}.{associated_data}".encode()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _decode(text: str) -> bytes:
    """Return the bytes of a base64url text. Raises DecryptionError unless it is canonical."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise DecryptionError("not base64url") from error
    if _encode(raw) != text:
        raise DecryptionError("not canonical base64url")
    return raw


@lru_cache(maxsize=16)
def _cipher(secret: bytes) -> AESGCM:
    # Derived, because a configured key may be longer than an AES key.
    return AESGCM(_derived_key(secret, _PURPOSE))


@lru_cache(maxsize=32)
def _derived_key(secret: bytes, purpose: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose).derive(secret)


def _keyed_digest(secret: bytes, value: bytes, associated_data: str) -> str:
    bound = associated_data.encode() + b"\0" + value
    return hmac.digest(_derived_key(secret, _DIGEST_PURPOSE), bound, "sha256").hex()


@lru_cache(maxsize=8)
def _token_cipher(secret: str, purpose: str) -> AESSIV:
    # 64 bytes: AES-SIV uses two keys of 256 bits.
    return AESSIV(salted_hmac(purpose, "", secret=secret, algorithm="sha512").digest())
