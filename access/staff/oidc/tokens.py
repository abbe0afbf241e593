"""Verification of the provider's tokens: ID tokens, and logout tokens of back-channel logout."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from django.conf import settings

from .discovery import Provider
from .errors import Refusal, RefusedError

ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Asymmetric only: neither ``none`` nor a secret that the client knows, too."""
LEEWAY = timedelta(seconds=30)
"""How far the provider's clock may be off."""
MAX_LOGOUT_AGE = timedelta(minutes=5)
"""Age at which a logout token is too old, so that its ID needs to be stored no longer."""
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"
MAX_LENGTH = 64 * 1024
MAX_SUBJECT = 255
MFA = "mfa"
"""The value of ``amr`` for several factors: RFC 8176, section 2."""
Claims = Mapping[str, Any]
_REASONS: tuple[tuple[type[jwt.PyJWTError], Refusal], ...] = (
    (jwt.ExpiredSignatureError, Refusal.EXPIRED),
    (jwt.ImmatureSignatureError, Refusal.EXPIRED),
    (jwt.InvalidAudienceError, Refusal.AUDIENCE),
    (jwt.InvalidIssuerError, Refusal.ISSUER),
    (jwt.InvalidSignatureError, Refusal.SIGNATURE),
    (jwt.PyJWTError, Refusal.MALFORMED),
)
"""Reasons by exception class; the first match applies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The person whom a verified ID token is about."""

    subject: str
    claims: Claims
    session_id: str | None
    """The provider's session (``sid``)."""
    authenticated_at: datetime | None
    """When the person last authenticated at the provider; None if it doesn't say."""

    @property
    def has_second_factor(self) -> bool:
        """Whether the provider vouches for a second factor."""
        methods = self.claims.get("amr")
        is_listed = isinstance(methods, list) and MFA in methods
        return is_listed or self.claims.get("acr") in settings.OIDC_ACR_VALUES


@dataclass(frozen=True, slots=True, kw_only=True)
class Logout:
    """A verified logout token: whose sessions end."""

    token_id: str
    subject: str | None
    session_id: str | None
    expires_at: datetime
    """When the token is too old to be accepted again."""


def verify_id_token(text: str, *, provider: Provider, nonce: str | None) -> Identity:
    """Verify an ID token; ``nonce`` None is for a refreshed one.

    Raises RefusedError and UnavailableError.
    """
    claims = _verify(text, provider=provider, required=("iss", "aud", "sub", "iat", "exp"))
    subject, audiences, party = claims["sub"], claims["aud"], claims.get("azp")
    if not isinstance(subject, str) or not 0 < len(subject) <= MAX_SUBJECT:
        raise RefusedError(Refusal.MALFORMED, "sub")
    is_several = isinstance(audiences, list) and len(audiences) > 1
    if party != settings.OIDC_CLIENT_ID and (party is not None or is_several):
        raise RefusedError(Refusal.AUDIENCE, "azp")
    if nonce is not None and claims.get("nonce") != nonce:
        raise RefusedError(Refusal.NONCE)
    return Identity(
        subject=subject,
        claims=claims,
        session_id=_text(claims.get("sid")),
        authenticated_at=_time(claims.get("auth_time")),
    )


def verify_logout_token(text: str, *, provider: Provider, now: datetime) -> Logout:
    """Verify a logout token. Raises RefusedError and UnavailableError."""
    claims = _verify(text, provider=provider, required=("iss", "aud", "iat", "jti"))
    events = claims.get("events")
    event = events.get(LOGOUT_EVENT) if isinstance(events, dict) else None
    # A nonce would make an ID token pass for a logout token.
    if not isinstance(event, dict) or "nonce" in claims:
        raise RefusedError(Refusal.MALFORMED, "not a logout token")
    issued_at, token_id = _time(claims["iat"]), _text(claims["jti"])
    subject, session_id = _text(claims.get("sub")), _text(claims.get("sid"))
    if issued_at is None or token_id is None or (subject is None and session_id is None):
        raise RefusedError(Refusal.MALFORMED, "iat, jti, sub, or sid")
    expires_at = issued_at + MAX_LOGOUT_AGE
    if expires_at <= now:
        raise RefusedError(Refusal.EXPIRED, "iat")
    return Logout(
        token_id=token_id,
        subject=subject,
        session_id=session_id,
        # It is accepted again for as long as its iat may be ahead of this clock.
        expires_at=expires_at + LEEWAY,
    )


def _verify(text: str, *, provider: Provider, required: tuple[str, ...]) -> Claims:
    if len(text) > MAX_LENGTH:
        raise RefusedError(Refusal.MALFORMED, "too long")
    try:
        header = jwt.get_unverified_header(text)
        if header.get("alg") not in ALGORITHMS:
            raise RefusedError(Refusal.SIGNATURE, "algorithm")
        claims: Claims = jwt.decode(
            text,
            provider.signing_key(header),
            algorithms=[header["alg"]],
            audience=settings.OIDC_CLIENT_ID,
            issuer=provider.issuer,
            leeway=LEEWAY,
            options={"require": list(required)},
        )
    except jwt.PyJWTError as error:
        reason = next(reason for kind, reason in _REASONS if isinstance(error, kind))
        raise RefusedError(reason, type(error).__name__) from error
    return claims


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and 0 < len(value) <= MAX_SUBJECT else None


def _time(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (OverflowError, ValueError, OSError):
        return None
