"""Applies providers' receipts to deliveries. Order and repetition don't affect the result."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

import structlog
from bson import ObjectId
from pymongo.errors import BulkWriteError, PyMongoError

from domain.channels import Channel, address_key
from domain.countries import country_of
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.documents.records import (
    EARLY_RECEIPTS,
    PROVIDER_EVENTS,
    Billing,
    EarlyReceiptDocument,
    ProviderEventDocument,
    StoredReceipt,
)
from notifications.store import country_units, steps
from notifications.store import receipts as store_receipts
from notifications.store.reading import recipient_of
from notifications.store.receipts import DeliveryReceipt
from notifications.store.references import AttemptReference
from notifyproject.db.collections import is_duplicate
from notifyproject.platform import crash_points, tracing
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.tracing import Kind, Span
from providers.accounts import channel_of, reports_on
from providers.contract import AddressEffect, Receipt, ReceiptKind
from recipients import suppressions
from recipients.models import SuppressionReason

from .. import callback_events, queries
from ..queries import SentMessage
from ..queueing import fair_queue

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
SUPPRESSIONS: Mapping[AddressEffect, SuppressionReason] = {
    AddressEffect.HARD_BOUNCE: SuppressionReason.HARD_BOUNCE,
    AddressEffect.SOFT_BOUNCE: SuppressionReason.HARD_BOUNCE,
    AddressEffect.PROBABLE_BOUNCE: SuppressionReason.HARD_BOUNCE,
    AddressEffect.COMPLAINT: SuppressionReason.COMPLAINT,
    AddressEffect.UNSUBSCRIBED: SuppressionReason.UNSUBSCRIBED,
}
SOFT_BOUNCES: Mapping[AddressEffect, int] = {
    AddressEffect.SOFT_BOUNCE: 1,
    AddressEffect.PROBABLE_BOUNCE: 2,
}
"""As how many soft bounces each effect counts. Others suppress at once."""
SUCCESS_KINDS = frozenset({K.DELIVERED, K.READ})  # Kinds that clear the soft bounces of an address
RECEIPTS_AT_ONCE = 500
"""Receipts that are applied and remembered together, so that a large webhook that is repeated after
a failure goes on where it ended."""


@dataclass(frozen=True, slots=True)
class Applied:
    """Counts of a webhook's events by what was done with them."""

    events: int
    changed: int
    repeated: int
    unmatched: int


def apply_receipts(receipts: Sequence[Receipt], *, provider: str, now: datetime) -> Applied:
    """Apply a provider's receipts and return the counts."""
    parts = [
        _apply_part(receipts[start : start + RECEIPTS_AT_ONCE], provider, now)
        for start in range(0, len(receipts), RECEIPTS_AT_ONCE)
    ]
    callback_events.enqueue_publisher(now=now)
    return Applied(
        events=len(receipts),
        changed=sum(part.changed for part in parts),
        repeated=sum(part.repeated for part in parts),
        unmatched=sum(part.unmatched for part in parts),
    )


def _apply_part(receipts: Sequence[Receipt], provider: str, now: datetime) -> Applied:
    new = _deduplicate(receipts, provider)
    references = _references(new, provider)
    changed: list[tuple[Receipt, AttemptReference]] = []
    unmatched = [receipt for receipt in new if receipt.event_id not in references]
    matched = [receipt for receipt in new if receipt.event_id in references]
    suspects = _suspects(matched, references)
    for receipt in matched:
        reference = references[receipt.event_id]
        if _apply_one(receipt, reference, provider, now):
            changed.append((receipt, reference))
        crash_points.reach(Boundary.RECEIPT_APPLIED)
        _apply_reputation(receipt, reference, suspects, provider, now)
    _apply_unmatched(unmatched, provider, now)
    _mark_applied(matched, references, provider, now)
    crash_points.reach(Boundary.RECEIPTS_MARKED)
    _record_pumping(matched, references, provider, now)
    _record_spans(changed, provider, now)
    return Applied(len(receipts), len(changed), len(receipts) - len(new), len(unmatched))


