"""Applies receipts from devices, since FCM doesn't report that a push was delivered or opened."""

from datetime import datetime
from enum import StrEnum

import structlog
from bson import ObjectId

from devices import status
from domain.states import AttemptStatus, Channel, DeliveryStatus

from .. import callback_events, queries, store
from ..store import AttemptReference, DeliveryReceipt, Document

log = structlog.get_logger(__name__)


class DeviceEvent(StrEnum):
    """What happened to a push at a device."""

    DELIVERED = "delivered"
    OPENED = "opened"


EVENT_STATUSES = {
    DeviceEvent.DELIVERED: DeliveryStatus.DELIVERED,
    DeviceEvent.OPENED: DeliveryStatus.READ,
}
"""Resulting delivery status. Only the recipient opens a push, so an opened one is read."""


class NotPushedError(LookupError):
    """The client has no such notification, or it was never pushed to this device."""


def apply_device_receipt(
    *,
    device_id: str,
    notification_id: ObjectId,
    client_id: ObjectId,
    event: DeviceEvent,
    now: datetime,
) -> bool:
    """Apply a device's receipt. Return whether the delivery changed. Raises NotPushedError."""
    # Receipts may come in any order, repeatedly, before the send is recorded, and from a device
    # that was replaced or deleted since.
    document = queries.get(notification_id=notification_id, client_id=client_id)
    if document is None:
        raise NotPushedError
    sent = (d for d in document["delivery"] if d["channel"] == Channel.PUSH and d.get("provider"))
    delivery = next(sent, None)
    if delivery is None or not _was_pushed(notification_id, delivery, device_id):
        raise NotPushedError
    if not document.get("is_test", False):
        # A test push stays in the sandbox: its receipt says nothing about the device.
        status.record_success(accepted={}, receipts={device_id: now})
    attempt = delivery["attempt_count"]
    reference = AttemptReference(notification_id, Channel.PUSH, attempt, device_id)
    changed = store.apply_receipt(
        DeliveryReceipt(
            reference=reference, status=EVENT_STATUSES[event], at=now, provider=delivery["provider"]
        ),
        now=now,
    )
    callback_events.enqueue_publisher(now=now)
    log.info(
        "device_receipt_applied", delivery_id=str(reference), kind=event.value, changed=changed
    )
    return changed


def _was_pushed(notification_id: ObjectId, delivery: Document, device_id: str) -> bool:
    """Return whether the push may have been sent. A receipt can arrive before the send's record."""
    if device_id in delivery["accepted_targets"]:
        return True
    return any(
        attempt.get("device_id") == device_id and attempt["status"] != AttemptStatus.EXPIRED
        for attempt in queries.attempts_of(notification_id)
    )
