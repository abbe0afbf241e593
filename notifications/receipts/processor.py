"""Applies providers' receipts to deliveries. Order and repetition don't affect the result."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

import structlog
from bson import ObjectId
from pymongo.errors import BulkWriteError, PyMongoError

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifyproject.db.collections import collection, is_duplicate
from notifyproject.platform import crash_points, tracing
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.tracing import Kind, Span
from providers.contract import Receipt, ReceiptKind
from recipients import suppressions
from recipients.models import SuppressionReason

from .. import callback_events, queries, store
from ..queueing import fair_queue
from ..store import AttemptReference, DeliveryReceipt

log = structlog.get_logger(__name__)
EVENT_RETENTION = timedelta(days=30)
"""Time for which applied event IDs are remembered: providers repeat events for days."""
EARLY_RECEIPT_WINDOW = timedelta(minutes=5)
"""Receipts of unknown messages are retried for this long: they may precede the store's write."""
K, S = ReceiptKind, DeliveryStatus
DELIVERY_STATUSES: Mapping[ReceiptKind, DeliveryStatus] = {
    K.QUEUED: S.SENT,
    K.SENT: S.SENT,
    K.DELIVERED: S.DELIVERED,
    K.READ: S.READ,
    K.BOUNCED: S.FAILED,
    K.BLOCKED: S.FAILED,
    K.REJECTED: S.FAILED,
    K.FAILED: S.FAILED,
}
"""Resulting status. An opened email is not read: mail programs open email by themselves."""
FAILURE_CODES: Mapping[ReceiptKind, FailureCode] = {
    K.BOUNCED: FailureCode.BOUNCED,
    K.BLOCKED: FailureCode.BLOCKED,
    K.REJECTED: FailureCode.DROPPED,
    K.FAILED: FailureCode.REPORTED_FAILED,
}
SUPPRESSIONS: Mapping[ReceiptKind, SuppressionReason] = {
    K.BOUNCED: SuppressionReason.HARD_BOUNCE,
    K.COMPLAINED: SuppressionReason.COMPLAINT,
    K.UNSUBSCRIBED: SuppressionReason.UNSUBSCRIBED,
}
SUCCESS_KINDS = frozenset({K.DELIVERED, K.READ})  # Kinds that clear the soft bounces of an address


@dataclass(frozen=True, slots=True)
class Applied:
    """Counts of a webhook's events by what was done with them."""

    events: int
    changed: int
    repeated: int
    unmatched: int


def apply_receipts(receipts: Sequence[Receipt], *, provider: str, now: datetime) -> Applied:
    """Apply a provider's receipts and return the counts."""
    new = _deduplicate(receipts, provider)
    references = _references(new)
    changed: list[tuple[Receipt, AttemptReference]] = []
    unmatched = [receipt for receipt in new if receipt.event_id not in references]
    matched = [receipt for receipt in new if receipt.event_id in references]
    for receipt in matched:
        reference = references[receipt.event_id]
        if _apply_one(receipt, reference, provider, now):
            changed.append((receipt, reference))
        crash_points.reach(Boundary.RECEIPT_APPLIED)
        _apply_reputation(receipt, reference, provider, now)
    _store_early(unmatched, provider, now)
    callback_events.enqueue_publisher(now=now)
    _mark_applied(matched, references, provider, now)
    crash_points.reach(Boundary.RECEIPTS_MARKED)
    _record_spans(changed, provider, now)
    return Applied(len(receipts), len(changed), len(receipts) - len(new), len(unmatched))


def apply_early_receipts(*, now: datetime, limit: int = 500) -> int:
    """Apply stored receipts again. Return for how many the message is known by now."""
    stored = list(collection("early_receipts").find().limit(limit))
    found = 0
    for provider in {document["provider"] for document in stored}:
        early = [
            Receipt(**{**one["receipt"], "kind": ReceiptKind(one["receipt"]["kind"])})
            for one in stored
            if one["provider"] == provider
        ]
        applied = apply_receipts(early, provider=provider, now=now)
        found += len(early) - applied.unmatched
    return found


def _references(receipts: Sequence[Receipt]) -> dict[str, AttemptReference]:
    known = {r.event_id: AttemptReference.parse(r.reference or "") for r in receipts}
    provider_ids = {r.provider_id for r in receipts if known[r.event_id] is None and r.provider_id}
    by_message = queries.by_provider_message(sorted(provider_ids))
    found = {r.event_id: known[r.event_id] or by_message.get(r.provider_id or "") for r in receipts}
    return {event_id: reference for event_id, reference in found.items() if reference is not None}


def _store_early(receipts: Sequence[Receipt], provider: str, now: datetime) -> None:
    """Store receipts of unknown messages for another try. Receipts that are too old are dropped."""
    for receipt in receipts:
        key = _event_key(receipt, provider)
        if receipt.provider_id is None or now - receipt.at >= EARLY_RECEIPT_WINDOW:
            log.warning("receipt_unmatched", provider=provider, kind=receipt.kind.value, id=key)
            collection("early_receipts").delete_one({"_id": key})
            continue
        stored = {
            "provider": provider,
            "receipt": {**asdict(receipt), "kind": receipt.kind.value},
            "expires_at": now + 2 * EARLY_RECEIPT_WINDOW,
        }
        collection("early_receipts").update_one({"_id": key}, {"$setOnInsert": stored}, upsert=True)


