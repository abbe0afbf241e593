"""Encryption of a push for one browser: RFC 8291, over the content encoding of RFC 8188.

The body is one record: salt, record size, and the sender's key of this message, then the text.
"""

import hashlib
import hmac
import os
from struct import Struct

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

CONTENT_ENCODING = "aes128gcm"
RECORD_SIZE = 4_096
"""The longest body that every push service takes."""
_HEADER = Struct(">16sIB65s")
_TAG_LENGTH = 16
_LAST_RECORD = b"\x02"
MAX_PLAIN = RECORD_SIZE - _HEADER.size - len(_LAST_RECORD) - _TAG_LENGTH
_CURVE = ec.SECP256R1()
_ECDH = ec.ECDH()


def encrypt(
    plain: bytes,
    *,
    p256dh: bytes,
    auth: bytes,
    sender: ec.EllipticCurvePrivateKey | None = None,
    salt: bytes | None = None,
) -> bytes:
    """Return the body that only the browser with these keys can read.

    ``sender`` and ``salt`` are new for each message; only a test gives them. Raises ValueError for
    a text over MAX_PLAIN, and for a key that is no point on P-256.
    """
    if len(plain) > MAX_PLAIN:
        raise ValueError(f"at most {MAX_PLAIN} bytes fit into a push")
    receiver = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, p256dh)
    sender = sender or ec.generate_private_key(_CURVE)
    salt = salt or os.urandom(16)
    own = sender.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    shared = _hmac(auth, sender.exchange(_ECDH, receiver))
    material = _hmac(salt, _expand(shared, b"WebPush: info\0" + p256dh + own))
    key = _expand(material, f"Content-Encoding: {CONTENT_ENCODING}\0".encode())[:16]
    nonce = _expand(material, b"Content-Encoding: nonce\0")[:12]
    sealed = AESGCM(key).encrypt(nonce, plain + _LAST_RECORD, None)
    return _HEADER.pack(salt, RECORD_SIZE, len(own), own) + sealed


def _expand(key: bytes, info: bytes) -> bytes:
    """Return the first block of HKDF, of 32 bytes: no key here is longer."""
    return _hmac(key, info + b"\x01")


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, hashlib.sha256)
