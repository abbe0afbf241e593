"""The keys that messages are signed with: sealed where they are kept, and two at a time at most.

Whoever replaces one has a day to tell their receiver: until then both sign.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from notifyproject.sealing import seal, unseal

OVERLAP = timedelta(hours=24)
"""How long a secret signs along after it was replaced."""
MOST = 5
"""Secrets that sign at the same time, each replaced by the next within a day."""


def sealed(secret: str, *, client_id: ObjectId, now: datetime) -> dict[str, Any]:
    """Return a new secret as it is kept; raises NothingToSealWith."""
    return {"sealed": seal(secret.encode(), about=_about(client_id)), "created_at": now}


def valid(secrets: Sequence[Mapping[str, Any]], *, client_id: ObjectId, now: datetime) -> list[str]:
    """Return the secrets that sign now, the newest first; raises SealBroken."""
    return [
        unseal(one["sealed"], about=_about(client_id)).decode()
        for one in secrets
        if one.get("until") is None or one["until"] > now
    ]


def _about(client_id: ObjectId) -> str:
    return f"callback:{client_id}"
