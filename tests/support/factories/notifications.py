"""Notifications in any state, reached by the store's own transitions: times follow from states."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bson import ObjectId

from devices import registration
from devices.models import Platform
from devices.preferences import Preferences
from devices.registration import Registration
from domain.content import Content, Recipient
from domain.errors import FailureCode
from domain.states import Category, Channel, DeliveryStatus, Priority
from notifications import store
from notifications.store import (
    AttemptReference,
    ClaimedDelivery,
    DeliveryReceipt,
    Document,
    NewDelivery,
    NewNotification,
    ProviderAnswer,
    Settlement,
)
from notifyproject.db.collections import collection
from recipients import suppressions
from recipients.models import SuppressionReason

NOON = (datetime.now(UTC) - timedelta(days=1)).replace(hour=12, minute=0, second=0, microsecond=0)
"""When everything happens, unless a test says otherwise. Yesterday: MongoDB deletes what is old."""
CLIENT = ObjectId("c" * 24)
WORKER = "worker-1"
S = DeliveryStatus


def new(*, channels: Sequence[Channel] = (Channel.EMAIL,), **fields: Any) -> NewNotification:
    """Return a notification to accept; ``fields`` replace those of the default one."""
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


def accepted(**fields: Any) -> Document:
    """Return the document of a notification that has just been accepted."""
    notification = new(**fields)
    (result,) = store.accept([notification], now=notification.created_at)
    assert isinstance(result, store.Accepted)
    return result.document


def claimed(
    *, at: datetime = NOON, channel: Channel = Channel.EMAIL, **fields: Any
) -> ClaimedDelivery:
    """Return a delivery that a worker has just claimed."""
    document = accepted(channels=fields.pop("channels", (channel,)), **fields)
    return claim(document["_id"], at=at, channel=channel)


def claim(
    notification_id: ObjectId, *, at: datetime = NOON, channel: Channel = Channel.EMAIL
) -> ClaimedDelivery:
    """Claim a delivery that is due and free."""
    (one,) = store.claim(
        ids=[notification_id],
        channel=channel,
        worker=WORKER,
        now=at,
        include_poison_candidates=True,
    )
    return one


def started(
    *, at: datetime = NOON, channel: Channel = Channel.EMAIL, **fields: Any
) -> ClaimedDelivery:
    """Return a delivery that is being sent."""
    return start(claimed(at=at, channel=channel, **fields), at=at)


def start(
    one: ClaimedDelivery, *, at: datetime = NOON, provider: str = "sendgrid"
) -> ClaimedDelivery:
    """Start to send a claimed delivery."""
    (begun,) = begin(one, at=at, provider=provider)
    return begun


def begin(
    *claims: ClaimedDelivery, at: datetime = NOON, provider: str = "sendgrid"
) -> list[ClaimedDelivery]:
    """Start to send claimed deliveries; return those that may be sent."""
    return store.start(claims, provider=provider, worker=WORKER, now=at)


def batch(count: int) -> list[ClaimedDelivery]:
    """Return so many mails that a worker has just claimed together."""
    ids = [accepted()["_id"] for _ in range(count)]
    return store.claim(ids=ids, channel=Channel.EMAIL, worker=WORKER, now=NOON)


def settlement(
    one: ClaimedDelivery, status: DeliveryStatus, *, at: datetime = NOON, **fields: Any
) -> Settlement:
    """Return an outcome of a started delivery."""
    default = Settlement(
        claimed=one,
        status=status,
        finished_at=at,
        duration_ms=12,
        answer=ProviderAnswer(
            provider="sendgrid",
            message_id="sg-1" if status is S.SENT else None,
            response={"status": 202 if status is S.SENT else 503},
        ),
        next_attempt_at=at + timedelta(minutes=5) if status in (S.PENDING, S.UNKNOWN) else None,
        code=None if status is S.SENT else FailureCode.PROVIDER_ERROR,
        reason=None if status is S.SENT else "The provider had a problem of its own. (503)",
    )
    return replace(default, **fields)


def settled(
    status: DeliveryStatus, *, at: datetime = NOON, channel: Channel = Channel.EMAIL, **fields: Any
) -> Document:
    """Return the document after one attempt that ended in ``status``: sent, failed, unknown,
    or pending again."""
    one = started(at=at, channel=channel, **fields)
    store.settle([settlement(one, status, at=at)], now=at)
    return read(one.notification_id)


def arrive(notification_id: ObjectId, *, at: datetime = NOON) -> bool:
    """Let the provider report that a mail was delivered; return whether that changed anything."""
    report = DeliveryReceipt(
        reference=AttemptReference(notification_id, Channel.EMAIL, 1),
        status=S.DELIVERED,
        at=at,
        provider="sendgrid",
    )
    return store.apply_receipt(report, now=at)


def read(notification_id: ObjectId) -> Document:
    """Return a document as it is stored."""
    document = collection("notifications").find_one({"_id": notification_id})
    assert document is not None
    return document


def delivery(document: Document, channel: Channel = Channel.EMAIL) -> dict[str, Any]:
    """Return one channel's delivery of a document."""
    return next(d for d in document["delivery"] if d["channel"] == channel)


def attempts(notification_id: ObjectId) -> list[dict[str, Any]]:
    """Return the records of a notification's attempts, in order."""
    found = collection("delivery_attempts").find({"notification_id": notification_id})
    return sorted(found, key=lambda a: a["attempt_number"])


def tries(notification_id: ObjectId) -> dict[tuple[int, str], tuple[str, str | None]]:
    """Return what became of a push, by attempt and device: the status and the error's code."""
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
    """Register a device and return its id."""
    new = Registration(user_id=user_id, token=token, platform=platform, **fields)
    device_id: str = registration.register(new, now=at)["_id"]
    if preferences is not None:
        registration.set_preferences(device_id=device_id, preferences=preferences, now=at)
    return device_id


def suppress(address: str = "ada@example.com", *, at: datetime = NOON, **fields: Any) -> Document:
    """Suppress an address: it has bounced, unless ``fields`` say otherwise."""
    bounced: dict[str, Any] = {
        "channel": Channel.EMAIL,
        "reason": SuppressionReason.HARD_BOUNCE,
        "source": "sendgrid",
        "marketing_only": False,
    }
    return suppressions.suppress(address=address, now=at, **(bounced | fields))


def stored_device(device_id: str) -> dict[str, Any]:
    """Return a device as it is stored."""
    found = collection("devices").find_one({"_id": device_id})
    assert found is not None
    return found
