"""Acts on notifications, once each, and skips those that were resent already."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId

from domain import time
from domain.states import OPEN, FINAL_BULK_OUTCOMES, SUCCEEDED, BulkAction, BulkOutcome, Channel
from notifyproject.db.collections import collection
from notifyproject.platform import audit
from notifyproject.platform.clock import Clock

from .. import queries
from ..models import Notification
from ..resend import actions
from ..resend.assessment import assess_risks
from ..resend.risk import ResendRisk, RiskKind
from ..store import Document
from . import results, selection
from .operation import Operation, Position, resend_id
from .results import DeliveryKey, DeliveryOutcome

SENT_AGAIN = ResendRisk(
    kind=RiskKind.MAY_DUPLICATE, why="It was sent again already, as another notification."
)
_STANDS = frozenset(status.value for status in OPEN | SUCCEEDED)


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
        if delivery["status"] in _STANDS
    }


CHANGED, GONE, REFUSED = "changed", "gone", "refused"
"""Why not, beside the verdicts."""
NOT_THERE = "It is not there any more."
AS_ASKED = ResendRisk(kind=RiskKind.SAFE, why="Nothing of it has been sent.")
JUDGED = frozenset({BulkAction.RETRY, BulkAction.RESEND})
"""What sends something again; of what is withdrawn or put off nobody gets a second copy."""
SENDS = frozenset({RiskKind.SAFE, RiskKind.EXPIRED})
"""Verdicts after which something would arrive that a resend may have brought already."""
_DONE: Mapping[BulkAction, str] = {
    BulkAction.RETRY: "Retried",
    BulkAction.RESEND: "Resent",
    BulkAction.CANCEL: "Cancelled",
    BulkAction.RESCHEDULE: "Rescheduled",
    BulkAction.RUN_NOW: "Brought forward",
}


class LeaseExpiredError(Exception):
    """The lease is over: another worker may be at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What became of some notifications."""

    acted: int = 0
    """Notifications that something was done to, or tried."""
    settled: dict[DeliveryKey, DeliveryOutcome] = field(default_factory=dict)

    def counts(self) -> dict[BulkOutcome, int]:
        """Return the deliveries by what became of them."""
        found: dict[BulkOutcome, int] = {}
        for one in self.settled.values():
            found[one.outcome] = found.get(one.outcome, 0) + 1
        return found

    def reasons(self) -> dict[str, int]:
        """Return the others by why they were not done."""
        found: dict[str, int] = {}
        for one in self.settled.values():
            if one.reason is not None:
                found[one.reason] = found.get(one.reason, 0) + 1
        return found


def assess(
    operation: Operation, documents: Sequence[Document], *, now: datetime
) -> dict[DeliveryKey, ResendRisk]:
    """Return what acting on each delivery that is meant would be."""
    meant = {
        DeliveryKey(document["_id"], channel): AS_ASKED
        for document in documents
        for channel in _channels(operation, document)
    }
    if operation.action not in JUDGED:
        return meant
    verdicts = assess_risks(documents, now=now)
    again = find_duplicates(operation, documents)
    found = {which: verdicts[(which.notification_id, which.channel)] for which in meant}
    return {
        which: SENT_AGAIN if which in again and verdict.kind in SENDS else verdict
        for which, verdict in found.items()
    }


def execute(
    operation: Operation, places: Sequence[Position], *, clock: Clock, until: datetime
) -> Tally:
    """Act on these notifications, and write down what became of each delivery.

    Raises Late when the lease is over before the last; what was done is written down.
    """
    now = clock()
    documents = {document["_id"]: document for document in queries.get_many([p.id for p in places])}
    rows = results.get_results(
        operation.id,
        [
            DeliveryKey(place.id, channel)
            for place in places
            for channel in operation.cohort.channels
        ],
    )
    fresh = assess(operation, list(documents.values()), now=now)
    before = {which: row for which, row in rows.items() if row.outcome in FINAL_BULK_OUTCOMES}
    broken_off = {w: left(None, w, r) for w, r in rows.items() if r.outcome is BulkOutcome.BEGUN}
    settled = {
        which: left(documents.get(which.notification_id), which, row)
        for which, row in rows.items()
        if which not in fresh and which not in before
    }
    to_do: dict[DeliveryKey, ResendRisk] = {}
    for which, verdict in fresh.items():
        if which in broken_off or verdict.kind in operation.includes:
            to_do[which] = verdict
        elif which not in before:
            reason = verdict.kind.value
            settled[which] = DeliveryOutcome(
                outcome=BulkOutcome.SKIPPED, verdict=verdict, reason=reason
            )
    to_do = {which: verdict for which, verdict in to_do.items() if which not in before}
    results.settle(operation.id, settled, now=now)
    results.begin(operation.id, to_do, now=now)
    batch = _Batch(operation=operation, documents=documents, to_do=to_do, broken_off=broken_off)
    done = _act_on(batch, clock=clock, until=until)
    return Tally(
        acted=len({which.notification_id for which in done}), settled=before | settled | done
    )


def left(document: Document | None, which: DeliveryKey, row: DeliveryOutcome) -> DeliveryOutcome:
    """Return what became of a delivery of the preview that there is nothing to be done to now.

    One that a lost worker had begun with is as it is because of that.
    """
    if row.outcome is BulkOutcome.BEGUN:
        return DeliveryOutcome(
            outcome=BulkOutcome.DONE,
            verdict=row.verdict,
            detail="The worker stopped before it could say so.",
        )
    if document is None:
        return DeliveryOutcome(
            outcome=BulkOutcome.SKIPPED, verdict=row.verdict, reason=GONE, detail=NOT_THERE
        )
    status = next(d["status"] for d in document["delivery"] if d["channel"] == which.channel)
    return DeliveryOutcome(
        outcome=BulkOutcome.SKIPPED,
        verdict=row.verdict,
        reason=CHANGED,
        detail=f"It has changed since the preview: it is {status} now.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Batch:
    """What is to be done, and what a lost worker may have done of it."""

    operation: Operation
    documents: Mapping[ObjectId, Document]
    to_do: Mapping[DeliveryKey, ResendRisk]
    broken_off: Mapping[DeliveryKey, DeliveryOutcome]


def _act_on(batch: _Batch, *, clock: Clock, until: datetime) -> dict[DeliveryKey, DeliveryOutcome]:
    """Act on one notification after the other; what is done is written down even if one fails."""
    by_notification: dict[ObjectId, list[DeliveryKey]] = {}
    for which in batch.to_do:
        by_notification.setdefault(which.notification_id, []).append(which)
    done: dict[DeliveryKey, DeliveryOutcome] = {}
    try:
        for notification_id, some in by_notification.items():
            now = clock()
            if now >= until:
                raise LeaseExpiredError
            channels = [which.channel for which in some]
            problem = _do(batch.operation, notification_id, channels, now=now)
            for which in some:
                found = _settled(batch.to_do[which], problem)
                # What cannot be done any more has been done, where somebody had begun with it.
                done[which] = batch.broken_off.get(which, found) if problem else found
            if problem is None:
                _record(batch.operation, batch.documents[notification_id], channels)
    finally:
        results.settle(batch.operation.id, done, now=clock())
    return done


def _do(
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
            asked = operation.send_at or now
            actions.reschedule(notification_id=notification_id, asked=asked, now=now)
        else:
            actions.run_now(notification_id=notification_id, now=now)
    except (
        actions.InvalidStateError,
        actions.NothingScheduledError,
        time.InvalidTimeError,
    ) as problem:
        return REFUSED, str(problem)
    except LookupError:
        return GONE, NOT_THERE
    return None


def _settled(verdict: ResendRisk, problem: tuple[str, str] | None) -> DeliveryOutcome:
    if problem is None:
        return DeliveryOutcome(outcome=BulkOutcome.DONE, verdict=verdict)
    reason, detail = problem
    return DeliveryOutcome(
        outcome=BulkOutcome.FAILED, verdict=verdict, reason=reason, detail=detail
    )


def _channels(operation: Operation, document: Document) -> list[Channel]:
    return [Channel(d["channel"]) for d in selection.matching_deliveries(operation, document)]


def _record(operation: Operation, document: Document, channels: Sequence[Channel]) -> None:
    """Write into the notification's own audit who did what to it."""
    if operation.started_by is None:
        return
    done, on = _DONE[operation.action], ", ".join(channels)
    audit.record(
        by=operation.started_by.id,
        model=Notification,
        object_id=str(document["_id"]),
        name=f"{document['type']} {document['_id']}",
        message=f"{done} on {on} by bulk operation {operation.id}.",
    )
