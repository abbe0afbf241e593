"""What is true today of the people, addresses and devices that deliveries were for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId

from devices import preferences as wishes
from devices import queries as devices
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import AttemptStatus, Category, Channel, DeliveryStatus, Priority
from notifyproject.db.collections import collection
from providers.registry import is_configured
from recipients import queries as recipients
from recipients import service_windows
from recipients.queries import KnownRecipient, Suppressed

from ..catalog import types
from ..content import rendering
from ..store import Document, is_content_removed, is_secret_expired, recipient_of
from .risk import DeliveryFacts, ResendRisk, assess_risk

BATCH = 100
"""Notifications whose surroundings are read at once."""
F = FailureCode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What is true today of the people and addresses of a batch."""

    people: Mapping[str, KnownRecipient]
    suppressed: Mapping[tuple[str, str], Suppressed]
    targets: devices.Targets
    open_windows: frozenset[str]
    in_doubt: frozenset[tuple[ObjectId, str]]
    """Notifications and channels with an attempt of which nobody knows the outcome."""
    refused: Mapping[ObjectId, set[str]]
    """Devices whose tokens the provider did not take."""


def assess_risks(
    documents: Sequence[Document], *, now: datetime
) -> dict[tuple[ObjectId, Channel], ResendRisk]:
    """Return the verdict on every delivery of these notifications, by id and channel.

    ``documents`` are whole ones. For each hundred of them, five reads at most, each by an index.
    Raises PyMongoError.
    """
    found: dict[tuple[ObjectId, Channel], ResendRisk] = {}
    for start in range(0, len(documents), BATCH):
        some = documents[start : start + BATCH]
        around = _read_context(some, now=now)
        for document in some:
            for delivery in document["delivery"]:
                facts = _facts(document, delivery, around, now=now)
                found[(document["_id"], facts.channel)] = assess_risk(facts)
    return found


def _read_context(documents: Sequence[Document], *, now: datetime) -> _Context:
    whom = [recipient_of(document) for document in documents]
    channels = {delivery["channel"] for one in documents for delivery in one["delivery"]}
    pairs = {(c, a) for one in whom for c in channels if (a := one.address(Channel(c)))}
    pushes = [d for d in documents if Channel.PUSH.value in d["channels"]]
    device_ids = [one for d in pushes for one in d["recipient"].get("device_ids", ())]
    users = [
        d["user_id"] for d in pushes if d.get("user_id") and not d["recipient"].get("device_ids")
    ]
    phones = [one.phone for one in whom if one.phone] if Channel.WHATSAPP in channels else []
    in_doubt, refused = _attempts([document["_id"] for document in documents])
    return _Context(
        people=recipients.known(d["user_id"] for d in documents if d.get("user_id")),
        suppressed=recipients.suppressed(pairs, now=now),
        targets=devices.targets(user_ids=users, device_ids=device_ids),
        open_windows=service_windows.open_windows(phones, now=now),
        in_doubt=in_doubt,
        refused=refused,
    )


def _attempts(
    ids: Sequence[ObjectId],
) -> tuple[frozenset[tuple[ObjectId, str]], Mapping[ObjectId, set[str]]]:
    """Return the channels in doubt, and the devices that were no good."""
    told = [AttemptStatus.UNKNOWN.value, AttemptStatus.FAILED.value]
    found = collection("delivery_attempts").find(
        {"notification_id": {"$in": list(ids)}, "status": {"$in": told}},
        {"notification_id": 1, "channel": 1, "status": 1, "device_id": 1, "error_code": 1},
    )
    in_doubt: set[tuple[ObjectId, str]] = set()
    refused: dict[ObjectId, set[str]] = {}
    for row in found:
        if row["status"] == AttemptStatus.UNKNOWN:
            in_doubt.add((row["notification_id"], row["channel"]))
        elif row.get("device_id") and row.get("error_code") == F.INVALID_RECIPIENT:
            refused.setdefault(row["notification_id"], set()).add(row["device_id"])
    return frozenset(in_doubt), refused


def _facts(
    document: Document, delivery: Mapping[str, Any], around: _Context, *, now: datetime
) -> DeliveryFacts:
    channel, whom = Channel(delivery["channel"]), recipient_of(document)
    expires_at = document.get("expires_at")
    took = delivery.get("accepted_targets") or delivery.get("doubtful_targets")
    return DeliveryFacts(
        channel=channel,
        status=DeliveryStatus(delivery["status"]),
        code=delivery.get("failure_code"),
        may_have_it=bool(took) or (document["_id"], channel.value) in around.in_doubt,
        is_over=expires_at is not None and expires_at <= now,
        is_erased=document.get("erased_at") is not None,
        is_secret_gone=is_secret_expired(document),
        is_content_removed=is_content_removed(document),
        held_back=_suppressed(document, channel, whom, around),
        can_reach=_can_reach(document, delivery, whom, around),
        has_provider=is_configured(channel, test=document.get("is_test", False)),
        may_write=channel is not Channel.WHATSAPP
        or whom.phone in around.open_windows
        or _is_approved(document, whom),
    )


def _suppressed(
    document: Document, channel: Channel, whom: Recipient, around: _Context
) -> str | None:
    is_marketing = document["category"] == Category.MARKETING
    found = around.suppressed.get((channel.value, whom.address(channel) or ""))
    if found is not None and (is_marketing or not found.marketing_only):
        return f"The address is suppressed: {found.reason.replace('_', ' ')}."
    person = around.people.get(document.get("user_id") or "")
    kind = types.find_type(document["type"])
    if person is None or (kind is not None and kind.priority is Priority.CRITICAL):
        return None
    wish = person.wish(type_slug=document["type"], category=document["category"])
    if wish.muted or channel.value in wish.muted_channels:
        return "The person has muted this kind of message."
    return None


def _can_reach(
    document: Document, delivery: Mapping[str, Any], whom: Recipient, around: _Context
) -> bool:
    channel = Channel(delivery["channel"])
    if channel is Channel.IN_APP:
        return bool(document.get("user_id"))
    if channel is not Channel.PUSH:
        # A resend goes to the same address: one the provider does not take stays one.
        return bool(whom.address(channel)) and delivery.get("failure_code") != F.INVALID_RECIPIENT
    refused = around.refused.get(document["_id"], set())
    own = around.targets.of(user_id=document.get("user_id"), device_ids=whom.device_ids)
    return any(
        one.device_id not in refused
        and wishes.allows(
            one.preferences,
            category=document["category"],
            type_slug=document["type"],
            priority=document["priority"],
        )
        for one in own
    )


def _is_approved(document: Document, whom: Recipient) -> bool:
    kind = types.find_type(document["type"])
    wordings = kind.approved if kind else ()
    return (
        rendering.choose_whatsapp_template(wordings, locale=whom.locale, data=document["data"])
        is not None
    )
