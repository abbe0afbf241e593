"""API clients, the system client, and API keys: ``ntf_<prefix>_<secret>`` or ``ntf_test_…``."""

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from notifyproject.platform.cache import SharedCache

from ..documents import API_CLIENTS, APIClientDocument, APIKeyDocument
from ..models import Scope

KEY = re.compile(r"ntf_(test_)?([a-z0-9]{10})_([A-Za-z0-9_-]{43})", re.ASCII)
MAX_ACTIVE_KEYS = 2
"""Two keys let a client rotate its key without downtime."""
KEY_LIFETIME = timedelta(days=365)
"""Lifetime of a new key, unless its issuer names another or none."""
USE_RECORD_INTERVAL = timedelta(minutes=1)
INCLUDED_IN = {Scope.RECIPIENTS_READ: (Scope.RECIPIENTS_WRITE,)}
"""The scopes, besides admin, that include a scope."""
NOT_IN_ADMIN = frozenset({Scope.BROADCASTS_APPROVE, Scope.BROADCASTS_OVERRIDE})
"""Scopes that admin doesn't include."""
_PREFIX_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
SYSTEM_CLIENT = "this service"
CONSOLE_CLIENT = "console"
"""The client of what staff send."""


class TakenNameError(ValueError):
    """A client of somebody else has the name of one of this service."""


class TooManyKeysError(ValueError):
    """The client already has MAX_ACTIVE_KEYS active keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An authenticated API client."""

    id: ObjectId
    name: str
    scopes: frozenset[Scope]
    is_test: bool = False
    requires_approval: bool = False
    """Another person approves its broadcasts: its key says so."""

    def has_scope(self, scope: Scope) -> bool:
        """Return whether the client has a scope or one that includes it.

        ``admin`` includes all but those that it must be given besides.
        """
        including = {scope, *INCLUDED_IN.get(scope, ())}
        if scope not in NOT_IN_ADMIN:
            including.add(Scope.ADMIN)
        return not self.scopes.isdisjoint(including)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key. Its text is not stored, so it can't be shown again."""

    text: str
    prefix: str


def create_client(
    *, name: str, scopes: list[Scope], is_test: bool = False, now: datetime
) -> ObjectId:
    """Store a client without keys and return its ID. Raises DuplicateKeyError for a known name."""
    document: APIClientDocument = {
        "_id": ObjectId(),
        "name": name,
        "scopes": [scope.value for scope in scopes],
        "is_test": is_test,
        "is_active": True,
        "keys": [],
        "created_at": now,
    }
    API_CLIENTS().insert_one(document)
    return document["_id"]


def change_client(
    *,
    client_id: ObjectId,
    name: str | None = None,
    scopes: Sequence[Scope] | None = None,
    is_active: bool | None = None,
) -> None:
    """Change the given fields of a client; its keys stay.

    Raises DuplicateKeyError for a known name.
    """
    given = {
        "name": name,
        "scopes": None if scopes is None else [Scope(scope).value for scope in scopes],
        "is_active": is_active,
    }
    changes = {field: value for field, value in given.items() if value is not None}
    if not changes:
        return
    API_CLIENTS().update_one({"_id": client_id}, {"$set": changes})
    _clients_by_prefix.invalidate()


def find_client(name: str) -> ObjectId | None:
    """Return the ID of the client with this name, or None."""
    document = API_CLIENTS().find_one({"name": name}, {"_id": 1})
    return document["_id"] if document else None


def names(*, limit: int) -> dict[ObjectId, str]:
    """Return the names of the oldest clients by ID, up to ``limit``."""
    found = API_CLIENTS().find({}, {"name": 1}).sort("_id", 1).limit(limit)
    return {document["_id"]: document["name"] for document in found}


def issue_key(
    *,
    client_id: ObjectId,
    now: datetime,
    lifetime: timedelta | None = KEY_LIFETIME,
    requires_approval: bool = False,
) -> IssuedKey:
    """Add a key to a client. ``lifetime`` None: it never expires.

    ``requires_approval``: another person approves each broadcast that is created with it.
    Raises TooManyKeysError, or LookupError for an unknown client.
    """
    clients = API_CLIENTS()
    client = clients.find_one({"_id": client_id})
    if client is None:
        raise LookupError("no such client")
    if sum(is_active(key, now) for key in client["keys"]) >= MAX_ACTIVE_KEYS:
        raise TooManyKeysError(f"The client has {MAX_ACTIVE_KEYS} active keys: revoke one first.")
    prefix = "".join(secrets.choice(_PREFIX_ALPHABET) for _ in range(10))
    secret = secrets.token_urlsafe(32)
    key: dict[str, Any] = {"prefix": prefix, "secret_hash": hash_secret(secret), "created_at": now}
    if lifetime is not None:
        key["expires_at"] = now + lifetime
    if requires_approval:
        key["requires_approval"] = True
    # Compare-and-set: a concurrent change of the list makes this a retry.
    unchanged = {"_id": client_id, "keys": client["keys"]}
    if not clients.update_one(unchanged, {"$push": {"keys": key}}).modified_count:
        return issue_key(
            client_id=client_id, now=now, lifetime=lifetime, requires_approval=requires_approval
        )
    _clients_by_prefix.invalidate()
    is_test = client.get("is_test", False)
    return IssuedKey(text=f"{_public_part(prefix, is_test)}_{secret}", prefix=prefix)


