"""What becomes of notifications: one of each kind, brought into its state by the store."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain import content
from domain.errors import FailureCode
from domain.states import AttemptStatus, Channel, DeliveryStatus
from notifications import store
from notifications.store import (
    AttemptReference,
    ClaimedDelivery,
    NewDelivery,
    ProviderAnswer,
    Settlement,
    TargetAttempt,
)
from notifyproject.db.collections import collection

from . import mail

A, C, F, S = AttemptStatus, Channel, FailureCode, DeliveryStatus
Document = dict[str, Any]
PROVIDERS = {C.EMAIL: "sendgrid", C.PUSH: "fcm", C.WHATSAPP: "whatsapp"}
WORKER = "bench"
BACK = timedelta(hours=1)
"""How long ago they are made, so that all their tries are over."""
WAIT = timedelta(minutes=10)
"""From one try to the next."""
DEVICES = tuple(f"{number:064x}" for number in range(1, 5))
ATTEMPT = {S.SENT: A.SENT, S.UNKNOWN: A.UNKNOWN}


@dataclass(frozen=True, kw_only=True)
class Life:
    """One channel: so many tries, how the last one ends, and what the provider says later.

    Without any try it is withheld, or still waits.
    """

    channel: Channel
    tries: int = 1
    ends: DeliveryStatus = S.SENT
    code: FailureCode | None = None
    devices: int = 0
    reported: DeliveryStatus | None = None


@dataclass(frozen=True, kw_only=True)
class Shape:
    """Notifications to which the same has happened, and their share of a hundred."""

    share: float
    lives: tuple[Life, ...]
    in_app: bool = False
    due_in: timedelta = timedelta(0)
    within: timedelta | None = None
    """Accepted at most so long ago; all over the month without."""


def _of(channel: Channel, **fields: Any) -> Life:
    return Life(channel=channel, **fields)


def _open(share: float, life: Life, **fields: Any) -> Shape:
    return Shape(share=share, lives=(life,), **{"within": timedelta(hours=1), **fields})


SHAPES = (
    Shape(
        share=30,
        lives=(
            _of(C.EMAIL, reported=S.DELIVERED),
            _of(C.PUSH, devices=2, reported=S.DELIVERED),
        ),
    ),
    Shape(share=17, lives=(_of(C.EMAIL, tries=4, reported=S.DELIVERED),)),
    Shape(share=12, lives=(_of(C.EMAIL, reported=S.DELIVERED), _of(C.WHATSAPP, reported=S.READ))),
    Shape(share=15, lives=(_of(C.PUSH, devices=3),)),
    Shape(share=3, lives=(_of(C.EMAIL),), in_app=True),
    Shape(share=4, lives=(_of(C.EMAIL, tries=4, ends=S.FAILED, code=F.PROVIDER_ERROR),)),
    Shape(share=2, lives=(_of(C.PUSH, devices=2, ends=S.FAILED, code=F.INVALID_RECIPIENT),)),
    Shape(share=2, lives=(_of(C.WHATSAPP, ends=S.FAILED, code=F.REJECTED),)),
    Shape(share=2, lives=(_of(C.EMAIL, reported=S.FAILED, code=F.BOUNCED),)),
    Shape(
        share=5,
        lives=(
            _of(C.EMAIL, reported=S.DELIVERED),
            _of(C.PUSH, tries=4, devices=2, ends=S.FAILED, code=F.CONNECTION_FAILED),
        ),
    ),
    Shape(share=1, lives=(_of(C.EMAIL, tries=0, ends=S.CANCELLED),)),
    Shape(share=1, lives=(_of(C.EMAIL, tries=0, ends=S.EXPIRED, code=F.EXPIRED),)),
    Shape(share=1, lives=(_of(C.EMAIL, tries=0, ends=S.SUPPRESSED, code=F.OPTED_OUT),)),
    _open(3, _of(C.EMAIL, tries=0, ends=S.PENDING), due_in=4 * BACK * 24, within=3 * BACK * 24),
    _open(0.5, _of(C.EMAIL, tries=0, ends=S.PENDING)),
    _open(1, _of(C.EMAIL, ends=S.PENDING, code=F.PROVIDER_ERROR)),
    _open(0.5, _of(C.EMAIL, ends=S.UNKNOWN, code=F.TIMEOUT)),
)
"""Three attempts each on average; one in seven has failed somewhere."""


def seed(shape: Shape, *, now: datetime) -> tuple[Document, list[Document]]:
    """Return a notification to which this has happened, and its attempts."""
    at = now - BACK
    channels = (*(life.channel for life in shape.lives), *((C.IN_APP,) if shape.in_app else ()))
    new = replace(
        mail.new(1, at=at),
        recipient=content.Recipient(email="p@example.com", phone="+351912345678", name="P"),
        deliveries=tuple(NewDelivery(channel=channel) for channel in channels),
        send_at=at + shape.due_in,
    )
    store.accept([new], now=at)
    for life in shape.lives:
        _live(new.id, life, at)
    (document,) = collection("notifications").find({"_id": new.id})
    return document, list(collection("delivery_attempts").find({"notification_id": new.id}))


def _live(owner: ObjectId, life: Life, at: datetime) -> None:
    """Let a channel go through all its tries."""
    if not life.tries:
        _withhold(owner, life, at)
    for number in range(1, life.tries + 1):
        at += WAIT if number > 1 else timedelta(0)
        (claimed,) = store.claim(ids=[owner], channel=life.channel, worker=WORKER, now=at)
        claimed = replace(claimed, device_ids=DEVICES[: life.devices])
        provider = PROVIDERS[life.channel]
        (begun,) = store.start([claimed], provider=provider, worker=WORKER, now=at)
        status = life.ends if number == life.tries else S.PENDING
        store.settle([_settlement(begun, status, life.code, at)], now=at)
    if life.reported is not None:
        target = DEVICES[0] if life.devices else None
        report = store.DeliveryReceipt(
            reference=AttemptReference(owner, life.channel, life.tries, target),
            status=life.reported,
            at=at + timedelta(seconds=20),
            provider=PROVIDERS[life.channel],
            code=life.code,
        )
        store.apply_receipt(report, now=report.at)


def _settlement(
    begun: ClaimedDelivery, status: DeliveryStatus, code: FailureCode | None, at: datetime
) -> Settlement:
    is_sent = status is S.SENT
    message = f"message-{begun.channel}-{begun.attempt_count}" if is_sent else None
    answer = ProviderAnswer(
        provider=PROVIDERS[begun.channel],
        message_id=message,
        response={"status": 202 if is_sent else 503},
    )
    failed = {} if is_sent else {"code": code or F.PROVIDER_ERROR, "reason": "It answered 503."}
    targets: Sequence[str] = begun.device_ids
    return Settlement(
        claimed=begun,
        status=status,
        finished_at=at + timedelta(milliseconds=80),
        duration_ms=80,
        answer=answer,
        next_attempt_at=at + WAIT if status in (S.PENDING, S.UNKNOWN) else None,
        accepted_targets=tuple(targets) if is_sent else (),
        target_attempts=tuple(
            TargetAttempt(
                device_id=target,
                status=ATTEMPT.get(status, A.FAILED),
                finished_at=at + timedelta(milliseconds=80),
                duration_ms=80,
                answer=answer,
                **failed,
            )
            for target in targets
        ),
        **failed,
    )


def _withhold(owner: ObjectId, life: Life, at: datetime) -> None:
    if life.ends is S.CANCELLED:
        store.cancel(
            notification_id=owner, channels=[life.channel], reason="Withdrawn by the app.", now=at
        )
    elif life.ends is not S.PENDING:
        (claimed,) = store.claim(ids=[owner], channel=life.channel, worker=WORKER, now=at)
        code = life.code or F.EXPIRED
        parked = store.Deferred(claimed=claimed, status=life.ends, code=code, reason="Not sent.")
        store.defer([parked], now=at)
