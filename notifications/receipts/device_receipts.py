"""What a device itself says of a push: that it came, that its user opened it.

No provider reports that. The first device that says so speaks for its user: the push is delivered.
If the user's other devices wait for it still, they are tried first.
"""

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
    """What happened at a device."""

    DELIVERED = "delivered"
    """The device has it."""
    OPENED = "opened"
    """Its user has opened it."""


EVENT_STATUSES = {
    DeviceEvent.DELIVERED: DeliveryStatus.DELIVERED,
    DeviceEvent.OPENED: DeliveryStatus.READ,
}
"""What the delivery becomes in the end. Nobody but its user opens a push: an opened one is read."""


class NotPushedError(LookupError):
    """The client has no such notification, or it never was on its way to this device."""


def apply_device_receipt(
    *,
    device_id: str,
    notification_id: ObjectId,
    client_id: ObjectId,
    event: DeviceEvent,
    now: datetime,
) -> bool:
    """Apply what a device says; return whether it is news about the delivery.

    In any order and any number of times it ends the same, also before our own record of the send,
    and also if the device has been replaced or forgotten since. Raises NotPushed, and PyMongoError.
    """
    document = queries.get(notification_id=notification_id, client_id=client_id)
    delivery = _push(document) if document is not None else None
    if (
        document is None
        or delivery is None
        or not _was_pushed(notification_id, delivery, device_id)
    ):
        raise NotPushedError
    if not document.get("is_test", False):
        # A test push never left the sandbox: its receipt says nothing about the device.
        status.record_success(accepted={}, receipts={device_id: now})
    reference = AttemptReference(
        notification_id, Channel.PUSH, delivery["attempt_count"], device_id
    )
    changed = store.apply_receipt(
        DeliveryReceipt(
            reference=reference,
            status=EVENT_STATUSES[event],
            at=now,
            provider=delivery["provider"],
        ),
        now=now,
    )
    callback_events.enqueue_publisher(now=now)
    log.info(
        "device_receipt_applied", delivery_id=str(reference), kind=event.value, changed=changed
    )
    return changed


def _push(document: Document) -> Document | None:
    """Return a notification's push; None if it has none that a provider was ever given."""
    return next(
        (d for d in document["delivery"] if d["channel"] == Channel.PUSH and d.get("provider")),
        None,
    )


def _was_pushed(notification_id: ObjectId, delivery: Document, device_id: str) -> bool:
    """Return whether the provider took it for this device, or may have done so by now.

    A device may be faster than our own record: then only the attempt is known that has begun.
    """
    if device_id in delivery["accepted_targets"]:
        return True
    return any(
        attempt.get("device_id") == device_id and attempt["status"] != AttemptStatus.EXPIRED
        for attempt in queries.attempts_of(notification_id)
    )
