"""Signed access tokens with an expiry, which stay valid when the sandbox restarts."""

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

import msgspec
from cryptography.hazmat.primitives import serialization

from ...credentials import ServiceAccount

TOKEN_PREFIX = "ya29."
LIFETIME = timedelta(seconds=3599)


class TokenStatus(StrEnum):
    """The validity of an access token."""

    GOOD = "good"
    EXPIRED = "expired"
    UNKNOWN = "unknown"
    OUT_OF_SCOPE = "out of scope"


class _Contents(msgspec.Struct, array_like=True):
    ends: float
    scopes: list[str]
    nonce: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessTokens:
    """Issues, verifies, and revokes access tokens."""

    secret: bytes
    _revoked: set[str] = field(default_factory=set)

    @classmethod
    def from_account(cls, account: ServiceAccount) -> "AccessTokens":
        """Create with a signing secret that is derived from the account's private key."""
        der = account.private_key.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        return cls(secret=hashlib.sha256(der).digest())

    def issue(self, scopes: list[str], *, now: datetime, lifetime: timedelta) -> str:
        """Return a new access token."""
        ends = (now + lifetime).timestamp()
        contents = msgspec.json.encode(_Contents(ends, scopes, secrets.token_hex(8)))
        text = base64.urlsafe_b64encode(contents).decode()
        return f"{TOKEN_PREFIX}{text}.{self._signature(text)}"

    def revoke(self, token: str) -> None:
        """Make a token count as expired from now on."""
        self._revoked.add(token)

    def status(self, token: str, *, scopes: frozenset[str], now: datetime) -> TokenStatus:
        """Return a token's validity. One of ``scopes`` is enough."""
        text, _, signature = token.removeprefix(TOKEN_PREFIX).partition(".")
        expected = self._signature(text)
        is_signed = hmac.compare_digest(expected.encode(), signature.encode())
        if not token.startswith(TOKEN_PREFIX) or not is_signed:
            return TokenStatus.UNKNOWN
        contents = msgspec.json.decode(base64.urlsafe_b64decode(text), type=_Contents)
        if token in self._revoked or datetime.fromtimestamp(contents.ends, UTC) <= now:
            return TokenStatus.EXPIRED
        is_in_scope = scopes.intersection(contents.scopes)
        return TokenStatus.GOOD if is_in_scope else TokenStatus.OUT_OF_SCOPE

    def _signature(self, text: str) -> str:
        digest = hmac.digest(self.secret, text.encode(errors="replace"), "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
