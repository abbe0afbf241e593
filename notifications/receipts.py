"""Provider events to the store: what each kind of event means for a delivery and an address."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from pymongo.errors import BulkWriteError

from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from recipients.suppressions import suppress

from . import store
from .channels.base import Receipt, ReceiptKind
from .errors import FailureCode
from .states import DeliveryStatus
from .store import Reference, Report

log = structlog.get_logger(__name__)

EVENT_MEMORY = timedelta(days=30)
"""How long an event's id is remembered: providers repeat events for days."""
LOG_RETENTION = timedelta(days=30)
K, S = ReceiptKind, DeliveryStatus

STATUSES: Mapping[ReceiptKind, DeliveryStatus] = {
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

CODES: Mapping[ReceiptKind, FailureCode] = {
    K.BOUNCED: FailureCode.BOUNCED,
    K.BLOCKED: FailureCode.BLOCKED,
    K.REJECTED: FailureCode.DROPPED,
    K.FAILED: FailureCode.REPORTED_FAILED,
}

SUPPRESSIONS: Mapping[ReceiptKind, tuple[SuppressionReason, bool]] = {
    K.BOUNCED: (SuppressionReason.HARD_BOUNCE, False),
    K.COMPLAINED: (SuppressionReason.COMPLAINT, False),
    K.UNSUBSCRIBED: (SuppressionReason.UNSUBSCRIBED, True),
}
"""Why an address gets nothing more; whether only marketing is meant."""


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a webhook's events."""

    events: int
    changed: int
    repeated: int
    unmatched: int


def receive(receipts: Sequence[Receipt], *, provider: str, body: str, now: datetime) -> Applied:
    """Log a verified webhook, apply its events, and remember them.

    Applying twice ends as applying once: should this fail half-way, the provider sends it again.
    """
    entry = collection("webhook_log").insert_one(
        {
            "provider": provider,
            "received_at": now,
            "body": body,
            "event_count": len(receipts),
            "applied_count": 0,
            "unmatched_count": 0,
            "purge_at": now + LOG_RETENTION,
        }
    )
    applied = apply(receipts, provider=provider, now=now)
    collection("webhook_log").update_one(
        {"_id": entry.inserted_id},
        {
            "$set": {
                "applied_count": applied.changed,
                "unmatched_count": applied.unmatched,
                "processed_at": now,
            }
        },
    )
    return applied


def apply(receipts: Sequence[Receipt], *, provider: str, now: datetime) -> Applied:
    """Apply events in any order, any number of times; return what they did."""
    new = _unseen(receipts, provider)
    changed = unmatched = 0
    for receipt in new:
        reference = Reference.parse(receipt.reference or "")
        if reference is None:
            unmatched += 1
            log.info("receipt_unmatched", provider=provider, kind=receipt.kind.value)
            continue
        changed += _apply_one(receipt, reference, provider, now)
        _suppress(receipt, reference, provider, now)
    _remember(new, provider, now)
    return Applied(len(receipts), changed, len(receipts) - len(new), unmatched)


def _apply_one(receipt: Receipt, reference: Reference, provider: str, now: datetime) -> bool:
    status = STATUSES.get(receipt.kind)
    if status is None:
        return False
    changed = store.apply_report(
        Report(
            reference=reference,
            status=status,
            at=min(receipt.at, now),
            provider=provider,
            provider_message_id=receipt.provider_id,
            code=CODES.get(receipt.kind),
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


def _suppress(receipt: Receipt, reference: Reference, provider: str, now: datetime) -> None:
    if receipt.kind not in SUPPRESSIONS or not receipt.address:
        return
    reason, marketing_only = SUPPRESSIONS[receipt.kind]
    suppress(
        channel=reference.channel.value,
        address=receipt.address,
        reason=reason,
        source=provider,
        marketing_only=marketing_only,
        now=now,
    )


def _unseen(receipts: Sequence[Receipt], provider: str) -> list[Receipt]:
    """Return the events that were not applied before, each once."""
    by_id = {_event_key(receipt, provider): receipt for receipt in receipts}
    seen = collection("provider_events").find({"_id": {"$in": sorted(by_id)}}, {"_id": 1})
    for document in seen:
        del by_id[document["_id"]]
    return list(by_id.values())


def _remember(receipts: Sequence[Receipt], provider: str, now: datetime) -> None:
    documents = [
        {"_id": _event_key(receipt, provider), "expires_at": now + EVENT_MEMORY}
        for receipt in receipts
    ]
    if not documents:
        return
    try:
        collection("provider_events").insert_many(documents, ordered=False)
    except BulkWriteError as error:
        # The same events came twice at once; both were applied, to the same end.
        if any(problem["code"] != store.DUPLICATE_KEY for problem in error.details["writeErrors"]):
            raise


def _event_key(receipt: Receipt, provider: str) -> str:
    return f"{provider}:{receipt.event_id}"
