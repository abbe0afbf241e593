"""Reads recipients, preferences, and suppressions in batches, and decides what is not sent."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from domain.channels import ROOM, Channel, address_key
from domain.errors import FailureCode
from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page
from notifyproject.db.trips import find_few, find_in_several
from notifyproject.platform import cache

from .documents import (
    RECIPIENTS,
    SUPPRESSIONS,
    PersonalQuietHoursDocument,
    RecipientDocument,
    StoredPreference,
    SuppressionDocument,
)
from .models import SuppressionReason
from .preferences import NO_PREFERENCE, Preference, preference_for
from .suppressions import is_active, is_category_blocked, suppression_keys

Address = tuple[str, str]
"""A channel and an address."""
FEW_ADDRESSES = 4
"""Addresses of one recipient; their suppressions fit into one response."""
STRICTEST_FIRST = [
    SuppressionReason.COMPLAINT.value,
    SuppressionReason.HARD_BOUNCE.value,
    SuppressionReason.MANUAL.value,
    SuppressionReason.UNSUBSCRIBED.value,
]
"""Order in which one of several equally strict reasons is chosen for display."""
BY_USER_ID = (("_id", 1),)
MUTED = "The recipient muted this type."
MUTED_ON_CHANNEL = "The recipient muted this type on this channel."


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredRecipient:
    """A registered recipient."""

    user_id: str
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    preferences: Mapping[str, StoredPreference]
    quiet_hours: PersonalQuietHoursDocument | None = None

    def address(self, channel: Channel) -> str | None:
        """Return the address for a channel, None for a channel without addresses."""
        kind = channel.spec.address
        return getattr(self, kind.field) if kind and channel.is_personal else None

    def preference(self, *, type_slug: str, category: str, is_locked: bool) -> Preference:
        """Return the preference for a type, as :func:`preferences.preference_for` does.

        None applies to a locked type: not its category's, and not one from before it was locked.
        """
        # Whoever has an inbox token writes preferences. They must not decide where a login code
        # goes, not even among the type's channels: a device that doesn't exist is one of them.
        if is_locked:
            return NO_PREFERENCE
        return preference_for(self.preferences, type_slug=type_slug, category=category)

    def own_quiet_hours(self, *, is_locked: bool) -> PersonalQuietHoursDocument | None:
        """Return the stored quiet hours for a type. None apply to a locked type."""
        return None if is_locked else self.quiet_hours


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveSuppression:
    """The strictest unexpired suppression of an address."""

    reason: str
    marketing_only: bool


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a message isn't sent to a recipient."""

    code: FailureCode
    """OPTED_OUT for the recipient's own preference, SUPPRESSED for the address."""
    reason: str
    """A sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipientSnapshot:
    """The registered recipients and suppressed addresses of a batch of notifications."""

    registered: Mapping[str, RegisteredRecipient]  # By user ID
    suppressed: Mapping[tuple[str, str], ActiveSuppression]  # By channel and address
    device_users: Mapping[str, str] = field(default_factory=dict)
    """By device ID: the user of each device that the notifications name."""
    suspected: frozenset[tuple[str, str]] = frozenset()
    """By channel and address: those with soft bounces, if they were asked for."""

    def refusal_of(
        self,
        *,
        user_id: str | None,
        channel: str,
        address: str | None,
        type_slug: str,
        category: str,
        is_locked: bool,
    ) -> Refusal | None:
        """Return why a message isn't sent on a channel, or None.

        The recipient's preference comes first: it also applies without an address. None applies
        to a room.
        """
        if channel == ROOM:
            return None
        if (recipient := self.registered.get(user_id or "")) is not None:
            preference = recipient.preference(
                type_slug=type_slug, category=category, is_locked=is_locked
            )
            if preference.muted:
                return Refusal(FailureCode.OPTED_OUT, MUTED)
            if channel in preference.muted_channels:
                return Refusal(FailureCode.OPTED_OUT, MUTED_ON_CHANNEL)
        found = self.suppressed.get((channel, address or ""))
        if found is None or not is_category_blocked(category, marketing_only=found.marketing_only):
            return None
        reason = f"The address is suppressed: {found.reason.replace('_', ' ')}."
        return Refusal(FailureCode.SUPPRESSED, reason)


def load_snapshot(
    user_ids: Iterable[str],
    addresses: Iterable[tuple[str, str]],
    *,
    now: datetime,
    with_soft_bounces: bool = False,
) -> RecipientSnapshot:
    """Read the recipients and suppressions of a batch, and soft bounces. Raises PyMongoError."""
    ids, keys = sorted(set(user_ids)), _keys_of(addresses)
    of_addresses: dict[str, dict[str, Any]] = {}
    if keys:
        of_addresses["suppressions"] = _suppressions_filter(keys)
        if with_soft_bounces:
            suspects = sorted(address_key(*pair) for pair in keys)
            of_addresses["soft_bounces"] = {"_id": {"$in": suspects}}
    found: Mapping[str, Iterable[Any]]
    if len(ids) > 1 or len(keys) > FEW_ADDRESSES:
        registered = _registered(_read_recipients(ids))
        if with_soft_bounces and keys:
            most = _max_suppressions(keys) + len(keys)
            found = find_in_several(of_addresses, limit=most)
        else:
            found = {"suppressions": _read_suppressions(keys)}
    else:
        wanted = {"recipients": _recipients_filter(ids)} if ids else {}
        wanted |= of_addresses
        found = cache.find_in_several(wanted) if wanted else {}
        registered = _registered(found.get("recipients", ()))
    suspected = {bounce["_id"] for bounce in found.get("soft_bounces", ())}
    return RecipientSnapshot(
        registered=registered,
        suppressed=_suppressed(keys, found.get("suppressions", ()), now=now),
        suspected=frozenset(pair for pair in keys if suspected and address_key(*pair) in suspected),
    )


def find_registered(user_ids: Iterable[str]) -> dict[str, RegisteredRecipient]:
    """Return those of these recipients that are registered and active, by user ID."""
    return _registered(_read_recipients(sorted(set(user_ids))))


def _registered(documents: Iterable[RecipientDocument]) -> dict[str, RegisteredRecipient]:
    return {document["_id"]: _recipient(document) for document in documents}


def _recipients_filter(ids: Sequence[str]) -> dict[str, Any]:
    return {"_id": {"$in": ids}, "is_active": True}


def _read_recipients(ids: Sequence[str]) -> Iterable[RecipientDocument]:
    if not ids:
        return []
    if len(ids) == 1:
        return find_few(RECIPIENTS, _recipients_filter(ids), limit=1)
    return RECIPIENTS().find(_recipients_filter(ids))


def page(
    *,
    email: str | None = None,
    phone: str | None = None,
    limit: int,
    cursor: Cursor | None = None,
) -> Page[RecipientDocument]:
    """Return up to ``limit`` active recipients with these addresses, by user ID."""
    match: dict[str, Any] = {"is_active": True}
    if email is not None:
        match["email"] = email
    if phone is not None:
        match["phone"] = phone
    return paging.page(RECIPIENTS, match, order=BY_USER_ID, limit=limit, cursor=cursor)


def next_user_ids(*, after: str | None = None, limit: int) -> list[str]:
    """Return up to ``limit`` user IDs of active recipients, in order, after ``after``."""
    # A recipient registered meanwhile before that position is omitted; none is returned twice.
    match: dict[str, Any] = {"is_active": True}
    if after is not None:
        match["_id"] = {"$gt": after}
    found = RECIPIENTS().find(match, {"_id": 1}, batch_size=limit)
    return [document["_id"] for document in found.sort("_id", 1).limit(limit)]


def sample_user_ids(*, limit: int) -> list[str]:
    """Return the user IDs of up to ``limit`` random active recipients."""
    # $sample comes first: it then reads few documents of a large collection, and may repeat one.
    pipeline: list[Mapping[str, Any]] = [
        {"$sample": {"size": limit}},
        {"$match": {"is_active": True}},
        {"$project": {"_id": 1}},
    ]
    return list(
        {recipient["_id"]: None for recipient in collection(RECIPIENTS.name).aggregate(pipeline)}
    )


def find_suppressed(
    addresses: Iterable[tuple[str, str]], *, now: datetime
) -> dict[Address, ActiveSuppression]:
    """Return the suppressions of these (channel, address) pairs, by pair."""
    keys = _keys_of(addresses)
    return _suppressed(keys, _read_suppressions(keys), now=now)


def _keys_of(addresses: Iterable[Address]) -> dict[Address, list[str]]:
    return {pair: suppression_keys(*pair) for pair in addresses}


def _suppressions_filter(keys: Mapping[Address, Sequence[str]]) -> dict[str, Any]:
    return {"key": {"$in": sorted({key for some in keys.values() for key in some})}}


def _read_suppressions(keys: Mapping[Address, Sequence[str]]) -> Iterable[SuppressionDocument]:
    if not keys:
        return []
    wanted = _suppressions_filter(keys)
    if len(keys) <= FEW_ADDRESSES:
        return find_few(SUPPRESSIONS, wanted, limit=_max_suppressions(keys))
    return SUPPRESSIONS().find(wanted)


def _max_suppressions(keys: Mapping[Address, Sequence[str]]) -> int:
    return sum(map(len, keys.values())) * len(STRICTEST_FIRST)


def _suppressed(
    keys: Mapping[Address, Sequence[str]],
    documents: Iterable[SuppressionDocument],
    *,
    now: datetime,
) -> dict[Address, ActiveSuppression]:
    # Of several suppressions the strictest applies: one that isn't for marketing only.
    by_key: dict[str, list[SuppressionDocument]] = {}
    for document in documents:
        if is_active(document, now=now):
            by_key.setdefault(document["key"], []).append(document)
    if not by_key:
        return {}
    reasons = {
        pair: [document for key in some for document in by_key.get(key, ())]
        for pair, some in keys.items()
    }
    return {pair: _strictest(found) for pair, found in reasons.items() if found}


def _strictest(reasons: Iterable[SuppressionDocument]) -> ActiveSuppression:
    first = min(
        reasons,
        key=lambda suppression: (
            suppression["marketing_only"],
            STRICTEST_FIRST.index(suppression["reason"]),
        ),
    )
    return ActiveSuppression(reason=first["reason"], marketing_only=first["marketing_only"])


def _recipient(document: RecipientDocument) -> RegisteredRecipient:
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
