"""Publishes callback events for clients from stored changes of notifications."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog
from pymongo.errors import PyMongoError

from callbacks import outbox, subscriptions
from callbacks.events import Event, EventType
from domain.channels import INBOX
from domain.queues import CALLBACKS
from domain.states import OPEN, DeliveryStatus
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.store import callback_marks
from notifications.store.new_notifications import NewNotification
from notifyproject.platform import broker

log = structlog.get_logger(__name__)
PUBLISH = "notifications.publish_callbacks"
PUBLISH_DELAY = timedelta(seconds=0.5)
"""Delay of the publisher's wake-up, so that a wake-up covers all changes in this time."""
BATCH = 200
MAX_BATCHES = 50  # Batches per run, so that other tasks get their turn
BACKFILL_WINDOW = timedelta(seconds=30)
"""Time until every process knows a new subscription and has stored earlier requests."""
S, E = DeliveryStatus, EventType
EVENT_TYPES: Mapping[DeliveryStatus, EventType] = {
    S.SENT: E.DELIVERY_SENT,
    S.DELIVERED: E.DELIVERY_DELIVERED,
    S.READ: E.DELIVERY_READ,
    S.FAILED: E.DELIVERY_FAILED,
    S.UNKNOWN: E.DELIVERY_UNKNOWN,
    S.SUPPRESSED: E.DELIVERY_SUPPRESSED,
    S.EXPIRED: E.DELIVERY_EXPIRED,
    S.CANCELLED: E.DELIVERY_CANCELLED,
    S.MERGED: E.DELIVERY_MERGED,
}
IMPLIED_STATUSES: Mapping[DeliveryStatus, tuple[DeliveryStatus, ...]] = {
    S.DELIVERED: (S.SENT, S.DELIVERED),
    S.READ: (S.SENT, S.DELIVERED, S.READ),
}
"""Statuses to report for a status, with earlier ones that receipts may have skipped."""


class _LastWakeup:
    until = float("-inf")


def mark_for_callbacks(new: Sequence[NewNotification]) -> list[NewNotification]:
    """Mark the new notifications whose clients have a callback endpoint. Raises PyMongoError."""
    return [
        replace(notification, has_callback=True)
        if subscriptions.is_subscribed(notification.client_id)
        else notification
        for notification in new
    ]


def enqueue_publisher(*, now: datetime) -> None:
    """Wake the publisher PUBLISH_DELAY after a change.

    Does nothing if an earlier wake-up of this process is still to come, or no client subscribes.
    """
    if time.monotonic() < _LastWakeup.until:
        return
    try:
        if not subscriptions.has_subscribers():
            return
    except PyMongoError as error:
        # The sweep finds the change by its mark in the database.
        log.warning("callbacks_unknown", reason=type(error).__name__)
        return
    _LastWakeup.until = time.monotonic() + PUBLISH_DELAY.total_seconds()
    broker.publish(PUBLISH, args=[], queue=CALLBACKS, at=now + PUBLISH_DELAY, now=now)


def clear() -> None:
    """Forget the last wake-up, so that the next change sends one."""
    _LastWakeup.until = float("-inf")


def publish_events(*, now: datetime) -> int:
    """Publish the pending callback events. Return the number of notifications with events."""
    _backfill(now)
    total = 0
    for _ in range(MAX_BATCHES):
        documents = callback_marks.pending_callbacks(limit=BATCH)
        events = [event for document in documents for event in events_of(document)]
        outbox.record_events(events, now=now)
        callback_marks.clear_marks(documents)
        total += len(documents)
        if len(documents) < BATCH:
            break
    else:
        broker.publish(PUBLISH, args=[], queue=CALLBACKS, at=None, now=now)
    if total:
        log.info("callbacks_enqueued", notifications=total)
    return total


def events_of(document: NotificationDocument) -> list[Event]:
    """Return all events of a notification to report so far, with stable IDs."""
    deliveries = document["delivery"]
    events = [event for delivery in deliveries for event in _delivery_events(document, delivery)]
    if all(DeliveryStatus(delivery["status"]) not in OPEN for delivery in deliveries):
        events.append(_completed_event(document))
    if "action" in document:
        events.append(_acted_event(document))
    return events