def apply_early_receipts(*, now: datetime, limit: int = 2_000) -> int:
    """Apply stored receipts again. Return for how many the message is known by now."""
    # The newest first: many may be of other applications of the account, whose messages stay
    # unknown.
    newest = [("expires_at", -1)]
    stored = list(EARLY_RECEIPTS().find(sort=newest, limit=limit))
    found = 0
    for provider in {document["provider"] for document in stored}:
        early = list[Receipt]()
        for document in stored:
            if document["provider"] == provider:
                try:
                    early.append(_restore(document["receipt"]))
                except ValueError as problem:
                    # A process of the version that stored it applies it.
                    log.warning("receipt_unknown", id=document["_id"], reason=str(problem))
        applied = apply_receipts(early, provider=provider, now=now)
        found += len(early) - applied.unmatched
    return found


def _references(receipts: Sequence[Receipt], provider: str) -> dict[str, AttemptReference]:
    # References are in the headers of messages: an account may name only its own channel's.
    channel, own = channel_of(provider), (None, *reports_on(provider))
    known = {r.event_id: _reference_on(r, channel) for r in receipts}
    by_id = [r for r in receipts if known[r.event_id] is None and r.provider_id]
    ids = {message_id for r in by_id for message_id in (r.provider_id or "", *r.other_ids)}
    sent = queries.by_provider_message(sorted(ids))
    for receipt in by_id:
        known[receipt.event_id] = _match(receipt, sent, own)
    return {event_id: reference for event_id, reference in known.items() if reference is not None}


def _reference_on(receipt: Receipt, channel: Channel | None) -> AttemptReference | None:
    reference = AttemptReference.parse(receipt.reference or "")
    is_other = reference is not None and channel is not None and reference.channel != channel
    return None if is_other else reference


def _match(
    receipt: Receipt, sent: Mapping[str, Sequence[SentMessage]], own: Collection[str | None]
) -> AttemptReference | None:
    """Return the attempt that a receipt names by its message ID, and by its address if necessary.

    Emails of one send batch share the ID. Without an address, it then names none of them.
    """
    for provider_id in (receipt.provider_id or "", *receipt.other_ids):
        found = [attempt for attempt in sent.get(provider_id, ()) if attempt.provider in own]
        if len(found) > 1 and receipt.address is not None:
            found = [attempt for attempt in found if _is_to(receipt.address, attempt)]
        if len(found) == 1:
            return found[0].reference
    return None


def _is_to(address: str, attempt: SentMessage) -> bool:
    channel = attempt.reference.channel.value
    return attempt.address is not None and address_key(channel, attempt.address) == address_key(
        channel, address
    )


def _apply_unmatched(receipts: Sequence[Receipt], provider: str, now: datetime) -> None:
    """Apply what receipts of unknown messages say about addresses, and store the rest for later.

    A bounce that arrives by mail has no ID of ours, and a person's complaint counts in any case.
    """
    final, early = list[Receipt](), list[Receipt]()
    for receipt in receipts:
        is_final = receipt.provider_id is None or now - receipt.at >= EARLY_RECEIPT_WINDOW
        (final if is_final else early).append(receipt)
    is_new = _store_early(early, provider, now)
    new = [*final, *(receipt for receipt in early if is_new(receipt))]
    # Early receipts may outlive their provider.
    if (channel := channel_of(provider)) is not None:
        effective = {receipt.address for receipt in new if receipt.address_effect}
        tested = queries.only_tested(channel, {address for address in effective if address})
        for receipt in new:
            if receipt.address not in tested:
                _apply_to_address(receipt, channel, provider, now)
    for receipt in final:
        key = _event_key(receipt, provider)
        log.warning("receipt_unmatched", provider=provider, kind=receipt.kind.value, id=key)
    if final:
        keys = [_event_key(receipt, provider) for receipt in final]
        EARLY_RECEIPTS().delete_many({"_id": {"$in": keys}})
    _remember(
        [_applied_entry(receipt, provider, now) for receipt in final if receipt.address_effect]
    )


def _store_early(
    receipts: Sequence[Receipt], provider: str, now: datetime
) -> Callable[[Receipt], bool]:
    """Store receipts of unknown messages for another try. Return which of them are new."""
    if not receipts:
        return lambda _receipt: False
    by_key = {_event_key(receipt, provider): receipt for receipt in receipts}
    found = EARLY_RECEIPTS().find({"_id": {"$in": sorted(by_key)}}, {"_id": 1})
    known = {document["_id"] for document in found}
    documents: list[EarlyReceiptDocument] = [
        {
            "_id": key,
            "provider": provider,
            "receipt": _stored(receipt),
            "expires_at": now + 2 * EARLY_RECEIPT_WINDOW,
        }
        for key, receipt in by_key.items()
        if key not in known
    ]
    try:
        if documents:
            EARLY_RECEIPTS().insert_many(documents, ordered=False)
    except BulkWriteError as error:
        # A concurrent call stored them, and takes care of their addresses.
        if not is_duplicate(error):
            raise
        known |= {str(documents[error["index"]]["_id"]) for error in error.details["writeErrors"]}
    return lambda receipt: _event_key(receipt, provider) not in known


