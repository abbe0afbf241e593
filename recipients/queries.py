"""What the engine asks about people: one read for a whole batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from notifyproject.db.collections import collection

from .models import SuppressionReason
from .preferences import Preference, preference_for
from .suppressions import suppression_key

STRICTEST_FIRST = [
    SuppressionReason.COMPLAINT.value,
    SuppressionReason.HARD_BOUNCE.value,
    SuppressionReason.MANUAL.value,
    SuppressionReason.UNSUBSCRIBED.value,
]
"""Which of several reasons that hold back the same is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredRecipient:
    """A registered person."""

    user_id: str
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    preferences: Mapping[str, Any]
    quiet_hours: Mapping[str, Any] | None = None

    def preference(self, *, type_slug: str, category: str) -> Preference:
        """Return what the person wants of a type: told of it, or else of its category."""
        return preference_for(self.preferences, type_slug=type_slug, category=category)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSuppression:
    """An address that gets nothing more, or no marketing."""

    reason: str
    marketing_only: bool


def find_registered(user_ids: Iterable[str]) -> dict[str, RegisteredRecipient]:
    """Return the registered and active people among these, by user id."""
    ids = sorted(set(user_ids))
    if not ids:
        return {}
    found = collection("recipients").find({"_id": {"$in": ids}, "is_active": True})
    return {document["_id"]: _recipient(document) for document in found}


def next_user_ids(*, after: str | None = None, limit: int) -> list[str]:
    """Return the next user ids of all registered and active people, behind the user id ``after``.

    Whoever is registered meanwhile before that place is passed over, and nobody comes twice.
    """
    match: dict[str, Any] = {"is_active": True}
    if after is not None:
        match["_id"] = {"$gt": after}
    found = collection("recipients").find(match, {"_id": 1}, batch_size=limit)
    return [document["_id"] for document in found.sort("_id", 1).limit(limit)]


def find_suppressed(
    addresses: Iterable[tuple[str, str]], *, now: datetime
) -> dict[tuple[str, str], ActiveSuppression]:
    """Return the suppressed ones among these (channel, address) pairs, each as it was given.

    Of several reasons the strictest holds: one that is not about marketing only.
    """
    keys = {pair: suppression_key(*pair) for pair in addresses}
    if not keys:
        return {}
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for document in collection("suppressions").find({"key": {"$in": sorted({*keys.values()})}}):
        if document.get("expires_at") is None or document["expires_at"] > now:
            reasons.setdefault(document["key"], []).append(document)
    return {pair: _strictest(reasons[key]) for pair, key in keys.items() if key in reasons}


def _strictest(reasons: Iterable[Mapping[str, Any]]) -> ActiveSuppression:
    first = min(
        reasons, key=lambda one: (one["marketing_only"], STRICTEST_FIRST.index(one["reason"]))
    )
    return ActiveSuppression(reason=first["reason"], marketing_only=first["marketing_only"])


def _recipient(document: Mapping[str, Any]) -> RegisteredRecipient:
    return RegisteredRecipient(
        user_id=document["_id"],
        email=document.get("email"),
        phone=document.get("phone"),
        name=document.get("name"),
        locale=document.get("locale"),
        timezone=document.get("timezone"),
        preferences=document.get("preferences") or {},
        quiet_hours=document.get("quiet_hours"),
    )
