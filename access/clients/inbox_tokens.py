"""Inbox tokens: what a person's browser or phone reads their own inbox with, for 15 minutes.

A client asks for one on behalf of a person and hands it to them. It is a JWT (HS256): whose inbox
it is stands in the token, so that no token is stored. What is stored is what no longer holds: one
token's end, or that all a person had are void, by the *epoch* every token carries.
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

from ..models import Scope

LIFETIME = timedelta(minutes=15)
ISSUER = "notifyproject"
AUDIENCE = "inbox"
ALGORITHM = "HS256"
MIN_KEY_BYTES = 32
"""RFC 7518, 3.2: a key of the size of the hash or larger."""
MAX_LENGTH = 4_096
"""A longer text is none of ours: a user id has 128 characters, of 12 in JSON each at most."""
CLOCK_SKEW = timedelta(minutes=1)
"""How far another web process's clock may be ahead."""
CLAIMS = ("iss", "aud", "sub", "client_id", "iat", "exp", "jti", "epoch")
_NONCE_LENGTH = 32
_TAG_LENGTH = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxUser:
    """A person whose token holds: they see one inbox, as one client fills it."""

    client_id: ObjectId
    user_id: str
    jti: str
    epoch: int
    expires_at: datetime
    is_test: bool = False
    """A client in test mode issued the token."""


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A new token. Its text is not kept anywhere."""

    text: str
    jti: str
    expires_at: datetime


def issue(*, client_id: ObjectId, user_id: str, now: datetime) -> IssuedToken:
    """Return a new token for a person's inbox at a client; raises PyMongoError."""
    revocation = collection("inbox_revocations").find_one(
        {"_id": _user_revocation_id(client_id, user_id)}
    )
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
    """Return whose token this is, if it is one of ours and holds; raises PyMongoError."""
    user = _decode(text, now)
    client = _valid_issuer(user, now) if user is not None else None
    if user is None or client is None:
        return None
    return replace(user, is_test=client.get("is_test", False))


def is_valid(user: InboxUser, *, now: datetime) -> bool:
    """Return whether a genuine token still holds; raises PyMongoError.

    It does until it runs out or is revoked, alone or with all others of the person, and while its
    client is switched on and may issue tokens.
    """
    return _valid_issuer(user, now) is not None


def revoke(*, client_id: ObjectId, jti: str, now: datetime) -> bool:
    """End one token of a client's; return False if it cannot be one. Twice is as good as once."""
    genuine = _jti(client_id, jti[:_NONCE_LENGTH])
    if not jti.isascii() or not hmac.compare_digest(jti, genuine):
        return False
    # It may outlive the token, by other clocks too; MongoDB forgets it soon after.
    expires_at = now + LIFETIME + 2 * CLOCK_SKEW
    collection("inbox_revocations").update_one(
        {"_id": _token_revocation_id(jti)}, {"$set": {"expires_at": expires_at}}, upsert=True
    )
    return True


def revoke_all(*, client_id: ObjectId, user_id: str) -> None:
    """End every token of a person at a client: the next ones are of another epoch."""
    collection("inbox_revocations").update_one(
        {"_id": _user_revocation_id(client_id, user_id)}, {"$inc": {"epoch": 1}}, upsert=True
    )


def revoke_everywhere(*, user_id: str) -> None:
    """End every token of a person, whichever client issued it; raises PyMongoError."""
    issuers = collection("api_clients").find(
        {"scopes": {"$in": [Scope.INBOX_ISSUE.value, Scope.ADMIN.value]}}, {"_id": 1}
    )
    for client in issuers:
        revoke_all(client_id=client["_id"], user_id=user_id)


def _valid_issuer(user: InboxUser, now: datetime) -> Mapping[str, Any] | None:
    """Return the client that issued a token, if the token still holds."""
    if user.expires_at <= now:
        return None
    client: Mapping[str, Any] | None = collection("api_clients").find_one(
        {"_id": user.client_id, "is_active": True}, {"scopes": 1, "is_test": 1}
    )
    if client is None or not {Scope.INBOX_ISSUE, Scope.ADMIN} & set(client["scopes"]):
        return None
    revocation_id = _user_revocation_id(user.client_id, user.user_id)
    revocations = collection("inbox_revocations").find(
        {"_id": {"$in": [_token_revocation_id(user.jti), revocation_id]}}
    )
    epochs = {end["_id"]: end.get("epoch") for end in revocations}
    is_valid = _token_revocation_id(user.jti) not in epochs and user.epoch >= (
        epochs.get(revocation_id) or 0
    )
    return client if is_valid else None


def _decode(text: str, now: datetime) -> InboxUser | None:
    """Return what a genuine token says that has not run out. Times are compared with ``now``."""
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
    return _user(claims, now)


def _user(claims: Mapping[str, Any], now: datetime) -> InboxUser | None:
    """Return the person of genuine claims; None if they are over, or not as we write them."""
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
    """Return a token's id: it proves whose it is, so that only its own client can revoke it."""
    signed = f"inbox token {nonce} of {client_id}".encode()
    tag = hmac.new(settings.INBOX_SIGNING_KEY.encode(), signed, hashlib.sha256)
    return nonce + tag.hexdigest()[:_TAG_LENGTH]


def _token_revocation_id(jti: str) -> str:
    return f"token:{jti}"


def _user_revocation_id(client_id: ObjectId, user_id: str) -> str:
    """Return the id of what is known of a person's tokens; it does not say who they are."""
    return f"person:{hashlib.sha256(f'{client_id}|{user_id}'.encode()).hexdigest()}"