def _apply_one(receipt: Receipt, reference: AttemptReference, provider: str, now: datetime) -> bool:
    status = DELIVERY_STATUSES.get(receipt.kind)
    if status is None:
        return False
    changed = store.apply_receipt(
        DeliveryReceipt(
            reference=reference,
            status=status,
            at=min(receipt.at, now),
            provider=provider,
            provider_message_id=receipt.provider_id,
            code=FAILURE_CODES.get(receipt.kind),
            reason=receipt.reason or "The provider gave no reason.",
        ),
        now=now,
    )
    if changed and status is S.FAILED:
        _open_next_step(reference.notification_id, now)
    log.info(
        "receipt_applied",
        delivery_id=str(reference),
        provider=provider,
        kind=receipt.kind.value,
        changed=changed,
    )
    return changed


def _open_next_step(notification_id: ObjectId, now: datetime) -> None:
    if store.open_next_steps(ids=[notification_id], now=now):
        document = queries.get(notification_id=notification_id)
        if document is not None:
            fair_queue.enqueue_wakeups([document], now=now)


def _apply_reputation(
    receipt: Receipt, reference: AttemptReference, provider: str, now: datetime
) -> None:
    is_negative = receipt.kind in SUPPRESSIONS or receipt.is_undeliverable
    is_success = reference.channel is Channel.WHATSAPP and receipt.kind in SUCCESS_KINDS
    if not is_negative and not is_success:
        return
    channel = reference.channel.value
    address = _address(receipt, reference)
    if address is None:
        return
    if not is_negative:
        suppressions.clear_soft_bounces(channel=channel, address=address)
        return
    suppressions.record_bounce(
        channel=channel,
        address=address,
        reason=SUPPRESSIONS.get(receipt.kind, SuppressionReason.HARD_BOUNCE),
        is_soft=receipt.is_undeliverable,
        event=receipt.event_id,
        source=provider,
        now=now,
    )


def _address(receipt: Receipt, reference: AttemptReference) -> str | None:
    """Return the address of the delivery, None for a test. WhatsApp may report it differently."""
    document = queries.get(notification_id=reference.notification_id)
    if document is not None and document.get("is_test", False):
        return None
    if reference.channel is not Channel.WHATSAPP or document is None:
        return receipt.address
    return document["recipient"].get("phone") or receipt.address


def _deduplicate(receipts: Sequence[Receipt], provider: str) -> list[Receipt]:
    by_id = {_event_key(receipt, provider): receipt for receipt in receipts}
    seen = collection("provider_events").find({"_id": {"$in": sorted(by_id)}}, {"_id": 1})
    for document in seen:
        del by_id[document["_id"]]
    return list(by_id.values())


def _mark_applied(
    receipts: Sequence[Receipt],
    references: Mapping[str, AttemptReference],
    provider: str,
    now: datetime,
) -> None:
    if not receipts:
        return
    expires_at = now + EVENT_RETENTION
    documents = [
        {
            "_id": _event_key(receipt, provider),
            "notification_id": references[receipt.event_id].notification_id,
            "channel": references[receipt.event_id].channel.value,
            "kind": receipt.kind.value,
            "at": min(receipt.at, now),
            **({"reason": receipt.reason} if receipt.reason else {}),
            "expires_at": expires_at,
        }
        for receipt in receipts
    ]
    by_message = [_event_key(r, provider) for r in receipts if not r.reference]
    if by_message:
        collection("early_receipts").delete_many({"_id": {"$in": by_message}})
    try:
        collection("provider_events").insert_many(documents, ordered=False)
    except BulkWriteError as error:
        # Concurrent calls with the same events; both were applied, with the same result.
        if not is_duplicate(error):
            raise


def _event_key(receipt: Receipt, provider: str) -> str:
    return f"{provider}:{receipt.event_id}"


def _record_spans(
    receipts: Sequence[tuple[Receipt, AttemptReference]], provider: str, now: datetime
) -> None:
    if not tracing.is_on() or not receipts:
        return
    try:
        parents = queries.traceparents({reference.notification_id for _, reference in receipts})
    except PyMongoError as error:
        # The receipts are applied: a tracing failure must not make the provider send them again.
        log.warning("spans_lost", reason=type(error).__name__)
        return
    webhook = tracing.traceparent()
    for receipt, reference in receipts:
        if (parent := parents.get(reference.notification_id)) is None:
            continue
        code = FAILURE_CODES.get(receipt.kind)
        span = Span(
            name=f"receipt {receipt.kind}",
            kind=Kind.CONSUMER,
            began_at=min(receipt.at, now),
            ended_at=now,
            attributes={
                "notify.notification.id": str(reference.notification_id),
                "notify.channel": reference.channel.value,
                "notify.attempt": reference.attempt_number,
                "notify.provider": provider,
            },
            error=code.value if code else None,
        )
        tracing.record(span, parent=parent, link=webhook)