def _stored(receipt: Receipt) -> StoredReceipt:
    stored: StoredReceipt = {
        "reference": receipt.reference,
        "provider_id": receipt.provider_id,
        "kind": receipt.kind.value,
        "at": receipt.at,
        "reason": receipt.reason,
        "event_id": receipt.event_id,
        "address": receipt.address,
        "effect": receipt.effect.value if receipt.effect else None,
        "other_ids": list(receipt.other_ids),
    }
    if receipt.code is not None:
        stored["code"] = receipt.code.value
    if receipt.is_pumping:
        stored["is_pumping"] = True
    _note_billing(stored, receipt)
    return stored


def _note_billing(document: Billing, receipt: Receipt) -> None:
    """Add what a receipt says about the price of a message."""
    if receipt.units is not None:
        document["units"] = receipt.units
    if receipt.cost is not None and receipt.currency is not None:
        document["cost"], document["currency"] = f"{receipt.cost:f}", receipt.currency


def _restore(stored: StoredReceipt) -> Receipt:
    return Receipt(
        reference=stored["reference"],
        provider_id=stored["provider_id"],
        kind=ReceiptKind(stored["kind"]),
        at=stored["at"],
        reason=stored["reason"],
        event_id=stored["event_id"],
        address=stored["address"],
        effect=AddressEffect(stored["effect"]) if stored["effect"] else None,
        other_ids=tuple(stored["other_ids"]),
        code=FailureCode(code) if (code := stored.get("code")) else None,
        units=stored.get("units"),
        cost=Decimal(cost) if (cost := stored.get("cost")) else None,
        currency=stored.get("currency"),
        is_pumping=stored.get("is_pumping", False),
    )


def _apply_to_address(receipt: Receipt, channel: Channel, provider: str, now: datetime) -> None:
    """Apply what a receipt says about an address if its message is unknown."""
    effect, address = receipt.address_effect, receipt.address
    if effect is None or address is None:
        return
    log.info("address_reported", provider=provider, channel=channel.value, effect=effect.value)
    _record_effect(receipt, effect, channel=channel, address=address, provider=provider, now=now)


def _apply_one(receipt: Receipt, reference: AttemptReference, provider: str, now: datetime) -> bool:
    status = DELIVERY_STATUSES.get(receipt.kind)
    if status is None:
        return False
    changed = store_receipts.apply_receipt(
        DeliveryReceipt(
            reference=reference,
            status=status,
            at=min(receipt.at, now),
            provider=provider,
            reports_on=reports_on(provider),
            provider_message_id=receipt.provider_id,
            code=_failure_code(receipt),
            reason=receipt.reason or "The provider gave no reason.",
        ),
        now=now,
    )
    if changed and status is S.FAILED:
        _open_next_step(reference.notification_id, now)
    log.info(
        "receipt_applied",
        delivery_id=reference.delivery_id,
        attempt=reference.attempt_number,
        device_id=reference.device_id,
        provider=provider,
        kind=receipt.kind.value,
        changed=changed,
    )
    return changed


def _record_pumping(
    receipts: Sequence[Receipt],
    references: Mapping[str, AttemptReference],
    provider: str,
    now: datetime,
) -> None:
    """Count the texts that a provider blocked for pumping, by country."""
    blocked = [receipt for receipt in receipts if receipt.is_pumping]
    try:
        addresses = [_address(receipt, references[receipt.event_id]) for receipt in blocked]
        countries = Counter(
            country for address in addresses if (country := country_of(address or "")) is not None
        )
        country_units.record_blocks(countries, provider=provider, now=now)
    except PyMongoError as error:
        # An alert may come late. The receipts are applied, and the provider need not repeat them.
        log.warning("blocks_not_counted", reason=type(error).__name__, texts=len(blocked))


def _failure_code(receipt: Receipt) -> FailureCode | None:
    return receipt.code or FAILURE_CODES.get(receipt.kind)


