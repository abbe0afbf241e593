"""Verifies VAPID, RFC 8292: who sends a push, and that it is meant for this push service."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from .browsers import fingerprint, from_base64url

MAX_LIFETIME = timedelta(days=1)
_SIGNATURE_LENGTH = 64
_HEADER = re.compile(r"vapid t=([\w.-]+), ?k=([\w-]+)", re.ASCII)
_SUBJECT = re.compile(r"(?:mailto:[^\s@<>]+@|https://)(?!localhost\b)[\w.-]+\.[\w.:/-]+", re.ASCII)


class Defect(StrEnum):
    """What is wrong with the authorization of a push."""

    MISSING = "missing"
    KEY = "key"
    SIGNATURE = "signature"
    AUDIENCE = "audience"
    EXPIRY = "expiry"
    SUBJECT = "subject"


class RejectedSignatureError(Exception):
    """A push service doesn't accept an authorization."""

    def __init__(self, defect: Defect) -> None:
        super().__init__(defect.value)
        self.defect = defect


@dataclass(frozen=True, slots=True)
class Sender:
    """Who signed a push."""

    fingerprint: str


def verify(header: str, *, origins: Collection[str], now: datetime) -> Sender:
    """Return who signed a push for one of these origins. Raises RejectedSignatureError."""
    found = _HEADER.fullmatch(header)
    if found is None:
        raise RejectedSignatureError(Defect.MISSING)
    token, key_text = found.groups()
    try:
        key = from_base64url(key_text)
        public = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), key)
    except ValueError:
        raise RejectedSignatureError(Defect.KEY) from None
    claims = _verified_claims(token, public)
    if claims.get("aud") not in origins:
        raise RejectedSignatureError(Defect.AUDIENCE)
    expiry = claims.get("exp")
    if not isinstance(expiry, int) or not 0 < expiry - now.timestamp() <= _seconds(MAX_LIFETIME):
        raise RejectedSignatureError(Defect.EXPIRY)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        raise RejectedSignatureError(Defect.SUBJECT)
    return Sender(fingerprint(key))


def _verified_claims(token: str, public: ec.EllipticCurvePublicKey) -> dict[str, Any]:
    try:
        signed, _, signature_text = token.rpartition(".")
        head, content = (msgspec.json.decode(from_base64url(part)) for part in signed.split("."))
        signature = from_base64url(signature_text)
        if head != {"typ": "JWT", "alg": "ES256"} or len(signature) != _SIGNATURE_LENGTH:
            raise RejectedSignatureError(Defect.SIGNATURE)
        half = _SIGNATURE_LENGTH // 2
        numbers = int.from_bytes(signature[:half]), int.from_bytes(signature[half:])
        public.verify(encode_dss_signature(*numbers), signed.encode(), ec.ECDSA(hashes.SHA256()))
    except (ValueError, InvalidSignature, RecursionError):
        raise RejectedSignatureError(Defect.SIGNATURE) from None
    return content if isinstance(content, dict) else {}


def _seconds(span: timedelta) -> float:
    return span.total_seconds()
