"""Notifications in any state, reached by the store's own transitions, and records built by hand."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bson import ObjectId

from devices import registration
from devices.models import Platform
from devices.preferences import DevicePreferenceChanges, Preferences
from devices.registration import Registration
from domain.channels import Channel
from domain.content import Attachment, Content, Look, Recipient
from domain.errors import FailureCode
from domain.retry import RetryState
from domain.states import Category, DeliveryStatus, Priority
from notifications.catalog import types
from notifications.catalog.shipped_types import ShippedType, shipped_types
from notifications.content.templates import Part
from notifications.documents.notification import (
    NOTIFICATIONS,
    DeliveryDocument,
    NotificationDocument,
)
from notifications.documents.records import DELIVERY_ATTEMPTS, DeliveryAttemptDocument
from notifications.intake.requests import NotificationRequest
from notifications.store import acceptance, leases, receipts
from notifications.store.acceptance import Accepted
from notifications.store.claims import ClaimedDelivery, Settlement
from notifications.store.new_notifications import NewDelivery, NewNotification
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from notifyproject.db.collections import collection
from privacy import content_removal
from privacy.content_removal import ContentRemoval
from providers.contract import Message, SendRequest
from providers.discovery import SPECS
from recipients import suppressions
from recipients.models import SuppressionReason

NOON = (datetime.now(UTC) - timedelta(days=1)).replace(hour=12, minute=0, second=0, microsecond=0)
"""Yesterday, because MongoDB deletes what is old."""
CLIENT = ObjectId("c" * 24)
WORKER = "worker-1"
USUAL = ("sendgrid", "fcm", "twilio")
"""The providers of the channels that have several."""
S = DeliveryStatus


def personal_types() -> list[ShippedType]:
    """Return the shipped types that reach people, not rooms."""
    return [
        shipped
        for shipped in shipped_types()
        if any(Channel(channel).is_personal for channel in shipped.fields["channels"])
    ]


def new(*, channels: Sequence[Channel] = (Channel.EMAIL,), **fields: Any) -> NewNotification:
    at = fields.get("created_at", NOON)
    default = NewNotification(
        id=ObjectId(),
        client_id=CLIENT,
        user_id="ada",
        recipient=Recipient(email="ada@example.com", phone="+351912345678", name="Ada"),
        type="payment_confirmed",
        category=Category.TRANSACTIONAL,
        priority=Priority.NORMAL,
        content=Content(subject="Paid", body="Your payment has arrived."),
        data={},
        deliveries=tuple(NewDelivery(channel=channel) for channel in channels),
        max_attempts=4,
        send_at=at,
        purge_at=at + timedelta(days=90),
        created_at=at,
    )
    return replace(default, **fields)


def accepted(**fields: Any) -> NotificationDocument:
    notification = new(**fields)
    (result,) = acceptance.accept([notification], now=notification.created_at)
    assert isinstance(result, Accepted)
    return result.document


def mails(count: int, **fields: Any) -> list[ObjectId]:
    """Return the IDs of accepted emails."""
    return [accepted(**fields)["_id"] for _ in range(count)]


def claimed(
    *, at: datetime = NOON, channel: Channel = Channel.EMAIL, **fields: Any
) -> ClaimedDelivery:
    document = accepted(channels=fields.pop("channels", (channel,)), **fields)
    return claim(document["_id"], at=at, channel=channel)


def claim(
    notification_id: ObjectId, *, at: datetime = NOON, channel: Channel = Channel.EMAIL
) -> ClaimedDelivery:
    (claim,) = leases.claim(
        ids=[notification_id],
        channel=channel,
        worker=WORKER,
        now=at,
        include_poison_candidates=True,
    )
    return claim


def started(
    *,
    at: datetime = NOON,
    channel: Channel = Channel.EMAIL,
    provider: str | None = None,
    **fields: Any,
) -> ClaimedDelivery:
    return start(claimed(at=at, channel=channel, **fields), at=at, provider=provider)


def start(
    claim: ClaimedDelivery, *, at: datetime = NOON, provider: str | None = None
) -> ClaimedDelivery:
    (begun,) = begin(claim, at=at, provider=provider)
    return begun


def begin(
    *claims: ClaimedDelivery, at: datetime = NOON, provider: str | None = None
) -> list[ClaimedDelivery]:
    """Start claimed deliveries of one channel. Return those that may be sent."""
    name = provider or provider_of(claims[0].channel)
    return leases.start(claims, provider=name, worker=WORKER, now=at)


def provider_of(channel: Channel) -> str:
    """Return the provider that sends on a channel unless a test says otherwise."""
    names = (name for name in (*USUAL, *SPECS) if SPECS[name].channel == channel)
    return next(names, channel.value)


def batch(count: int) -> list[ClaimedDelivery]:
    ids = [accepted()["_id"] for _ in range(count)]
    return leases.claim(ids=ids, channel=Channel.EMAIL, worker=WORKER, now=NOON)


def settlement(
    claim: ClaimedDelivery, status: DeliveryStatus, *, at: datetime = NOON, **fields: Any
) -> Settlement:
    default = Settlement(
        claimed=claim,
        status=status,
        finished_at=at,
        duration_ms=12,
        provider=provider_of(claim.channel),
        provider_message_id="sg-1" if status is S.SENT else None,
        response={"status": 202 if status is S.SENT else 503},
        next_attempt_at=at + timedelta(minutes=5) if status in (S.PENDING, S.UNKNOWN) else None,
        code=None if status is S.SENT else FailureCode.PROVIDER_ERROR,
        reason=None if status is S.SENT else "The provider had a problem of its own. (503)",
    )
    return replace(default, **fields)


def settled(
    status: DeliveryStatus,
    *,
    at: datetime = NOON,
    channel: Channel = Channel.EMAIL,
    provider: str | None = None,
    **fields: Any,
) -> NotificationDocument:
    """Store a notification with one attempt that ended in this status. Return the document."""
    begun = started(at=at, channel=channel, provider=provider, **fields)
    ended = settlement(begun, status, at=at, provider=provider or provider_of(channel))
    leases.settle([ended], now=at)
    return read(begun.notification_id)


def arrive(notification_id: ObjectId, *, at: datetime = NOON) -> bool:
    """Apply a receipt "delivered". Return whether the receipt changed anything."""
    report = DeliveryReceipt(
        reference=AttemptReference(notification_id, Channel.EMAIL, 1),
        status=S.DELIVERED,
        at=at,
        provider="sendgrid",
    )
    return receipts.apply_receipt(report, now=at)


def read(notification_id: ObjectId) -> NotificationDocument:
    document = NOTIFICATIONS().find_one({"_id": notification_id})
    assert document is not None
    return document


def delivery(document: NotificationDocument, channel: Channel = Channel.EMAIL) -> DeliveryDocument:
    return next(d for d in document["delivery"] if d["channel"] == channel)


def attempts(notification_id: ObjectId) -> list[DeliveryAttemptDocument]:
    found = DELIVERY_ATTEMPTS().find({"notification_id": notification_id})
    return sorted(found, key=lambda a: a["attempt_number"])


def tries(notification_id: ObjectId) -> dict[tuple[int, str], tuple[str, str | None]]:
    """Return the status and error code by attempt and device."""
    return {
        (record["attempt_number"], record["device_id"]): (
            record["status"],
            record.get("error_code"),
        )
        for record in attempts(notification_id)
    }


def device(
    token: str,
    *,
    user_id: str = "ada",
    platform: Platform = Platform.ANDROID,
    preferences: Preferences | None = None,
    at: datetime = NOON - timedelta(days=1),
    **fields: Any,
) -> str:
    new = Registration(user_id=user_id, token=token, platform=platform, **fields)
    device_id: str = registration.register(new, now=at)["_id"]
    if preferences is not None:
        changes = DevicePreferenceChanges(
            enabled=preferences.enabled,
            categories=preferences.categories,
            quiet_hours=preferences.quiet_hours,
        )
        registration.set_preferences(device_id=device_id, changes=changes, now=at)
    return device_id


def suppress(address: str = "ada@example.com", *, at: datetime = NOON, **fields: Any) -> Any:
    """Suppress an address, by default for a hard bounce."""
    bounced: dict[str, Any] = {
        "channel": Channel.EMAIL,
        "reason": SuppressionReason.HARD_BOUNCE,
        "source": "sendgrid",
        "marketing_only": False,
    }
    return suppressions.suppress(address=address, now=at, **(bounced | fields))


def stored_device(device_id: str) -> dict[str, Any]:
    found = collection("devices").find_one({"_id": device_id})
    assert found is not None
    return found


FIXED_NOON = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
"""For records that are built without a database."""
SHIPPED = {
    default.slug: types._parse_type({"_id": default.slug, **default.fields})
    for default in shipped_types()
}

MORE_THAN_TEXT = Content(
    subject="s",
    body="b",
    image_url="https://cdn.example.com/i.png",
    deep_link="app://orders/1",
    payload={"orderId": "1"},
)


def retry_state(**fields: Any) -> RetryState:
    """Return the state after a first failed attempt."""
    default: dict[str, Any] = {
        "priority": Priority.NORMAL,
        "attempt_count": 1,
        "uncounted_attempts": 0,
        "max_attempts": 4,
        "held_for": timedelta(0),
        "expires_at": None,
    }
    return RetryState(**(default | fields))


def claimed_delivery(**fields: Any) -> ClaimedDelivery:
    """Return a delivery in its first attempt."""
    default: dict[str, Any] = {
        "notification_id": ObjectId("a" * 24),
        "channel": Channel.EMAIL,
        "token": "f" * 32,
        "lease_until": FIXED_NOON + timedelta(seconds=90),
        "claim_count": 1,
        "attempt_count": 1,
        "uncounted_attempts": 0,
        "max_attempts": 4,
        "first_due_at": FIXED_NOON,
        "client_id": CLIENT,
        "created_at": FIXED_NOON,
        "type": "payment_confirmed",
        "category": Category.TRANSACTIONAL,
        "priority": Priority.NORMAL,
        "user_id": "ada",
        "recipient": Recipient(email="ada@example.com", phone="+351912345678", name="Ada"),
        "content": Content(subject="Paid", body="Your payment has arrived."),
        "data": {},
        "accepted_targets": (),
        "expires_at": None,
        "purge_at": None,
        "request_id": None,
    }
    return ClaimedDelivery(**(default | fields))


def outbound(**fields: Any) -> SendRequest:
    default: dict[str, Any] = {
        "reference": f"{'a' * 24}.email.1",
        "recipient": "ada@example.com",
        "recipient_name": "Ada",
        "message": Message(subject="Paid", text="Your payment has arrived.", html="<p>Paid</p>"),
        "category": "transactional",
    }
    return SendRequest(**(default | fields))


def request(**fields: Any) -> NotificationRequest:
    default: dict[str, Any] = {"type": "alert", "user_id": "ada"}
    return NotificationRequest(**(default | fields))


def write_template(
    folder: Path, name: str, *, language: str = "", subject: str = "S", body: str = "B", **more: str
) -> None:
    """Write a template's files, in one language. ``more`` has further parts."""
    path = folder / name / language
    path.mkdir(parents=True)
    for part, text in {"subject": subject, "body": body, **more}.items():
        (path / Part(part).file_name).write_text(text)


