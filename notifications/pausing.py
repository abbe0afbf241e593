"""Providers that an operator has paused: nothing goes to them until somebody resumes them.

What would go there waits, untried, or goes to the channel's next provider; what is on its way ends
as it would. It stands in MongoDB, so that it outlives every restart, and holds from the next batch.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from notifyproject.db.collections import collection
from notifyproject.platform.cache import SharedCache

log = structlog.get_logger(__name__)

LOOK_AGAIN = timedelta(seconds=30)
"""What waits for a paused provider is looked at again after this long."""
REASON_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """Who paused a provider, when and why."""

    provider: str
    since: datetime
    by: str
    reason: str


def pause(provider: str, *, by: str, reason: str, now: datetime) -> bool:
    """Pause a provider; return False if it was paused already, and stays as it was."""
    changed = collection("provider_states").update_one(
        {"_id": provider},
        [
            {
                "$set": {
                    "paused_by": _unless_paused("paused_by", by),
                    "reason": _unless_paused("reason", reason[:REASON_LENGTH]),
                    "paused_at": {"$ifNull": ["$paused_at", now]},
                }
            }
        ],
        upsert=True,
    )
    _paused.invalidate()
    is_new = bool(changed.modified_count or changed.upserted_id)
    if is_new:
        log.warning("provider_paused", provider=provider, by=by)
    return is_new


def resume(provider: str, *, by: str) -> bool:
    """Let a provider be used again; return False if it was not paused."""
    changed = collection("provider_states").update_one(
        {"_id": provider, "paused_at": {"$ne": None}},
        {"$unset": {"paused_at": "", "paused_by": "", "reason": ""}},
    )
    _paused.invalidate()
    if changed.modified_count:
        log.warning("provider_resumed", provider=provider, by=by)
    return bool(changed.modified_count)


def pauses() -> dict[str, Pause]:
    """Return the providers that are paused, by name, as MongoDB has it."""
    found = collection("provider_states").find({"paused_at": {"$ne": None}})
    return {
        one["_id"]: Pause(
            provider=one["_id"],
            since=one["paused_at"],
            by=one.get("paused_by") or "",
            reason=one.get("reason") or "",
        )
        for one in found
    }


def held(providers: Iterable[str], *, now: datetime) -> Mapping[str, datetime]:
    """Return which of these providers are paused, and when to ask again."""
    paused = _paused.get()
    return {name: now + LOOK_AGAIN for name in providers if name in paused}


def _unless_paused(field: str, value: str) -> dict[str, list[object]]:
    """Return a field as it is while the provider is paused, and ``value`` otherwise."""
    is_paused = {"$gt": ["$paused_at", None]}
    return {"$cond": [is_paused, f"${field}", {"$literal": value}]}


def _names() -> frozenset[str]:
    return frozenset(pauses())


_paused = SharedCache("pauses", _names)