def _delivery_events(document: NotificationDocument, delivery: DeliveryDocument) -> Iterator[Event]:
    # What is told of a replaced notification isn't what was told of the one before.
    replaced = document.get("replaced")
    version = f"_v{replaced['count']}" if replaced is not None else ""
    for status in _statuses_passed(delivery):
        # If the time of the status isn't stored, the time of the last write.
        at = _reached_at(delivery, status) or document["updated_at"]
        number = _milliseconds(at) if status is S.FAILED else delivery["attempt_count"]
        # A reopened delivery may fail, or be suppressed, again without another attempt.
        if status is S.SUPPRESSED and delivery.get("earlier_attempts") is not None:
            number = _milliseconds(delivery["first_due_at"])
        code = delivery.get("failure_code") if status == delivery["status"] else None
        yield _event(
            document,
            EVENT_TYPES[status],
            name=f"{delivery['channel']}_{status.value}_{number}{version}",
            at=at,
            data={
                "channel": delivery["channel"],
                "status": status.value,
                "attempt_count": delivery["attempt_count"],
                "failure_code": code,
            },
        )


def _reached_at(delivery: DeliveryDocument, status: DeliveryStatus) -> datetime | None:
    match status:
        case S.SENT:
            return delivery.get("sent_at")
        case S.DELIVERED:
            return delivery.get("delivered_at")
        case S.READ:
            return delivery.get("read_at")
        case S.FAILED:
            return delivery.get("failed_at")
        case _:
            return None


def _statuses_passed(delivery: DeliveryDocument) -> list[DeliveryStatus]:
    status = DeliveryStatus(delivery["status"])
    if status not in EVENT_TYPES:
        return []
    passed = list(IMPLIED_STATUSES.get(status, (status,)))
    sent_at, tried_at = delivery.get("sent_at"), delivery.get("last_attempt_at")
    if status is S.FAILED and sent_at is not None and tried_at is not None and sent_at >= tried_at:
        # The provider had accepted the last attempt.
        passed.insert(0, S.SENT)
    if delivery["channel"] == INBOX and S.SENT in passed:
        # Delivered by being stored: no provider accepts it.
        passed.remove(S.SENT)
    return passed


def _completed_event(document: NotificationDocument) -> Event:
    deliveries = document["delivery"]
    return _event(
        document,
        E.NOTIFICATION_COMPLETED,
        name=f"completed_{_milliseconds(max(delivery['first_due_at'] for delivery in deliveries))}",
        at=document["updated_at"],
        data={
            "status": document["status"],
            "deliveries": [
                {name: delivery.get(name) for name in ("channel", "status", "failure_code")}
                for delivery in deliveries
            ],
        },
    )


def _acted_event(document: NotificationDocument) -> Event:
    return _event(
        document,
        E.NOTIFICATION_ACTED,
        name="acted",
        at=document["acted_at"],
        data={"status": document["status"], "action": document["action"]},
    )


def _event(
    document: NotificationDocument,
    kind: EventType,
    *,
    name: str,
    at: datetime,
    data: Mapping[str, Any],
) -> Event:
    return Event(
        id=f"evt_{document['_id']}_{name}",
        client_id=document["client_id"],
        type=kind,
        at=at,
        notification_id=document["_id"],
        data={
            "notification_id": str(document["_id"]),
            "external_id": document.get("external_id"),
            "entity_id": document.get("entity_id"),
            "notification_type": document["type"],
            "is_test": document.get("is_test", False),
            **data,
        },
    )


def _milliseconds(at: datetime) -> int:
    return round(at.timestamp() * 1000)


def _backfill(now: datetime) -> None:
    """Mark notifications whose accepting process did not know a new subscription yet."""
    for callback in subscriptions.pending_backfills(before=now - 2 * BACKFILL_WINDOW):
        since = callback["backfill_from"]
        count = callback_marks.backfill_marks(
            client_id=callback["_id"], since=since, until=since + BACKFILL_WINDOW, now=now
        )
        subscriptions.mark_backfilled(callback["_id"], since=since)
        log.info("callback_backfilled", client_id=str(callback["_id"]), notifications=count)