DAY, MILLISECOND = timedelta(days=1), timedelta(milliseconds=1)
REMOVAL_DUE = NOON + 30 * DAY + MILLISECOND
"""When content last changed at noon is due."""
FULL_CONTENT = Content(
    subject="Paid",
    body="Your payment has arrived.",
    template_id="payment_confirmed",
    template_version=3,
    image_url="https://example.com/a.png",
    deep_link="app://orders/1",
    payload={"order": "1"},
    reply_to="us@example.com",
    look=Look(design=3, brand="acme", layout="main"),
    attachments=(
        Attachment(url="https://files.example.com/1", filename="1.pdf", content_type="a/b"),
    ),
)
FULL_RECIPIENT = Recipient(
    email="ada@example.com",
    phone="+351912345678",
    name="Ada",
    locale="pt",
    timezone="Europe/Lisbon",
    device_ids=("d" * 64,),
)
FULL_FIELDS: dict[str, Any] = {
    "content": FULL_CONTENT,
    "recipient": FULL_RECIPIENT,
    "data": {"amount": "49.90"},
}


def remove_content(*, at: datetime = REMOVAL_DUE, **options: Any) -> ContentRemoval:
    return content_removal.remove_expired_content(now=at, **options)


def settled_with_content(status: DeliveryStatus = S.FAILED, **fields: Any) -> NotificationDocument:
    """Return a notification with full content that ended at noon."""
    return settled(status, **{**FULL_FIELDS, **fields})


def is_content_removed(document: NotificationDocument) -> bool:
    return "content_removed_at" in read(document["_id"])


def set_retention_days(category: Category, **days: int) -> None:
    collection("retention_policies").update_one(
        {"_id": category.value}, {"$set": days}, upsert=True
    )


def receipt(
    notification_id: ObjectId, status: DeliveryStatus, *, at: datetime = NOON
) -> DeliveryReceipt:
    """Return a receipt whose reason names the recipient."""
    reference = AttemptReference(notification_id, Channel.EMAIL, 1)
    return DeliveryReceipt(
        reference=reference, status=status, at=at, provider="sendgrid", reason="ada@ is gone"
    )
