"""Applies receipts from devices, since FCM doesn't report that a push was delivered or opened."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import structlog
from bson import ObjectId

from devices import queries as devices
from devices import status
from domain.channels import PUSH
from domain.states import AttemptStatus, DeliveryStatus
from notifications.documents.records import DeliveryAttemptDocument
from notifications.store import device_attempts, receipts
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference

from .. import callback_events, queries

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


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedReceipt:
    """What a device's receipt changed."""

    is_delivery_changed: bool
    attempted_at: datetime | None
    """When the attempt was made whose outcome the receipt changed, so that it is counted again."""


class NotPushedError(LookupError):
    """The client has no such notification, or it was never pushed to this device."""


def apply_device_receipt(
    *,
    device_id: str,
    notification_id: ObjectId,
    client_id: ObjectId | None,
    event: DeviceEvent,
    now: datetime,
) -> AppliedReceipt:
    """Apply a device's receipt. Return what changed. Raises NotPushedError.

    ``client_id`` is None if the push itself allows its receipts, whoever's it is.
    """
    # Receipts may come in any order, repeatedly, before the send is recorded, and from a device
    # that was replaced or deleted since. One installation may name its device by any of its IDs.
    document = queries.get(notification_id=notification_id, client_id=client_id)
    if document is None:
        raise NotPushedError
    delivery, provider = next(
        (
            (delivery, provider)
            for delivery in document["delivery"]
            if delivery["channel"] == PUSH and (provider := delivery.get("provider"))
        ),
        (None, None),
    )
    # A receipt can precede the record that the provider accepted the push.
    current = devices.current(device_id)
    own = () if current is None else (current["_id"], *(current.get("replaces") or ()))
    ids = list(dict.fromkeys([device_id, *own]))
    attempts = device_attempts.attempts_at(notification_id, ids)
    accepted = (
        []
        if delivery is None
        else [device_id for device_id in ids if device_id in delivery["accepted_targets"]]
    )
    if delivery is None or provider is None or not (attempts or accepted):
        raise NotPushedError
    pushed_to = attempts[-1]["device_id"] if attempts else accepted[0]
    is_test = document.get("is_test", False)
    if not is_test:
        # A test push stays in the sandbox: its receipt says nothing about the device.
        reporting = device_id if current is None else current["_id"]
        status.record_success(accepted={}, receipts={reporting: now})
    attempt = delivery["attempt_count"]
    reference = AttemptReference(notification_id, PUSH, attempt, pushed_to)
    changed = receipts.apply_receipt(
        DeliveryReceipt(
            reference=reference, status=EVENT_STATUSES[event], at=now, provider=provider
        ),
        now=now,
    )
    attempted_at = _record_on_attempt(attempts, EVENT_STATUSES[event], now=now)
    callback_events.enqueue_publisher(now=now)
    log.info(
        "device_receipt_applied",
        delivery_id=reference.delivery_id,
        attempt=attempt,
        device_id=pushed_to,
        kind=event.value,
        changed=changed,
    )
    return AppliedReceipt(
        is_delivery_changed=changed, attempted_at=None if is_test else attempted_at
    )


def _record_on_attempt(
    attempts: Sequence[DeliveryAttemptDocument], status: DeliveryStatus, *, now: datetime
) -> datetime | None:
    """Record the receipt on the last attempt that the provider accepted, or else on the last.

    Return the time of the attempt if the receipt changed it.
    """
    if not attempts:
        return None
    accepted = [attempt for attempt in attempts if attempt["status"] == AttemptStatus.SENT]
    attempt = (accepted or attempts)[-1]
    is_changed = device_attempts.record_device_receipt(attempt, status, at=now)
    at: datetime = attempt["attempted_at"]
    return at if is_changed else None
