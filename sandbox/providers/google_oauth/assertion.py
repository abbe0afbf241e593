"""A service account's assertion: a JWT, verified as Google does."""

import base64
import re
from datetime import datetime
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

from ...credentials import ServiceAccount

AUDIENCE = "https://oauth2.googleapis.com/token"
MAX_LIFETIME = 3600
"""Seconds from ``iat`` to ``exp``."""
MAX_CLOCK_SKEW = 300
"""Seconds by which a client's clock may be ahead."""
PARTS = 3
_SCOPE = re.compile(r"https://www\.googleapis\.com/auth/[a-z0-9._-]+|openid|email|profile")
_BAD_LIFETIME = (
    "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. "
    "Check your iat and exp values in the JWT claim."
)


class TokenRequestError(Exception):
    """The token endpoint refuses a request, with an OAuth error code."""

    def __init__(self, error: str, description: str, *, status: int = 400) -> None:
        super().__init__(description)
        self.error = error
        self.status = status


def decode_unverified(assertion: str) -> dict[str, Any]:
    """Return an assertion's claims without verification; empty if unreadable."""
    parts = assertion.split(".")
    return (_object(parts[1]) if len(parts) == PARTS else None) or {}


def verify(assertion: str, *, account: ServiceAccount, endpoint: str, now: datetime) -> list[str]:
    """Verify an assertion and return its scopes. Raises TokenRequestError."""
    parts = assertion.split(".")
    header = _object(parts[0]) if len(parts) == PARTS else None
    claims = _object(parts[1]) if header is not None else None
    if header is None or claims is None:
        text = "Invalid JWT: the assertion is not a JSON Web Token."
        raise TokenRequestError("invalid_grant", text)
    email = account.file.client_email
    if claims.get("iss") != email:
        raise TokenRequestError("invalid_grant", "Invalid grant: account not found")
    _check_signature(parts, header, account=account)
    if claims.get("aud") not in (AUDIENCE, endpoint):
        text = f"Invalid JWT: Failed audience check. The right audience is {endpoint}"
        raise TokenRequestError("invalid_grant", text)
    _check_times(claims, now=now)
    if claims.get("sub", email) != email:
        raise TokenRequestError(
            "unauthorized_client",
            "Client is unauthorized to retrieve access tokens using this method, or client not "
            "authorized for any of the scopes requested.",
            status=401,
        )
    return _scopes(claims)


def _check_signature(parts: list[str], header: Any, *, account: ServiceAccount) -> None:
    refused = TokenRequestError("invalid_grant", "Invalid JWT Signature.")
    key_id = account.file.private_key_id
    if header.get("alg") != "RS256" or header.get("kid", key_id) != key_id:
        raise refused
    try:
        account.private_key.public_key().verify(
            _bytes(parts[2]), f"{parts[0]}.{parts[1]}".encode(), padding.PKCS1v15(), hashes.SHA256()
        )
    except (InvalidSignature, ValueError):
        raise refused from None


def _check_times(claims: dict[str, Any], *, now: datetime) -> None:
    issued, expires = claims.get("iat"), claims.get("exp")
    moment = now.timestamp()
    if (
        not isinstance(issued, int)
        or not isinstance(expires, int)
        or expires <= moment
        or issued > moment + MAX_CLOCK_SKEW
        or expires - issued > MAX_LIFETIME
    ):
        raise TokenRequestError("invalid_grant", _BAD_LIFETIME)


def _scopes(claims: dict[str, Any]) -> list[str]:
    scope = claims.get("scope")
    scopes = scope.split() if isinstance(scope, str) else []
    if not scopes or not all(map(_SCOPE.fullmatch, scopes)):
        text = "Invalid OAuth scope or ID token audience provided."
        raise TokenRequestError("invalid_scope", text)
    return scopes


def _object(part: str) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(_bytes(part))
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _bytes(part: str) -> bytes:
    """Decode base64url without padding. Raises ValueError."""
    padded = part.encode("ascii") + b"=" * (-len(part) % 4)
    return base64.b64decode(padded, altchars=b"-_", validate=True)