def _open_next_step(notification_id: ObjectId, now: datetime) -> None:
    if steps.open_next_steps(ids=[notification_id], now=now):
        document = queries.get(notification_id=notification_id)
        if document is not None:
            fair_queue.enqueue_wakeups([document], now=now)


def _suspects(receipts: Sequence[Receipt], references: Mapping[str, AttemptReference]) -> set[str]:
    """Return the keys of the addresses with a soft bounce that got a message."""
    keys = [_key(r, references[r.event_id]) for r in receipts if r.kind in SUCCESS_KINDS]
    return suppressions.with_soft_bounces([key for key in keys if key is not None])


def _key(receipt: Receipt, reference: AttemptReference) -> str | None:
    spec = reference.channel.spec
    if spec.address is None or spec.reports_other_spellings or receipt.address is None:
        return None
    return address_key(reference.channel.value, receipt.address)


def _apply_reputation(
    receipt: Receipt,
    reference: AttemptReference,
    suspects: set[str],
    provider: str,
    now: datetime,
) -> None:
    effect, key = receipt.address_effect, _key(receipt, reference)
    # Another spelling of the address has another key.
    is_suspect = key in suspects or reference.channel.spec.reports_other_spellings
    is_success = receipt.kind in SUCCESS_KINDS and is_suspect
    if effect is None and not is_success:
        return
    address, channel = _address(receipt, reference), reference.channel
    if address is None:
        return
    if effect is None:
        suppressions.clear_soft_bounces(channel=channel.value, address=address)
        return
    if effect in SOFT_BOUNCES and key is not None:
        suspects.add(key)
    _record_effect(receipt, effect, channel=channel, address=address, provider=provider, now=now)


def _record_effect(
    receipt: Receipt,
    effect: AddressEffect,
    *,
    channel: Channel,
    address: str,
    provider: str,
    now: datetime,
) -> None:
    suppressions.record_bounce(
        channel=channel.value,
        address=address,
        reason=SUPPRESSIONS[effect],
        soft_bounces=SOFT_BOUNCES.get(effect),
        # Once for a message: a repeated event may have another ID.
        event=receipt.reference or receipt.provider_id or receipt.at.isoformat(),
        source=provider,
        # An opt-in that is younger lifts it, in whatever order they arrive.
        now=min(receipt.at, now) if effect is AddressEffect.UNSUBSCRIBED else now,
    )


def _address(receipt: Receipt, reference: AttemptReference) -> str | None:
    """Return the address of the delivery, None for a test."""
    document = queries.get(notification_id=reference.notification_id)
    if document is not None and document.get("is_test", False):
        return None
    if not reference.channel.spec.reports_other_spellings or document is None:
        return receipt.address
    return recipient_of(document).address(reference.channel) or receipt.address


def _deduplicate(receipts: Sequence[Receipt], provider: str) -> list[Receipt]:
    by_id = {_event_key(receipt, provider): receipt for receipt in receipts}
    seen = PROVIDER_EVENTS().find({"_id": {"$in": sorted(by_id)}}, {"_id": 1})
    for document in seen:
        del by_id[document["_id"]]
    return list(by_id.values())


def _mark_applied(
    receipts: Sequence[Receipt],
    references: Mapping[str, AttemptReference],
    provider: str,
    now: datetime,
) -> None:
    by_message = [_event_key(r, provider) for r in receipts if not r.reference]
    if by_message:
        EARLY_RECEIPTS().delete_many({"_id": {"$in": by_message}})
    _remember(
        [
            _applied_entry(receipt, provider, now)
            | {
                "notification_id": references[receipt.event_id].notification_id,
                "channel": references[receipt.event_id].channel.value,
            }
            for receipt in receipts
        ]
    )


def _applied_entry(receipt: Receipt, provider: str, now: datetime) -> ProviderEventDocument:
    entry: ProviderEventDocument = {
        "_id": _event_key(receipt, provider),
        "provider": provider,
        "kind": receipt.kind.value,
        "at": min(receipt.at, now),
        "expires_at": now + EVENT_RETENTION,
    }
    _note_billing(entry, receipt)
    if receipt.reason:
        entry["reason"] = receipt.reason
    return entry


def _remember(entries: Sequence[ProviderEventDocument]) -> None:
    """Store applied events, so that a repeated one has no effect."""
    if not entries:
        return
    try:
        PROVIDER_EVENTS().insert_many(entries, ordered=False)
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
        code = _failure_code(receipt)
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
