"""Applies provider receipts to deliveries, in any order and any number of times."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
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
from ..store import AttemptReference, DeliveryReceipt

log = structlog.get_logger(__name__)
EVENT_RETENTION = timedelta(days=30)
"""How long an event's id is remembered: providers repeat events for days."""
EARLY_RECEIPT_WINDOW = timedelta(minutes=5)
"""An event about a message we do not know may be faster than our own write: it is tried again."""
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
"""What a delivery becomes. An opened mail is not read: mail programs open mail by themselves."""
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
"""Why a receipt suppresses the address."""
SUCCESS_KINDS = frozenset({K.DELIVERED, K.READ})
"""What shows that an address is good, whatever was said of it before."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a webhook's events."""

    events: int
    changed: int
    repeated: int
    unmatched: int


def apply_receipts(receipts: Sequence[Receipt], *, provider: str, now: datetime) -> Applied:
    """Apply events in any order, any number of times; return what they did."""
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
    _mark_applied(matched, provider, now)
    crash_points.reach(Boundary.RECEIPTS_MARKED)
    record_receipt_spans(changed, codes=FAILURE_CODES, provider=provider, now=now)
    return Applied(len(receipts), len(changed), len(receipts) - len(new), len(unmatched))


def apply_early_receipts(*, now: datetime, limit: int = 500) -> int:
    """Try events again whose message was not known when they came; return how many it is now."""
    stored = list(collection("early_receipts").find().limit(limit))
    found = 0
    for provider in {document["provider"] for document in stored}:
        early = [_from_document(d["receipt"]) for d in stored if d["provider"] == provider]
        applied = apply_receipts(early, provider=provider, now=now)
        found += len(early) - applied.unmatched
    return found


def _references(receipts: Sequence[Receipt]) -> dict[str, AttemptReference]:
    """Return what each event is about, by the event's id; what nobody knows is left out.

    A provider that does not return our reference is found by its own id of the message.
    """
    known = {r.event_id: AttemptReference.parse(r.reference or "") for r in receipts}
    provider_ids = {r.provider_id for r in receipts if known[r.event_id] is None and r.provider_id}
    by_message = queries.by_provider_message(sorted(provider_ids))
    found = {r.event_id: known[r.event_id] or by_message.get(r.provider_id or "") for r in receipts}
    return {event_id: reference for event_id, reference in found.items() if reference is not None}


def _store_early(receipts: Sequence[Receipt], provider: str, now: datetime) -> None:
    """Store events that nothing is known of yet; those that are too old are logged and dropped."""
    for receipt in receipts:
        key = _event_key(receipt, provider)
        if receipt.provider_id is None or now - receipt.at >= EARLY_RECEIPT_WINDOW:
            log.warning("receipt_unmatched", provider=provider, kind=receipt.kind.value, id=key)
            collection("early_receipts").delete_one({"_id": key})
            continue
        collection("early_receipts").update_one(
            {"_id": key},
            {
                "$setOnInsert": {
                    "provider": provider,
                    "receipt": _to_document(receipt),
                    "expires_at": now + 2 * EARLY_RECEIPT_WINDOW,
                }
            },
            upsert=True,
        )


def _to_document(receipt: Receipt) -> dict[str, Any]:
    return {**asdict(receipt), "kind": receipt.kind.value}


def _from_document(stored: Mapping[str, Any]) -> Receipt:
    return Receipt(**{**stored, "kind": ReceiptKind(stored["kind"])})


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
    log.info(
        "receipt_applied",
        delivery_id=str(reference),
        provider=provider,
        kind=receipt.kind.value,
        changed=changed,
    )
    return changed


def _apply_reputation(
    receipt: Receipt, reference: AttemptReference, provider: str, now: datetime
) -> None:
    """Suppress the address an event speaks against, or count it; one that speaks for it clears."""
    is_negative = receipt.kind in SUPPRESSIONS or receipt.is_undeliverable
    if not is_negative and (
        reference.channel is not Channel.WHATSAPP or receipt.kind not in SUCCESS_KINDS
    ):
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
    """Return whom an event is about, as we wrote to them: some numbers are reported otherwise.

    None for a test: it reached nobody, so it says nothing about anybody's address.
    """
    document = queries.get(notification_id=reference.notification_id)
    if document is not None and document.get("is_test", False):
        return None
    if reference.channel is not Channel.WHATSAPP or document is None:
        return receipt.address
    return document["recipient"].get("phone") or receipt.address


def _deduplicate(receipts: Sequence[Receipt], provider: str) -> list[Receipt]:
    """Return the events that were not applied before, each once."""
    by_id = {_event_key(receipt, provider): receipt for receipt in receipts}
    seen = collection("provider_events").find({"_id": {"$in": sorted(by_id)}}, {"_id": 1})
    for document in seen:
        del by_id[document["_id"]]
    return list(by_id.values())


def _mark_applied(receipts: Sequence[Receipt], provider: str, now: datetime) -> None:
    documents = [
        {"_id": _event_key(receipt, provider), "expires_at": now + EVENT_RETENTION}
        for receipt in receipts
    ]
    if not documents:
        return
    by_message = [_event_key(r, provider) for r in receipts if not r.reference]
    if by_message:
        collection("early_receipts").delete_many({"_id": {"$in": by_message}})
    try:
        collection("provider_events").insert_many(documents, ordered=False)
    except BulkWriteError as error:
        # The same events came twice at once; both were applied, to the same end.
        if not is_duplicate(error):
            raise


def _event_key(receipt: Receipt, provider: str) -> str:
    return f"{provider}:{receipt.event_id}"


def record_receipt_spans(
    receipts: Sequence[tuple[Receipt, AttemptReference]],
    *,
    codes: Mapping[ReceiptKind, FailureCode],
    provider: str,
    now: datetime,
) -> None:
    """Tell of reports that changed a delivery, linked to their webhook; ``codes``: of bad news."""
    if not tracing.is_on() or not receipts:
        return
    try:
        parents = queries.traceparents({reference.notification_id for _, reference in receipts})
    except PyMongoError as error:
        # The reports are applied: who watches the work does not have them sent again.
        log.warning("spans_lost", reason=type(error).__name__)
        return
    webhook = tracing.traceparent()
    for receipt, reference in receipts:
        if (parent := parents.get(reference.notification_id)) is None:
            continue
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
            error=codes[receipt.kind].value if receipt.kind in codes else None,
        )
        tracing.record(span, parent=parent, link=webhook)
