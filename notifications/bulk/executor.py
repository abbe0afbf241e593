"""Acts on notifications, once each, and skips those that were resent already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId

from domain import time
from domain.states import FINAL_BULK_OUTCOMES, OPEN, SUCCEEDED, BulkAction, BulkOutcome, Channel
from domain.time import Clock
from notifyproject.db.collections import collection
from notifyproject.platform import audit

from .. import queries
from ..models import Notification
from ..resend import actions
from ..resend.assessment import assess_risks
from ..resend.risk import ResendRisk, RiskKind
from ..store import Document
from . import results, selection
from .operation import Operation, Position, resend_id
from .results import DeliveryKey, DeliveryOutcome

ALREADY_RESENT = ResendRisk(
    kind=RiskKind.MAY_DUPLICATE, reason="It was sent again already, as another notification."
)
_OPEN_OR_SUCCEEDED = frozenset(status.value for status in OPEN | SUCCEEDED)


def find_duplicates(operation: Operation, documents: Sequence[Document]) -> set[DeliveryKey]:
    """Return the deliveries whose resend is under way or has arrived, this operation's own aside.

    One read by id for all of them.
    """
    originals = {
        resend: document["_id"]
        for document in documents
        for resend in document.get("resent_as", ())
        if resend != resend_id(operation, document["_id"])
    }
    if not originals:
        return set()
    found = collection("notifications").find(
        {"_id": {"$in": list(originals)}}, {"delivery.channel": 1, "delivery.status": 1}
    )
    return {
        DeliveryKey(originals[resend["_id"]], Channel(delivery["channel"]))
        for resend in found
        for delivery in resend["delivery"]
        if delivery["status"] in _OPEN_OR_SUCCEEDED
    }


CHANGED, GONE, REFUSED = "changed", "gone", "refused"
"""Why not, beside the verdicts."""
NOT_FOUND_DETAIL = "It is not there any more."
NOTHING_SENT = ResendRisk(kind=RiskKind.SAFE, reason="Nothing of it has been sent.")
ASSESSED_ACTIONS = frozenset({BulkAction.RETRY, BulkAction.RESEND})
"""What sends something again; of what is withdrawn or put off nobody gets a second copy."""
OVERRIDDEN_BY_RESEND = frozenset({RiskKind.SAFE, RiskKind.EXPIRED})
"""Verdicts after which something would arrive that a resend may have brought already."""
_ACTION_VERBS: Mapping[BulkAction, str] = {
    BulkAction.RETRY: "Retried",
    BulkAction.RESEND: "Resent",
    BulkAction.CANCEL: "Cancelled",
    BulkAction.RESCHEDULE: "Rescheduled",
    BulkAction.RUN_NOW: "Brought forward",
}


class LeaseExpiredError(Exception):
    """The lease is over: another worker may be at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """What became of some notifications."""

    acted_count: int = 0
    """Notifications that something was done to, or tried."""
    outcomes: dict[DeliveryKey, DeliveryOutcome] = field(default_factory=dict)

    def counts(self) -> dict[BulkOutcome, int]:
        """Return the deliveries by what became of them."""
        found: dict[BulkOutcome, int] = {}
        for one in self.outcomes.values():
            found[one.outcome] = found.get(one.outcome, 0) + 1
        return found

    def reasons(self) -> dict[str, int]:
        """Return the others by why they were not done."""
        found: dict[str, int] = {}
        for one in self.outcomes.values():
            if one.reason is not None:
                found[one.reason] = found.get(one.reason, 0) + 1
        return found


def assess(
    operation: Operation, documents: Sequence[Document], *, now: datetime
) -> dict[DeliveryKey, ResendRisk]:
    """Return what acting on each delivery that is meant would be."""
    assessed = {
        DeliveryKey(document["_id"], channel): NOTHING_SENT
        for document in documents
        for channel in _matching_channels(operation, document)
    }
    if operation.action not in ASSESSED_ACTIONS:
        return assessed
    risks = assess_risks(documents, now=now)
    duplicates = find_duplicates(operation, documents)
    found_risks = {key: risks[(key.notification_id, key.channel)] for key in assessed}
    return {
        key: ALREADY_RESENT if key in duplicates and risk.kind in OVERRIDDEN_BY_RESEND else risk
        for key, risk in found_risks.items()
    }


def execute(
    operation: Operation, positions: Sequence[Position], *, clock: Clock, until: datetime
) -> BatchResult:
    """Act on these notifications, and write down what became of each delivery.

    Raises LeaseExpiredError when the lease is over before the last; what was done is written down.
    """
    now = clock()
    documents = {
        document["_id"]: document for document in queries.get_many([p.id for p in positions])
    }
    rows = results.get_results(
        operation.id,
        [
            DeliveryKey(position.id, channel)
            for position in positions
            for channel in operation.selection.channels
        ],
    )
    risks = assess(operation, list(documents.values()), now=now)
    settled_before = {key: row for key, row in rows.items() if row.outcome in FINAL_BULK_OUTCOMES}
    interrupted = {
        key: skip_outcome(None, key, row)
        for key, row in rows.items()
        if row.outcome is BulkOutcome.BEGUN
    }
    outcomes = {
        key: skip_outcome(documents.get(key.notification_id), key, row)
        for key, row in rows.items()
        if key not in risks and key not in settled_before
    }
    to_do: dict[DeliveryKey, ResendRisk] = {}
    for key, risk in risks.items():
        if key in interrupted or risk.kind in operation.included_risks:
            to_do[key] = risk
        elif key not in settled_before:
            reason = risk.kind.value
            outcomes[key] = DeliveryOutcome(outcome=BulkOutcome.SKIPPED, risk=risk, reason=reason)
    to_do = {key: risk for key, risk in to_do.items() if key not in settled_before}
    results.settle(operation.id, outcomes, now=now)
    results.begin(operation.id, to_do, now=now)
    batch = _Batch(operation=operation, documents=documents, to_do=to_do, interrupted=interrupted)
    done = _execute_batch(batch, clock=clock, until=until)
    return BatchResult(
        acted_count=len({key.notification_id for key in done}),
        outcomes=settled_before | outcomes | done,
    )