def mask_key(prefix: str, *, is_test: bool) -> str:
    """Return the part of a key to display."""
    return f"{_public_part(prefix, is_test)}…"


def revoke_key(*, prefix: str, now: datetime) -> bool:
    """Revoke a key. Return False if it is unknown or already revoked."""
    result = API_CLIENTS().update_one(
        {"keys": {"$elemMatch": {"prefix": prefix, "revoked_at": None}}},
        {"$set": {"keys.$.revoked_at": now}},
    )
    _clients_by_prefix.invalidate()
    return result.modified_count == 1


def revoke_all_keys(*, client_id: ObjectId, now: datetime) -> None:
    """Revoke every key of a client."""
    API_CLIENTS().update_one(
        {"_id": client_id},
        {"$set": {"keys.$[key].revoked_at": now}},
        array_filters=[{"key.revoked_at": None}],
    )
    _clients_by_prefix.invalidate()


def authenticate(text: str, *, now: datetime) -> Client | None:
    """Return the client whose active key this is, or None."""
    match = KEY.fullmatch(text)
    if match is None:
        return None
    is_test, prefix, secret = match[1] is not None, match[2], match[3]
    document = _clients_by_prefix.get().get(prefix)
    if document is None or document.get("is_test", False) is not is_test:
        return None
    key = next(k for k in document["keys"] if k["prefix"] == prefix)
    genuine = hmac.compare_digest(key["secret_hash"], hash_secret(secret))
    if not genuine or not is_active(key, now):
        return None
    _record_use(key, now)
    return Client(
        id=document["_id"],
        name=document["name"],
        # A newer release may have stored a scope that this one doesn't know.
        scopes=frozenset(scope for scope in Scope if scope in document["scopes"]),
        is_test=is_test,
        requires_approval=key.get("requires_approval", False),
    )


def _record_use(key: APIKeyDocument, now: datetime) -> None:
    prefix, stored = key["prefix"], key.get("last_used_at")
    last_used_at = _uses.get(prefix, stored)
    if last_used_at is None or now - last_used_at > USE_RECORD_INTERVAL:
        _uses[prefix] = now
        API_CLIENTS().update_one({"keys.prefix": prefix}, {"$set": {"keys.$.last_used_at": now}})


def _load_clients() -> dict[str, APIClientDocument]:
    active = API_CLIENTS().find({"is_active": True})
    return {key["prefix"]: document for document in active for key in document["keys"]}


_clients_by_prefix = SharedCache("api_clients", _load_clients)
"""Active clients by the prefix of each of their keys."""
_uses: dict[str, datetime] = {}
"""When this process last recorded a use of a key, by prefix."""


def is_active(key: APIKeyDocument, now: datetime) -> bool:
    """Return whether a stored key is neither revoked nor expired."""
    expires_at = key.get("expires_at")
    return key.get("revoked_at") is None and (expires_at is None or expires_at > now)


def access_ends_at(keys: Iterable[APIKeyDocument], *, now: datetime) -> datetime | None:
    """Return when the last of a client's active keys expires.

    None without an active key, and if one never expires. While a key is rotated, the new one lasts
    longer, so the old one's expiry is no concern.
    """
    active = [key for key in keys if is_active(key, now)]
    expiries = [key["expires_at"] for key in active if key.get("expires_at") is not None]
    return max(expiries, default=None) if len(expiries) == len(active) else None


def hash_secret(secret: str) -> str:
    """Return the hash of a secret for storage. A fast hash is safe for 256 random bits."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _public_part(prefix: str, is_test: bool) -> str:
    return f"ntf_test_{prefix}" if is_test else f"ntf_{prefix}"


def system_client_id(*, now: datetime) -> ObjectId:
    """Return the ID of the system client. It has no keys, and is created if missing."""
    return _own_client_id(SYSTEM_CLIENT, now=now)


def console_client_id(*, now: datetime) -> ObjectId:
    """Return the ID of the console's client. It has no keys, and is created if missing.

    Raises TakenNameError if a client with scopes has its name: with a key, it would read what staff
    send.
    """
    found = _own_client_id(CONSOLE_CLIENT, now=now)
    if API_CLIENTS().find_one({"_id": found, "scopes": {"$ne": []}}, {"_id": 1}):
        raise TakenNameError(CONSOLE_CLIENT)
    return found


def _own_client_id(name: str, *, now: datetime) -> ObjectId:
    if (found := find_client(name)) is not None:
        return found
    try:
        return create_client(name=name, scopes=[], now=now)
    except DuplicateKeyError:
        if (created_meanwhile := find_client(name)) is None:
            raise
        return created_meanwhile
