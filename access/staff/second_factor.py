"""Second factor of staff: TOTP codes (RFC 6238) and recovery codes.

A code is consumed by compare-and-set: of two requests with the same code, one succeeds. TOTP keys
are stored encrypted, and recovery codes hashed.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Literal

import pyotp
from bson import ObjectId

from notifyproject.platform.encryption import DecryptionError, decrypt, encrypt, reencrypt

from ..documents import SECOND_FACTORS, SecondFactorDocument

ISSUER = "Notifications"
STEP = 30
"""Seconds per code. The previous and the next code are accepted, too, for clock skew."""
MAX_TRIES, TRY_WINDOW = 5, timedelta(minutes=15)
"""Codes that may be entered per window. At this rate, guessing six digits takes years."""
RECOVERY_CODES = 10
_RECOVERY_BYTES = 10
_NO_TRIES = {"tries": "", "tries_until": ""}


class CodeResult(StrEnum):
    """The result of checking a code."""

    RIGHT = "right"
    WRONG = "wrong"
    PAUSED = "paused"
    """Too many codes were entered, so this code wasn't checked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrollment:
    """A confirmed second factor."""

    enrolled_at: datetime
    """When it was confirmed; identifies the enrollment."""
    recovery_codes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEnrollment:
    """A secret TOTP key to set up in an authenticator app, not yet confirmed."""

    key: str
    uri: str


def enrollment_of(user_id: ObjectId) -> Enrollment | None:
    """Return a user's enrollment, or None without a second factor. Raises PyMongoError."""
    stored = _find(user_id, "encrypted_key")
    if stored is None:
        return None
    unused = len(stored["recovery_codes"])
    return Enrollment(enrolled_at=stored["enrolled_at"], recovery_codes=unused)


def begin_enrollment(user_id: ObjectId, *, name: str, now: datetime) -> PendingEnrollment:
    """Return a TOTP key to set up in an authenticator app, the same until it is confirmed."""
    key = _pending_key(user_id)
    if key is None:
        key = pyotp.random_base32()
        pending = {"pending_key": _encrypt(key, user_id), "invited_at": now}
        SECOND_FACTORS().update_one({"_id": user_id}, {"$set": pending}, upsert=True)
    uri = pyotp.TOTP(key).provisioning_uri(name=name, issuer_name=ISSUER)
    return PendingEnrollment(key=key, uri=uri)


def confirm(user_id: ObjectId, text: str, *, now: datetime) -> list[str] | None:
    """Activate the new key if ``text`` is its code. Return new recovery codes, or None."""
    if not _consume_try(user_id, now):
        return None
    key = _pending_key(user_id)
    step = None if key is None else _step_of(key, text, now)
    if key is None or step is None:
        return None
    codes = _new_codes()
    confirmed = {
        "encrypted_key": _encrypt(key, user_id),
        "last_step": step,
        "enrolled_at": now,
        "recovery_codes": [_hash_code(user_id, code) for code in codes],
    }
    removed = {"pending_key": "", "invited_at": "", **_NO_TRIES}
    SECOND_FACTORS().update_one({"_id": user_id}, {"$set": confirmed, "$unset": removed})
    return codes


def check(user_id: ObjectId, text: str, *, now: datetime) -> CodeResult:
    """Check and consume a TOTP or recovery code. Raises PyMongoError."""
    if not _consume_try(user_id, now):
        return CodeResult.PAUSED
    is_right = _consume_code(user_id, text, now) or _consume_recovery_code(user_id, text)
    return CodeResult.RIGHT if is_right else CodeResult.WRONG


def renew_recovery_codes(user_id: ObjectId) -> list[str]:
    """Replace the recovery codes. Return the new codes, which can't be shown again."""
    codes = _new_codes()
    SECOND_FACTORS().update_one(
        {"_id": user_id, "encrypted_key": {"$exists": True}},
        {"$set": {"recovery_codes": [_hash_code(user_id, code) for code in codes]}},
    )
    return codes


def remove(user_id: ObjectId) -> bool:
    """Remove a user's second factor, for example after a lost phone. Return whether it existed."""
    return SECOND_FACTORS().delete_one({"_id": user_id}).deleted_count == 1


