"""Pauses of providers by staff. A paused provider gets no request, and its deliveries wait.

They are in MongoDB, so that they outlive Valkey. Each process reads them from a cache.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from notifications.documents.policies import PROVIDER_STATES
from notifyproject.platform.cache import SharedCache

log = structlog.get_logger(__name__)
PAUSE_CHECK_INTERVAL = timedelta(seconds=30)
"""Deferral of deliveries whose provider is paused."""
MAX_REASON_LENGTH = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A provider's pause by staff."""

    provider: str
    since: datetime
    by: str
    reason: str


def pause(provider: str, *, by: str, reason: str, now: datetime) -> bool:
    """Pause a provider. Return False, and change nothing, if it is already paused."""
    changes = {
        "paused_by": _keep_if_paused("paused_by", by),
        "reason": _keep_if_paused("reason", reason[:MAX_REASON_LENGTH]),
        "paused_at": {"$ifNull": ["$paused_at", now]},
    }
    changed = PROVIDER_STATES().update_one({"_id": provider}, [{"$set": changes}], upsert=True)
    _paused.invalidate()
    is_new = bool(changed.modified_count or changed.upserted_id)
    if is_new:
        log.warning("provider_paused", provider=provider, by=by)
    return is_new


def resume(provider: str, *, by: str) -> bool:
    """Resume a provider; return False if it was not paused."""
    changed = PROVIDER_STATES().update_one(
        {"_id": provider, "paused_at": {"$ne": None}},
        {"$unset": {"paused_at": "", "paused_by": "", "reason": ""}},
    )
    _paused.invalidate()
    if changed.modified_count:
        log.warning("provider_resumed", provider=provider, by=by)
    return bool(changed.modified_count)


def pauses() -> dict[str, Pause]:
    """Return the pauses by provider name, from MongoDB."""
    found = PROVIDER_STATES().find({"paused_at": {"$ne": None}})
    return {
        document["_id"]: Pause(
            provider=document["_id"],
            since=document["paused_at"],
            by=document.get("paused_by") or "",
            reason=document.get("reason") or "",
        )
        for document in found
    }


def paused_until(providers: Iterable[str], *, now: datetime) -> Mapping[str, datetime]:
    """Return the time until which to defer deliveries, for each of the providers that is paused."""
    paused = _paused.get()
    return {name: now + PAUSE_CHECK_INTERVAL for name in providers if name in paused}


def _keep_if_paused(field: str, value: str) -> dict[str, list[object]]:
    is_paused = {"$gt": ["$paused_at", None]}
    return {"$cond": [is_paused, f"${field}", {"$literal": value}]}


_paused = SharedCache("pauses", lambda: frozenset(pauses()))
