"""Histories of notifications as test data, which the store's own operations create."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from bson import ObjectId

from domain import content
from domain.errors import FailureCode
from domain.states import AttemptStatus, Channel, DeliveryStatus
from notifications.store import acceptance, actions, leases, receipts
from notifications.store.documents import (
    AttemptReference,
    ClaimedDelivery,
    NewDelivery,
    NotSent,
    ProviderAnswer,
    Settlement,
    TargetAttempt,
)
from notifications.store.receipts import DeliveryReceipt
from notifyproject.db.collections import collection

from . import mail

A, C, F, S = AttemptStatus, Channel, FailureCode, DeliveryStatus
Document = dict[str, Any]
PROVIDERS = {C.EMAIL: "sendgrid", C.PUSH: "fcm", C.WHATSAPP: "whatsapp"}
WORKER = "bench"
CREATED_AGO = timedelta(hours=1)
"""Long enough ago for all attempts to be over."""
RETRY_DELAY = timedelta(minutes=10)
DEVICES = tuple(f"{number:064x}" for number in range(1, 5))
ATTEMPT = {S.SENT: A.SENT, S.UNKNOWN: A.UNKNOWN}


@dataclass(frozen=True)
class DeliveryHistory:
    """The history of one channel: attempts, final status, and a later receipt."""

    channel: Channel
    attempt_count: int = 1
    final_status: DeliveryStatus = S.SENT
    code: FailureCode | None = None
    devices: int = 0
    receipt_status: DeliveryStatus | None = None


@dataclass(frozen=True, kw_only=True)
class NotificationHistory:
    """The history of a notification, and its share of all test notifications in percent."""

    share: float
    deliveries: tuple[DeliveryHistory, ...]
    in_app: bool = False
    due_in: timedelta = timedelta(0)
    max_age: timedelta | None = None
    """The maximum age of these notifications; None: a month."""


def _history(share: float, *deliveries: DeliveryHistory, **fields: Any) -> NotificationHistory:
    return NotificationHistory(share=share, deliveries=deliveries, **fields)


_delivery = DeliveryHistory
_failed = partial(DeliveryHistory, final_status=S.FAILED)
_unsent = partial(DeliveryHistory, C.EMAIL, 0)
HOUR = timedelta(hours=1)
DELIVERED_EMAIL = _delivery(C.EMAIL, receipt_status=S.DELIVERED)
UNCONNECTED_PUSH = _failed(C.PUSH, code=F.CONNECTION_FAILED, attempt_count=4, devices=2)
PENDING_EMAIL = _unsent(S.PENDING)
HISTORIES = (
    _history(30, DELIVERED_EMAIL, _delivery(C.PUSH, devices=2, receipt_status=S.DELIVERED)),
    _history(17, _delivery(C.EMAIL, attempt_count=4, receipt_status=S.DELIVERED)),
    _history(12, DELIVERED_EMAIL, _delivery(C.WHATSAPP, receipt_status=S.READ)),
    _history(15, _delivery(C.PUSH, devices=3)),
    _history(3, _delivery(C.EMAIL), in_app=True),
    _history(4, _failed(C.EMAIL, code=F.PROVIDER_ERROR, attempt_count=4)),
    _history(2, _failed(C.PUSH, code=F.INVALID_RECIPIENT, devices=2)),
    _history(2, _failed(C.WHATSAPP, code=F.REJECTED)),
    _history(2, _delivery(C.EMAIL, receipt_status=S.FAILED, code=F.BOUNCED)),
    _history(5, DELIVERED_EMAIL, UNCONNECTED_PUSH),
    _history(1, _unsent(S.CANCELLED)),
    _history(1, _unsent(S.EXPIRED, code=F.EXPIRED)),
    _history(1, _unsent(S.SUPPRESSED, code=F.OPTED_OUT)),
    _history(3, PENDING_EMAIL, due_in=timedelta(days=4), max_age=timedelta(days=3)),
    _history(0.5, PENDING_EMAIL, max_age=HOUR),
    _history(1, _delivery(C.EMAIL, final_status=S.PENDING, code=F.PROVIDER_ERROR), max_age=HOUR),
    _history(0.5, _delivery(C.EMAIL, final_status=S.UNKNOWN, code=F.TIMEOUT), max_age=HOUR),
)
"""The kinds of history: three attempts each on average; one in seven has a failure."""


def seed(history: NotificationHistory, *, now: datetime) -> tuple[Document, list[Document]]:
    """Store a notification with this history; return its document and its attempts."""
    at = now - CREATED_AGO
    in_app = [C.IN_APP] if history.in_app else []
    channels = [*(life.channel for life in history.deliveries), *in_app]
    new = replace(
        mail.new_notification(1, at=at),
        recipient=content.Recipient(email="p@example.com", phone="+351912345678", name="P"),
        deliveries=tuple(NewDelivery(channel=channel) for channel in channels),
        send_at=at + history.due_in,
    )
    acceptance.accept([new], now=at)
    for delivery in history.deliveries:
        _apply_history(new.id, delivery, at)
    (document,) = collection("notifications").find({"_id": new.id})
    return document, list(collection("delivery_attempts").find({"notification_id": new.id}))


def _apply_history(owner: ObjectId, delivery: DeliveryHistory, at: datetime) -> None:
    if not delivery.attempt_count:
        _end_without_attempt(owner, delivery, at)
    for number in range(1, delivery.attempt_count + 1):
        at += RETRY_DELAY if number > 1 else timedelta(0)
        (claimed,) = leases.claim(ids=[owner], channel=delivery.channel, worker=WORKER, now=at)
        claimed = replace(claimed, device_ids=DEVICES[: delivery.devices])
        provider = PROVIDERS[delivery.channel]
        (started,) = leases.start([claimed], provider=provider, worker=WORKER, now=at)
        status = delivery.final_status if number == delivery.attempt_count else S.PENDING
        leases.settle([_settlement(started, status, delivery.code, at)], now=at)
    if delivery.receipt_status is not None:
        target = DEVICES[0] if delivery.devices else None
        receipt = DeliveryReceipt(
            reference=AttemptReference(owner, delivery.channel, delivery.attempt_count, target),
            status=delivery.receipt_status,
            at=at + timedelta(seconds=20),
            provider=PROVIDERS[delivery.channel],
            code=delivery.code,
        )
        receipts.apply_receipt(receipt, now=receipt.at)


def _settlement(
    started: ClaimedDelivery, status: DeliveryStatus, code: FailureCode | None, at: datetime
) -> Settlement:
    is_sent = status is S.SENT
    answer = ProviderAnswer(
        provider=PROVIDERS[started.channel],
        message_id=f"message-{started.channel}-{started.attempt_count}" if is_sent else None,
        response={"status": 202 if is_sent else 503},
    )
    shared: dict[str, Any] = {"finished_at": at + timedelta(milliseconds=80), "duration_ms": 80}
    shared["answer"] = answer
    if not is_sent:
        shared |= {"code": code or F.PROVIDER_ERROR, "reason": "It answered 503."}
    attempt = ATTEMPT.get(status, A.FAILED)
    targets = tuple(started.device_ids)
    return Settlement(
        claimed=started,
        status=status,
        next_attempt_at=at + RETRY_DELAY if status in (S.PENDING, S.UNKNOWN) else None,
        accepted_targets=targets if is_sent else (),
        target_attempts=tuple(
            TargetAttempt(device_id=target, status=attempt, **shared) for target in targets
        ),
        **shared,
    )


def _end_without_attempt(owner: ObjectId, delivery: DeliveryHistory, at: datetime) -> None:
    if delivery.final_status is S.CANCELLED:
        reason = "Withdrawn by the app."
        actions.cancel(notification_id=owner, channels=[delivery.channel], reason=reason, now=at)
    elif delivery.final_status is not S.PENDING:
        (claimed,) = leases.claim(ids=[owner], channel=delivery.channel, worker=WORKER, now=at)
        status, code = delivery.final_status, delivery.code or F.EXPIRED
        not_sent = NotSent(claimed=claimed, status=status, code=code, reason="Not sent.")
        leases.settle_not_sent([not_sent], now=at)