def _consume_try(user_id: ObjectId, now: datetime) -> bool:
    is_expired = {"$lte": [{"$ifNull": ["$tries_until", now]}, now]}
    has_try = [{"tries": {"$not": {"$gte": MAX_TRIES}}}, {"tries_until": {"$lte": now}}]
    fields = {
        "tries": {"$cond": [is_expired, 1, {"$add": ["$tries", 1]}]},
        "tries_until": {"$cond": [is_expired, now + TRY_WINDOW, "$tries_until"]},
    }
    updated = SECOND_FACTORS().update_one({"_id": user_id, "$or": has_try}, [{"$set": fields}])
    return updated.matched_count == 1


def _consume_code(user_id: ObjectId, text: str, now: datetime) -> bool:
    stored = _find(user_id, "encrypted_key")
    key = _decrypted_key(stored, "encrypted_key", user_id)
    step = None if key is None else _step_of(key, text, now)
    if stored is None or key is None or step is None:
        return False
    updated = SECOND_FACTORS().update_one(
        {"_id": user_id, "encrypted_key": stored["encrypted_key"], "last_step": {"$lt": step}},
        {
            # Encrypted again, to migrate to the newest key.
            "$set": {"last_step": step, "encrypted_key": _encrypt(key, user_id)},
            "$unset": _NO_TRIES,
        },
    )
    return updated.modified_count == 1


def _consume_recovery_code(user_id: ObjectId, text: str) -> bool:
    code_hash = _hash_code(user_id, text)
    updated = SECOND_FACTORS().update_one(
        {"_id": user_id, "recovery_codes": code_hash},
        {"$pull": {"recovery_codes": code_hash}, "$unset": _NO_TRIES},
    )
    return updated.modified_count == 1


def encrypted_keys() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each stored TOTP key, and a function that re-encrypts it: False if it changed."""
    for document in SECOND_FACTORS().find({}, {"encrypted_key": 1, "pending_key": 1}):
        for name, stored in _keys(document).items():
            if stored is not None:
                yield stored, partial(_reencrypt, document["_id"], name, stored)


def _keys(document: SecondFactorDocument) -> dict[str, str | None]:
    return {
        "encrypted_key": document.get("encrypted_key"),
        "pending_key": document.get("pending_key"),
    }


def _reencrypt(user_id: ObjectId, name: str, stored: str) -> bool:
    changed = reencrypt(stored, associated_data=_associated_data(user_id))
    result = SECOND_FACTORS().update_one({"_id": user_id, name: stored}, {"$set": {name: changed}})
    return result.modified_count == 1


def _step_of(key: str, text: str, now: datetime) -> int | None:
    given = "".join(text.split())
    totp, present = pyotp.TOTP(key), int(now.timestamp()) // STEP
    for step in (present, present - 1, present + 1):
        if hmac.compare_digest(totp.generate_otp(step).encode(), given.encode()):
            return step
    return None


def _pending_key(user_id: ObjectId) -> str | None:
    return _decrypted_key(_find(user_id, "pending_key"), "pending_key", user_id)


def _find(user_id: ObjectId, name: str) -> SecondFactorDocument | None:
    return SECOND_FACTORS().find_one({"_id": user_id, name: {"$exists": True}})


def _encrypt(key: str, user_id: ObjectId) -> str:
    return encrypt(key.encode(), associated_data=_associated_data(user_id))


def _decrypted_key(
    stored: SecondFactorDocument | None,
    name: Literal["encrypted_key", "pending_key"],
    user_id: ObjectId,
) -> str | None:
    """Return a key, or None if it is missing or can't be decrypted. Recovery codes still work."""
    if stored is None:
        return None
    try:
        return decrypt(stored[name], associated_data=_associated_data(user_id)).decode()
    except DecryptionError:
        return None


def _new_codes() -> list[str]:
    texts = [
        base64.b32encode(secrets.token_bytes(_RECOVERY_BYTES)).decode().lower()
        for _ in range(RECOVERY_CODES)
    ]
    return ["-".join(text[start : start + 4] for start in range(0, 16, 4)) for text in texts]


def _hash_code(user_id: ObjectId, code: str) -> str:
    plain = "".join(code.split()).replace("-", "").lower()
    return hashlib.sha256(f"{user_id}:{plain}".encode()).hexdigest()


def _associated_data(user_id: ObjectId) -> str:
    return f"second factor:{user_id}"
