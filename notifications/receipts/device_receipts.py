"""Applies receipts from devices, since FCM doesn't report that a push was delivered or opened."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum

import structlog
from bson import ObjectId

from analytics import metrics, rollup_state
from analytics.models import Interval
from devices import queries as devices
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
    # that was replaced or deleted since. One installation may name its device by any of its IDs.
    document = queries.get(notification_id=notification_id, client_id=client_id)
    if document is None:
        raise NotPushedError
    sent = (d for d in document["delivery"] if d["channel"] == Channel.PUSH and d.get("provider"))
    delivery = next(sent, None)
    # A receipt can precede the record that the provider accepted the push.
    current = devices.current(device_id)
    ids = list(dict.fromkeys([device_id, *_ids_of(current)]))
    attempts = store.attempts_at(notification_id, ids)
    accepted = (
        [] if delivery is None else [one for one in ids if one in delivery["accepted_targets"]]
    )
    if delivery is None or not (attempts or accepted):
        raise NotPushedError
    pushed_to = attempts[-1]["device_id"] if attempts else accepted[0]
    is_test = document.get("is_test", False)
    if not is_test:
        # A test push stays in the sandbox: its receipt says nothing about the device.
        reporting = device_id if current is None else current["_id"]
        status.record_success(accepted={}, receipts={reporting: now})
    attempt = delivery["attempt_count"]
    reference = AttemptReference(notification_id, Channel.PUSH, attempt, pushed_to)
    changed = store.apply_receipt(
        DeliveryReceipt(
            reference=reference, status=EVENT_STATUSES[event], at=now, provider=delivery["provider"]
        ),
        now=now,
    )
    if attempts:
        _record_on_attempt(attempts, EVENT_STATUSES[event], is_test=is_test, now=now)
    callback_events.enqueue_publisher(now=now)
    log.info(
        "device_receipt_applied", delivery_id=str(reference), kind=event.value, changed=changed
    )
    return changed


def _ids_of(device: Document | None) -> list[str]:
    return [] if device is None else [device["_id"], *(device.get("replaces") or ())]


def _record_on_attempt(
    attempts: Sequence[Document], status: DeliveryStatus, *, is_test: bool, now: datetime
) -> None:
    """Record the receipt on the last attempt that the provider accepted, or else on the last."""
    accepted = [one for one in attempts if one["status"] == AttemptStatus.SENT]
    attempt = (accepted or attempts)[-1]
    if store.record_device_receipt(attempt, status, at=now) and not is_test:
        # The roll-up finds changed notifications, and this one stays unchanged if another device
        # reported before.
        minute = metrics.interval_start(Interval.MINUTE, attempt["attempted_at"])
        rollup_state.mark_changed([minute], now=now)
