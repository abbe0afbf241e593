"""Inbox tokens: 15-minute JWTs (HS256) with which a recipient reads their own inbox.

Only revocations are stored. To revoke all of a recipient's tokens, the recipient's *epoch* is
increased: a token with an earlier epoch is invalid.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from bson import ObjectId
from django.conf import settings

from notifyproject.db.collections import collection

from ..documents import API_CLIENTS, INBOX_REVOCATIONS
from ..models import Scope

LIFETIME = timedelta(minutes=15)
ISSUER = "notifyproject"
AUDIENCE = "inbox"
ALGORITHM = "HS256"
MIN_KEY_BYTES = 32
"""RFC 7518, section 3.2: a key at least as long as the hash."""
MAX_LENGTH = 4_096
"""Maximum length of a token: each of 128 characters of a user ID takes up to 12 in JSON."""
CLOCK_SKEW = timedelta(minutes=1)
"""How far the clock of another web process may be ahead of this one's."""
CLAIMS = ("iss", "aud", "sub", "client_id", "iat", "exp", "jti", "epoch")
_NONCE_LENGTH = 32
_TAG_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxUser:
    """The holder of a valid token, who may use one recipient's inbox at one client."""

    client_id: ObjectId
    user_id: str
    jti: str
    epoch: int
    expires_at: datetime
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token. Its text is not stored."""

    text: str
    jti: str
    expires_at: datetime


def issue(*, client_id: ObjectId, user_id: str, now: datetime) -> IssuedToken:
    """Issue a token for a recipient's inbox at a client. Raises PyMongoError."""
    key = {"_id": _user_revocation_id(client_id, user_id)}
    revocation = INBOX_REVOCATIONS().find_one(key)
    issued_at = now.replace(microsecond=0)
    expires_at = issued_at + LIFETIME
    jti = _jti(client_id, secrets.token_hex(_NONCE_LENGTH // 2))
    claims = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": user_id,
        "client_id": str(client_id),
        "iat": int(issued_at.timestamp()),
        "exp": int(expires_at.timestamp()),
        "jti": jti,
        "epoch": revocation["epoch"] if revocation else 0,
    }
    text = jwt.encode(claims, settings.INBOX_SIGNING_KEY, algorithm=ALGORITHM)
    return IssuedToken(text, jti, expires_at)


def authenticate(text: str, *, now: datetime) -> InboxUser | None:
    """Return the holder of a valid token, or None for any other text. Raises PyMongoError."""
    user = _decode(text, now)
    if user is None or (client := _valid_issuer(user, now)) is None:
        return None
    return replace(user, is_test=client.get("is_test", False))


def is_valid(user: InboxUser, *, now: datetime) -> bool:
    """Return whether a token is unexpired, not revoked, and its client may still issue it."""
    return _valid_issuer(user, now) is not None


def revoke(*, client_id: ObjectId, jti: str, now: datetime) -> bool:
    """Revoke one token of a client. Return False for another client's token ID. Idempotent."""
    genuine = _jti(client_id, jti[:_NONCE_LENGTH])
    if not jti.isascii() or not hmac.compare_digest(jti, genuine):
        return False
    # The revocation outlives the token even on a skewed clock; MongoDB then deletes it.
    expires_at = now + LIFETIME + 2 * CLOCK_SKEW
    INBOX_REVOCATIONS().update_one(
        {"_id": _token_revocation_id(jti)}, {"$set": {"expires_at": expires_at}}, upsert=True
    )
    return True


def revoke_all(*, client_id: ObjectId, user_id: str) -> None:
    """Revoke all tokens of a recipient at a client by increasing the epoch."""
    key = {"_id": _user_revocation_id(client_id, user_id)}
    INBOX_REVOCATIONS().update_one(key, {"$inc": {"epoch": 1}}, upsert=True)


def revoke_everywhere(*, user_id: str) -> None:
    """Revoke all tokens of a recipient at every client. Raises PyMongoError."""
    wanted = {"scopes": {"$in": [Scope.INBOX_ISSUE.value, Scope.ADMIN.value]}}
    for client in API_CLIENTS().find(wanted, {"_id": 1}):
        revoke_all(client_id=client["_id"], user_id=user_id)


def _valid_issuer(user: InboxUser, now: datetime) -> Mapping[str, Any] | None:
    if user.expires_at <= now:
        return None
    of_token = _token_revocation_id(user.jti)
    of_user = _user_revocation_id(user.client_id, user.user_id)
    # One request: thousands of streams are checked every few seconds.
    stages: list[Mapping[str, Any]] = [
        {"$match": {"_id": user.client_id, "is_active": True}},
        {"$project": {"scopes": 1, "is_test": 1}},
        {
            "$unionWith": {
                "coll": INBOX_REVOCATIONS().name,
                "pipeline": [{"$match": {"_id": {"$in": [of_token, of_user]}}}],
            }
        },
    ]
    found = {client["_id"]: client for client in collection(API_CLIENTS.name).aggregate(stages)}
    client: Mapping[str, Any] | None = found.get(user.client_id)
    if client is None or not {Scope.INBOX_ISSUE, Scope.ADMIN} & set(client["scopes"]):
        return None
    is_revoked = of_token in found
    epoch = found.get(of_user, {}).get("epoch", 0)
    return None if is_revoked or user.epoch < epoch else client


def _decode(text: str, now: datetime) -> InboxUser | None:
    """Return the holder of a genuine, unexpired token, or None. Revocations aren't checked."""
    if len(text) > MAX_LENGTH or not text.isascii():
        return None
    try:
        claims = jwt.decode(
            text,
            settings.INBOX_SIGNING_KEY,
            algorithms=[ALGORITHM],
            audience=AUDIENCE,
            issuer=ISSUER,
            options={
                "require": list(CLAIMS),
                "strict_aud": True,
                "verify_exp": False,
                "verify_iat": False,
                "verify_nbf": False,
                "enforce_minimum_key_length": True,
            },
        )
    except jwt.PyJWTError:
        return None
    numbers = [claims[name] for name in ("iat", "exp", "epoch")]
    if not all(type(number) is int and 0 <= number < 2**40 for number in numbers):
        return None
    issued_at, expires_at = (datetime.fromtimestamp(n, UTC) for n in numbers[:2])
    is_well_formed = expires_at - issued_at <= LIFETIME and issued_at <= now + CLOCK_SKEW
    if not is_well_formed or expires_at <= now or not ObjectId.is_valid(claims["client_id"]):
        return None
    return InboxUser(
        client_id=ObjectId(claims["client_id"]),
        user_id=claims["sub"],
        jti=claims["jti"],
        epoch=claims["epoch"],
        expires_at=expires_at,
    )


def _jti(client_id: ObjectId, nonce: str) -> str:
    """Return a token ID with a MAC, so that a client can only revoke its own tokens."""
    signed = f"inbox token {nonce} of {client_id}".encode()
    tag = hmac.new(settings.INBOX_SIGNING_KEY.encode(), signed, hashlib.sha256)
    return nonce + tag.hexdigest()[:_TAG_LENGTH]


def _token_revocation_id(jti: str) -> str:
    return f"token:{jti}"


def _user_revocation_id(client_id: ObjectId, user_id: str) -> str:
    return f"person:{hashlib.sha256(f'{client_id}|{user_id}'.encode()).hexdigest()}"
