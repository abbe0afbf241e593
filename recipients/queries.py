"""What the engine asks about people: one read for a whole batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from notifyproject.db.collections import collection


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownRecipient:
    """A registered person."""

    user_id: str
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    preferences: Mapping[str, Any]
    quiet_hours: Mapping[str, Any] | None = None

    def preference(self, *, type_slug: str, category: str) -> Mapping[str, Any]:
        """Return what the person wants for a type, or else for its category; empty if nothing."""
        return self.preferences.get(type_slug) or self.preferences.get(category) or {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """An address that gets nothing more, or no marketing."""

    reason: str
    marketing_only: bool


def known(user_ids: Iterable[str]) -> dict[str, KnownRecipient]:
    """Return the registered and active people among these, by user id."""
    wanted = sorted(set(user_ids))
    if not wanted:
        return {}
    found = collection("recipients").find({"_id": {"$in": wanted}, "is_active": True})
    return {document["_id"]: _known(document) for document in found}


def suppressed(
    addresses: Iterable[tuple[str, str]], *, now: datetime
) -> dict[tuple[str, str], Suppressed]:
    """Return the suppressed ones among these (channel, address) pairs."""
    keys = {suppression_key(channel, address): (channel, address) for channel, address in addresses}
    if not keys:
        return {}
    found = collection("suppressions").find({"_id": {"$in": sorted(keys)}})
    return {
        keys[document["_id"]]: Suppressed(
            reason=document["reason"], marketing_only=document["marketing_only"]
        )
        for document in found
        if document.get("expires_at") is None or document["expires_at"] > now
    }


def suppression_key(channel: str, address: str) -> str:
    """Return the id of a suppression: mail addresses do not differ by case."""
    return f"{channel}:{address.lower()}"


def _known(document: Mapping[str, Any]) -> KnownRecipient:
    return KnownRecipient(
        user_id=document["_id"],
        email=document.get("email"),
        phone=document.get("phone"),
        name=document.get("name"),
        locale=document.get("locale"),
        timezone=document.get("timezone"),
        preferences=document.get("preferences") or {},
        quiet_hours=document.get("quiet_hours"),
    )