def skip_outcome(
    document: Document | None, key: DeliveryKey, row: DeliveryOutcome
) -> DeliveryOutcome:
    """Return what became of a delivery of the preview that there is nothing to be done to now.

    One that a lost worker had begun with is as it is because of that.
    """
    if row.outcome is BulkOutcome.BEGUN:
        return DeliveryOutcome(
            outcome=BulkOutcome.DONE,
            risk=row.risk,
            detail="The worker stopped before it could say so.",
        )
    if document is None:
        return DeliveryOutcome(
            outcome=BulkOutcome.SKIPPED, risk=row.risk, reason=GONE, detail=NOT_FOUND_DETAIL
        )
    status = next(d["status"] for d in document["delivery"] if d["channel"] == key.channel)
    return DeliveryOutcome(
        outcome=BulkOutcome.SKIPPED,
        risk=row.risk,
        reason=CHANGED,
        detail=f"It has changed since the preview: it is {status} now.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What is to be done, and what a lost worker may have done of it."""

    operation: Operation
    documents: Mapping[ObjectId, Document]
    to_do: Mapping[DeliveryKey, ResendRisk]
    interrupted: Mapping[DeliveryKey, DeliveryOutcome]


def _execute_batch(
    batch: _Batch, *, clock: Clock, until: datetime
) -> dict[DeliveryKey, DeliveryOutcome]:
    """Act on one notification after the other; what is done is written down even if one fails."""
    by_notification: dict[ObjectId, list[DeliveryKey]] = {}
    for key in batch.to_do:
        by_notification.setdefault(key.notification_id, []).append(key)
    done: dict[DeliveryKey, DeliveryOutcome] = {}
    try:
        for notification_id, keys in by_notification.items():
            now = clock()
            if now >= until:
                raise LeaseExpiredError
            channels = [key.channel for key in keys]
            problem = _execute_one(batch.operation, notification_id, channels, now=now)
            for key in keys:
                found = _make_outcome(batch.to_do[key], problem)
                # What cannot be done any more has been done, where somebody had begun with it.
                done[key] = batch.interrupted.get(key, found) if problem else found
            if problem is None:
                _audit(batch.operation, batch.documents[notification_id], channels)
    finally:
        results.settle(batch.operation.id, done, now=clock())
    return done


def _execute_one(
    operation: Operation, notification_id: ObjectId, channels: Sequence[Channel], *, now: datetime
) -> tuple[str, str] | None:
    """Do it to one notification; return why it cannot be done, as a word and a sentence."""
    try:
        if operation.action is BulkAction.RETRY:
            actions.retry(
                notification_id=notification_id,
                channels=channels,
                failed_until=operation.frozen_at,
                now=now,
            )
        elif operation.action is BulkAction.RESEND:
            new_id = resend_id(operation, notification_id)
            actions.resend(
                notification_id=notification_id, channels=channels, new_id=new_id, now=now
            )
        elif operation.action is BulkAction.CANCEL:
            by = operation.started_by.username if operation.started_by else "an operator"
            actions.cancel(
                notification_id=notification_id,
                channels=channels,
                reason=f"Cancelled by {by}.",
                now=now,
            )
        elif operation.action is BulkAction.RESCHEDULE:
            requested_time = operation.send_at or now
            actions.reschedule(
                notification_id=notification_id, requested_time=requested_time, now=now
            )
        else:
            actions.run_now(notification_id=notification_id, now=now)
    except (
        actions.InvalidStateError,
        actions.NothingScheduledError,
        time.InvalidTimeError,
    ) as problem:
        return REFUSED, str(problem)
    except LookupError:
        return GONE, NOT_FOUND_DETAIL
    return None


def _make_outcome(risk: ResendRisk, problem: tuple[str, str] | None) -> DeliveryOutcome:
    if problem is None:
        return DeliveryOutcome(outcome=BulkOutcome.DONE, risk=risk)
    reason, detail = problem
    return DeliveryOutcome(outcome=BulkOutcome.FAILED, risk=risk, reason=reason, detail=detail)


def _matching_channels(operation: Operation, document: Document) -> list[Channel]:
    return [Channel(d["channel"]) for d in selection.matching_deliveries(operation, document)]


def _audit(operation: Operation, document: Document, channels: Sequence[Channel]) -> None:
    """Write into the notification's own audit who did what to it."""
    if operation.started_by is None:
        return
    verb, channel_names = _ACTION_VERBS[operation.action], ", ".join(channels)
    audit.record(
        by=operation.started_by.id,
        model=Notification,
        object_id=str(document["_id"]),
        name=f"{document['type']} {document['_id']}",
        message=f"{verb} on {channel_names} by bulk operation {operation.id}.",
    )
