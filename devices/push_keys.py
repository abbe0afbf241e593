"""The service's keys for web push (VAPID, RFC 8292), with which browsers subscribe.

A browser subscribes with one public key, and no other may push to it. So an earlier key stays in
``WEBPUSH_KEYS`` for the browsers that have not subscribed again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.core.signals import setting_changed

from domain.web_push import Fingerprint, decode_base64url, encode_base64url, fingerprint

PRIVATE_LENGTH = 32
_CURVE = ec.SECP256R1()
_SIGNATURE = ec.ECDSA(hashes.SHA256())


class InvalidKeysError(ValueError):
    """The configured keys or their subject can't be used. The message has no secret."""


@dataclass(frozen=True, kw_only=True)
class VapidKey:
    """A key pair with which the service signs, and browsers subscribe."""

    private: ec.EllipticCurvePrivateKey = field(repr=False)

    @cached_property
    def public(self) -> bytes:
        """The public key as an uncompressed point."""
        return self.private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)

    @cached_property
    def public_text(self) -> str:
        """The public key as a browser's ``applicationServerKey``."""
        return encode_base64url(self.public)

    @cached_property
    def fingerprint(self) -> Fingerprint:
        """What devices that subscribed with this key have stored."""
        return fingerprint(self.public)

    @property
    def private_text(self) -> str:
        """The key as ``WEBPUSH_KEYS`` has it."""
        number = self.private.private_numbers().private_value
        return encode_base64url(number.to_bytes(PRIVATE_LENGTH))

    def sign(self, claims: Mapping[str, object]) -> str:
        """Return a JWT with these claims."""
        head, content = (
            encode_base64url(json.dumps(part, separators=(",", ":")).encode())
            for part in ({"typ": "JWT", "alg": "ES256"}, claims)
        )
        signed = f"{head}.{content}"
        r, s = decode_dss_signature(self.private.sign(signed.encode(), _SIGNATURE))
        raw = r.to_bytes(PRIVATE_LENGTH) + s.to_bytes(PRIVATE_LENGTH)
        return f"{signed}.{encode_base64url(raw)}"


def new_key() -> VapidKey:
    """Return a new key."""
    return VapidKey(private=ec.generate_private_key(_CURVE))


def read_keys(texts: Sequence[str]) -> tuple[VapidKey, ...]:
    """Return the keys of ``WEBPUSH_KEYS``, the newest first. Raises InvalidKeysError."""
    return tuple(_read_key(text, number) for number, text in enumerate(texts, start=1))


def _read_key(text: str, number: int) -> VapidKey:
    problem = (
        f"Key {number} of WEBPUSH_KEYS is no private key: expected 43 characters of base64url."
    )
    try:
        raw = decode_base64url(text)
        private = ec.derive_private_key(int.from_bytes(raw), _CURVE)
    except ValueError as error:
        raise InvalidKeysError(problem) from error
    if len(raw) != PRIVATE_LENGTH:
        raise InvalidKeysError(problem)
    return VapidKey(private=private)


def public_keys() -> Mapping[Fingerprint, str]:
    """Return the configured public keys by fingerprint, the newest first.

    Raises InvalidKeysError.
    """
    return {key.fingerprint: key.public_text for key in _configured()}


def application_server_key() -> str | None:
    """Return the public key with which browsers subscribe. None: web push isn't configured."""
    return next(iter(public_keys().values()), None)


@cache
def _configured() -> tuple[VapidKey, ...]:
    return read_keys(settings.WEBPUSH_KEYS)


def _forget(**_: object) -> None:
    _configured.cache_clear()


setting_changed.connect(_forget)
