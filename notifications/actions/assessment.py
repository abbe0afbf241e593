"""Reads the facts for the resend risk of many notifications in a few queries."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId

from devices import preferences as device_preferences
from devices import queries as devices
from domain.channels import PUSH, Channel
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import OPEN, SUCCEEDED, AttemptStatus, DeliveryStatus
from notifications.documents.notification import (
    NOTIFICATIONS,
    DeliveryDocument,
    NotificationDocument,
)
from notifications.documents.records import DELIVERY_ATTEMPTS
from notifications.store.encrypted_content import is_secret_expired
from notifications.store.reading import content_of, recipient_of
from notifications.store.removal import is_content_removed
from providers.registry import is_configured
from recipients import queries as recipients
from recipients import service_windows
from recipients.queries import RecipientSnapshot
from rooms import registry as rooms

from ..catalog import types
from ..content import rendering
from .risk import DeliveryFacts, ResendRisk, assess_risk

BATCH = 100  # Notifications whose facts are read at once
MAX_RESEND_CHAIN = 10  # Resends of resends that are followed
F = FailureCode


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    snapshot: RecipientSnapshot
    targets: devices.PushTargets
    open_windows: frozenset[str]
    ambiguous: frozenset[tuple[ObjectId, str]]
    """Notification IDs and channels of attempts with an unknown outcome."""
    refused_devices: Mapping[ObjectId, set[str]]
    resent: frozenset[tuple[ObjectId, str]]
    """Notification IDs and channels of resends that are open or have succeeded."""


def assess_risks(
    documents: Sequence[NotificationDocument],
    *,
    ignored_resends: Collection[ObjectId] = (),
    corrected: Collection[Channel] = (),
    now: datetime,
) -> dict[tuple[ObjectId, Channel], ResendRisk]:
    """Return the resend risk of each of the documents' deliveries, by ID and channel.

    ``ignored_resends`` are the caller's own. On the ``corrected`` channels, the documents contain
    another address than the one that failed.
    """
    # Takes at most five indexed reads per 100 notifications, and one per generation of resends.
    found: dict[tuple[ObjectId, Channel], ResendRisk] = {}
    for start in range(0, len(documents), BATCH):
        batch = documents[start : start + BATCH]
        context = _read_context(batch, ignored_resends, now=now)
        for document in batch:
            for delivery in document["delivery"]:
                facts = _collect_facts(document, delivery, context, corrected, now=now)
                found[(document["_id"], facts.channel)] = assess_risk(facts)
    return found


def _read_context(
    documents: Sequence[NotificationDocument],
    ignored_resends: Collection[ObjectId],
    *,
    now: datetime,
) -> _Context:
    addressees = [recipient_of(document) for document in documents]
    channels = {delivery["channel"] for document in documents for delivery in document["delivery"]}
    pairs = {
        (c, a) for addressee in addressees for c in channels if (a := addressee.address(Channel(c)))
    }
    pushes = [d for d in documents if PUSH.value in d["channels"]]
    phones = [
        address
        for addressee in addressees
        for c in channels
        if Channel(c).spec.has_service_window and (address := addressee.address(Channel(c)))
    ]
    ambiguous, refused_devices = _read_attempts([document["_id"] for document in documents])
    return _Context(
        snapshot=recipients.load_snapshot(
            [d["user_id"] for d in documents if d.get("user_id")], pairs, now=now
        ),
        targets=read_push_targets(pushes),
        open_windows=service_windows.open_windows(phones, now=now),
        ambiguous=ambiguous,
        refused_devices=refused_devices,
        resent=_read_resends(documents, ignored_resends),
    )


def _read_resends(
    documents: Sequence[NotificationDocument], ignored: Collection[ObjectId]
) -> frozenset[tuple[ObjectId, str]]:
    resent: set[tuple[ObjectId, str]] = set()
    # By the resend's ID, the notification that it or an earlier resend of it repeats.
    originals = {resend_id: d["_id"] for d in documents for resend_id in d.get("resent_as", ())}
    for _ in range(MAX_RESEND_CHAIN):
        wanted = [original for original in originals if original not in ignored]
        if not wanted:
            break
        found = NOTIFICATIONS().find(
            {"_id": {"$in": wanted}},
            {"delivery.channel": 1, "delivery.status": 1, "resent_as": 1},
        )
        following: dict[ObjectId, ObjectId] = {}
        for resend in found:
            original = originals[resend["_id"]]
            following |= dict.fromkeys(resend.get("resent_as", ()), original)
            resent |= {
                (original, delivery["channel"])
                for delivery in resend["delivery"]
                if delivery["status"] in OPEN | SUCCEEDED
            }
        originals = following
    return frozenset(resent)


def _read_attempts(
    ids: Sequence[ObjectId],
) -> tuple[frozenset[tuple[ObjectId, str]], Mapping[ObjectId, set[str]]]:
    statuses = [AttemptStatus.UNKNOWN.value, AttemptStatus.FAILED.value]
    found = DELIVERY_ATTEMPTS().find(
        {"notification_id": {"$in": list(ids)}, "status": {"$in": statuses}},
        {"notification_id": 1, "channel": 1, "status": 1, "device_id": 1, "error_code": 1},
    )
    ambiguous: set[tuple[ObjectId, str]] = set()
    refused_devices: dict[ObjectId, set[str]] = {}
    for row in found:
        if row["status"] == AttemptStatus.UNKNOWN:
            ambiguous.add((row["notification_id"], row["channel"]))
        elif row.get("device_id") and row.get("error_code") == F.INVALID_RECIPIENT:
            refused_devices.setdefault(row["notification_id"], set()).add(row["device_id"])
    return frozenset(ambiguous), refused_devices


def _collect_facts(
    document: NotificationDocument,
    delivery: DeliveryDocument,
    context: _Context,
    corrected: Collection[Channel],
    *,
    now: datetime,
) -> DeliveryFacts:
    channel, recipient = Channel(delivery["channel"]), recipient_of(document)
    is_corrected = channel in corrected
    expires_at = document.get("expires_at")
    reached_targets = delivery.get("accepted_targets") or delivery.get("ambiguous_targets")
    return DeliveryFacts(
        channel=channel,
        status=DeliveryStatus(delivery["status"]),
        code=delivery.get("failure_code"),
        failure_reason=delivery.get("failure_reason"),
        may_be_delivered=bool(reached_targets)
        or (document["_id"], channel.value) in context.ambiguous,
        is_expired=expires_at is not None and expires_at <= now,
        is_erased=document.get("erased_at") is not None,
        is_deleted=document.get("deleted_at") is not None,
        is_sensitive_data_destroyed=is_secret_expired(document),
        is_content_removed=is_content_removed(document),
        suppression_reason=suppression_reason(document, channel, context.snapshot),
        is_resent=(document["_id"], channel.value) in context.resent,
        is_address_corrected=is_corrected,
        can_reach=is_corrected or _can_reach(document, delivery, recipient, context),
        has_provider=is_configured(channel, test=document.get("is_test", False)),
        is_whatsapp_allowed=not channel.spec.has_service_window
        or recipient.address(channel) in context.open_windows
        or _has_whatsapp_template(document, recipient),
    )


def suppression_reason(
    document: NotificationDocument,
    channel: Channel,
    snapshot: RecipientSnapshot,
    *,
    address: str | None = None,
) -> str | None:
    """Return why a suppression or preference blocks a channel of a notification, or None.

    The reason is a sentence. ``snapshot`` contains the notification's recipient and addresses.
    ``address`` is used if the notification has none.
    """
    refusal = snapshot.refusal_of(
        user_id=document.get("user_id"),
        channel=channel.value,
        address=recipient_of(document).address(channel) or address,
        type_slug=document["type"],
        category=document["category"],
        is_locked=is_locked(document),
    )
    return refusal.reason if refusal is not None else None


def is_locked(document: NotificationDocument) -> bool:
    """Return whether no preference of a recipient or device applies to a notification."""
    return types.is_locked(document["type"], document["content"].get("template_id"))


def _can_reach(
    document: NotificationDocument,
    delivery: DeliveryDocument,
    recipient: Recipient,
    context: _Context,
) -> bool:
    channel = Channel(delivery["channel"])
    refused = context.refused_devices.get(document["_id"], set())
    if channel.is_personal:
        # A resend goes to the same address, which the provider would reject again.
        is_rejected = delivery.get("failure_code") == F.INVALID_RECIPIENT
    else:
        is_rejected = not rooms.takes_messages(recipient.room)
    return channel.can_reach(
        address=None if is_rejected else recipient.address(channel),
        user_id=document.get("user_id"),
        has_device=channel.has_devices
        and any(
            device.device_id not in refused and accepts_push(device, document)
            for device in push_devices(document, context.targets)
        ),
    )


def push_devices(
    document: NotificationDocument, targets: devices.PushTargets
) -> tuple[devices.PushTarget, ...]:
    """Return the active devices that a notification's push goes to, whatever they accept."""
    return targets.for_notification(
        user_id=document.get("user_id"), device_ids=recipient_of(document).device_ids
    )


def read_push_targets(documents: Sequence[NotificationDocument]) -> devices.PushTargets:
    """Read the devices of these notifications' pushes in one query. Raises PyMongoError."""
    ids = [device_id for d in documents for device_id in d["recipient"].get("device_ids", ())]
    users = [
        d["user_id"] for d in documents if d.get("user_id") and not d["recipient"].get("device_ids")
    ]
    return devices.find_push_targets(user_ids=users, device_ids=ids)


def accepts_push(device: devices.PushTarget, document: NotificationDocument) -> bool:
    """Return whether a device's preferences allow a notification."""
    return device_preferences.allows(
        device.preferences,
        category=document["category"],
        type_slug=document["type"],
        priority=document["priority"],
        is_locked=is_locked(document),
    )


def _has_whatsapp_template(document: NotificationDocument, recipient: Recipient) -> bool:
    templates = types.whatsapp_templates(document["type"])
    chosen = rendering.choose_whatsapp_template(
        templates, locale=recipient.locale, data=document["data"], content=content_of(document)
    )
    return chosen is not None
