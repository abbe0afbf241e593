"""What the engine asks about people: one read for a whole batch."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from email_validator import EmailNotValidError, validate_email

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
        for name in (type_slug, category):
            wish = self.preferences.get(name)
            if wish and isinstance(wish, Mapping):
                return wish
        return {}


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
    """Return the suppressed ones among these (channel, address) pairs, each as it was given."""
    keys = {pair: suppression_key(*pair) for pair in addresses}
    if not keys:
        return {}
    found = {
        document["_id"]: Suppressed(
            reason=document["reason"], marketing_only=document["marketing_only"]
        )
        for document in collection("suppressions").find({"_id": {"$in": sorted({*keys.values()})}})
        if document.get("expires_at") is None or document["expires_at"] > now
    }
    return {pair: found[key] for pair, key in keys.items() if key in found}


def suppression_key(channel: str, address: str) -> str:
    """Return the id of a suppression.

    Mail addresses do not differ by case, nor by how a foreign domain is written: providers report
    of ``xn--bcher-kva.example`` what was asked for as ``bücher.example``.
    """
    plain = address.lower()
    if not plain.isascii():
        try:
            checked = validate_email(
                plain, check_deliverability=False, allow_smtputf8=False, test_environment=True
            )
        except EmailNotValidError:
            return f"{channel}:{plain}"
        plain = (checked.ascii_email or plain).lower()
    return f"{channel}:{plain}"


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
