"""A worker's hold on a callback: one worker at a time calls a receiver, and notes how it does."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from bson import ObjectId

from notifyproject.db.collections import collection
from notifyproject.db.leases import unclaimed

from . import retry
from .messages import LEASE
from .standing import Standing
from .states import CallbackState

Document = Mapping[str, Any]
_KEPT = tuple(one.name for one in fields(Standing) if one.name != "is_gone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A callback that this worker, and no other, may call until the lease ends."""

    client_id: ObjectId
    token: str
    url: str
    secrets: tuple[Document, ...]
    """As they are kept."""
    standing: Standing


def take(client_id: ObjectId, *, now: datetime) -> Hold | None:
    """Take hold of a callback.

    None if it is switched off or gone, another worker has it, or it is left alone for now.
    """
    token = secrets.token_hex(16)
    before = collection("callbacks").find_one_and_update(
        {
            "_id": client_id,
            "state": CallbackState.ACTIVE.value,
            "$and": [
                unclaimed(now=now),
                {"$or": [{"open_until": None}, {"open_until": {"$lte": now}}]},
            ],
        },
        {"$set": {"claim": {"token": token, "lease_until": now + LEASE}}},
    )
    if before is None:
        return None
    known = {name: before.get(name) for name in _KEPT}
    return Hold(
        client_id=client_id,
        token=token,
        url=before["url"],
        secrets=tuple(before["secrets"]),
        standing=Standing(**{**known, "failures": before.get("failures", 0)}),
    )


def give_back(hold: Hold, standing: Standing, *, now: datetime) -> bool:
    """Let go of a callback and write how its receiver does; return whether it was still held.

    A receiver that the app has replaced meanwhile is not judged by what the old one did.
    """
    changes = {name: getattr(standing, name) for name in _KEPT}
    if standing.failures != hold.standing.failures or not standing.is_failing:
        changes["open_until"] = retry.open_until(failures=standing.failures, now=now)
    known = {name: value for name, value in changes.items() if value is not None}
    unknown = {name: "" for name, value in changes.items() if value is None}
    mine = {"_id": hold.client_id, "claim.token": hold.token}
    judged = collection("callbacks").update_one(
        {**mine, "url": hold.url}, {"$set": known, "$unset": {**unknown, "claim": ""}}
    )
    if judged.matched_count:
        return True
    freed = collection("callbacks").update_one(mine, {"$unset": {"claim": ""}})
    return freed.matched_count == 1


def is_free(callback: Document, *, now: datetime) -> bool:
    """Return whether a callback is called and no worker has hold of it."""
    claim = callback.get("claim")
    is_held = claim is not None and claim["lease_until"] > now
    return callback["state"] == CallbackState.ACTIVE and not is_held
