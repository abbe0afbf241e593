"""Browsers of the sandbox: their keys follow from their names, and they decrypt what they get."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

FINGERPRINT_LENGTH = 16
_CURVE = ec.SECP256R1()
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_SALT, _SIZE, _LENGTH = 16, 4, 1
_END = 2
"""The last byte of the text in a body's last record; zeros may follow."""


class UnreadablePushError(ValueError):
    """A body isn't encrypted for the browser."""


def base64url(raw: bytes) -> str:
    """Return bytes as browsers write them."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def from_base64url(text: str) -> bytes:
    """Return the bytes of base64url without padding. Raises ValueError."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def fingerprint(public_key: bytes) -> str:
    """Return what an endpoint says of the key that its browser subscribed with."""
    return hashlib.sha256(public_key).hexdigest()[:FINGERPRINT_LENGTH]


@dataclass(frozen=True, slots=True)
class Browser:
    """One browser with a subscription."""

    private: ec.EllipticCurvePrivateKey = field(repr=False)
    auth: bytes = field(repr=False)

    @property
    def public(self) -> bytes:
        """Its public key."""
        return _point(self.private.public_key())

    def decrypt(self, body: bytes) -> bytes:
        """Return the text of a push, as RFC 8291 says. Raises UnreadablePushError."""
        try:
            salt, rest = body[:_SALT], body[_SALT + _SIZE :]
            sender, record = rest[_LENGTH : _LENGTH + rest[0]], rest[_LENGTH + rest[0] :]
            peer = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, sender)
            secret = self.private.exchange(ec.ECDH(), peer)
            material = _derive(
                secret, self.auth, b"WebPush: info\0" + self.public + sender, length=32
            )
            key = _derive(material, salt, b"Content-Encoding: aes128gcm\0", length=16)
            nonce = _derive(material, salt, b"Content-Encoding: nonce\0", length=12)
            padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        except (ValueError, IndexError, InvalidTag) as error:
            raise UnreadablePushError("not encrypted for this browser") from error
        if not padded or padded[-1] != _END:
            raise UnreadablePushError("no last record")
        return padded[:-1]


@dataclass(frozen=True, slots=True)
class Browsers:
    """The browsers of one sandbox."""

    secret: bytes = field(repr=False)

    def browser(self, name: str) -> Browser:
        """Return the browser with a name. Each name has one."""
        number = int.from_bytes(self._derived(f"key {name}"))
        private = ec.derive_private_key(number % (_ORDER - 1) + 1, _CURVE)
        return Browser(private, self._derived(f"auth {name}")[:16])

    def subscribe(
        self, *, origin: str, host: str, name: str, key: str | None
    ) -> Mapping[str, object]:
        """Return a subscription as a browser gives it to a page. Raises ValueError.

        With a ``key``, the service's public one, no other key can push to it.
        """
        own = f"{name}.{fingerprint(from_base64url(key))}" if key else name
        browser = self.browser(own)
        return {
            "endpoint": f"{origin}/push/{host}/{own}",
            "expirationTime": None,
            "keys": {"p256dh": base64url(browser.public), "auth": base64url(browser.auth)},
        }

    def _derived(self, purpose: str) -> bytes:
        return hmac.digest(self.secret, purpose.encode(), hashlib.sha256)


def _point(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _derive(material: bytes, salt: bytes, info: bytes, *, length: int) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=length, salt=salt, info=info).derive(material)
