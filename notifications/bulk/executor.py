"""Acts on each notification of a bulk operation once."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from bson import ObjectId

from domain import time
from domain.channels import Channel
from domain.states import FINAL_BULK_OUTCOMES, BulkAction, BulkOutcome
from domain.time import Clock
from notifications.documents.notification import NotificationDocument

from .. import queries
from ..actions import actions
from ..actions.assessment import assess_risks
from ..actions.risk import ResendRisk, RiskKind
from . import results, selection
from .operation import Operation, Position, resend_id
from .results import DeliveryKey, DeliveryOutcome

CHANGED, GONE, REFUSED = "changed", "gone", "refused"
"""Reasons for which deliveries are skipped or fail, besides the resend risks."""
NOTHING_SENT = ResendRisk(kind=RiskKind.SAFE, reason="Nothing was sent.")
ASSESSED_ACTIONS = frozenset({BulkAction.RETRY, BulkAction.RESEND})
"""Actions that send again. Cancelling or rescheduling can't duplicate a message."""


class LeaseExpiredError(Exception):
    """The lease expired, and another worker may run the operation now."""


def assess(
    operation: Operation, documents: Sequence[NotificationDocument], *, now: datetime
) -> dict[DeliveryKey, ResendRisk]:
    """Return the resend risk of each delivery that the operation selects."""
    assessed = {
        DeliveryKey(document["_id"], Channel(delivery["channel"])): NOTHING_SENT
        for document in documents
        for delivery in selection.matching_deliveries(operation, document)
    }
    if operation.action not in ASSESSED_ACTIONS:
        return assessed
    # A repeated run must not count the resends of its first run.
    own = {resend_id(operation, document["_id"]) for document in documents}
    risks = assess_risks(documents, ignored_resends=own, now=now)
    return {key: risks[(key.notification_id, key.channel)] for key in assessed}


def execute(
    operation: Operation, positions: Sequence[Position], *, clock: Clock, until: datetime
) -> tuple[dict[DeliveryKey, DeliveryOutcome], int]:
    """Act on the deliveries that still match; store and return the outcome of each.

    Deliveries that changed, or whose risk the operation excludes, are skipped. Also returns on how
    many notifications it acted, successfully or not. Raises LeaseExpiredError if the lease expires
    before the last one. Outcomes until then are stored.
    """
    now = clock()
    ids = [position.id for position in positions]
    documents = {document["_id"]: document for document in queries.get_many(ids)}
    keys = [
        DeliveryKey(notification_id, channel)
        for notification_id in ids
        for channel in operation.selection.channels
    ]
    rows = results.get_results(operation.id, keys)
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
        if key in settled_before:
            continue
        if key in interrupted or risk.kind in operation.included_risks:
            to_do[key] = risk
        else:
            outcomes[key] = results.skipped(risk, reason=risk.kind.value)
    results.settle(operation.id, outcomes, now=now)
    results.begin(operation.id, to_do, now=now)
    done = _execute_batch(operation, to_do, interrupted, clock=clock, until=until)
    return settled_before | outcomes | done, len({key.notification_id for key in done})


def skip_outcome(
    document: NotificationDocument | None, key: DeliveryKey, row: DeliveryOutcome
) -> DeliveryOutcome:
    """Return the outcome of a previewed delivery that no longer matches the selection."""
    # If a lost worker had begun with the delivery, that worker changed its state.
    if row.outcome is BulkOutcome.BEGUN:
        return DeliveryOutcome(
            outcome=BulkOutcome.DONE,
            risk=row.risk,
            detail="The worker stopped before it recorded the outcome.",
        )
    if document is None:
        return results.skipped(row.risk, reason=GONE, detail=actions.NOT_FOUND)
    status = next(d["status"] for d in document["delivery"] if d["channel"] == key.channel)
    detail = f"Changed since the preview: now {status}."
    return results.skipped(row.risk, reason=CHANGED, detail=detail)


def _execute_batch(
    operation: Operation,
    to_do: Mapping[DeliveryKey, ResendRisk],
    interrupted: Mapping[DeliveryKey, DeliveryOutcome],
    *,
    clock: Clock,
    until: datetime,
) -> dict[DeliveryKey, DeliveryOutcome]:
    # ``interrupted`` are deliveries that a lost worker may have acted on.
    by_notification: dict[ObjectId, list[DeliveryKey]] = {}
    for key in to_do:
        by_notification.setdefault(key.notification_id, []).append(key)
    done: dict[DeliveryKey, DeliveryOutcome] = {}
    try:
        for notification_id, keys in by_notification.items():
            now = clock()
            if now >= until:
                raise LeaseExpiredError
            channels = [key.channel for key in keys]
            problem = _execute_one(operation, notification_id, channels, now=now)
            outcome = BulkOutcome.FAILED if problem else BulkOutcome.DONE
            reason, detail = problem or (None, None)
            for key in keys:
                done[key] = DeliveryOutcome(
                    outcome=outcome, risk=to_do[key], reason=reason, detail=detail
                )
                if problem:
                    # A refusal after a lost worker had begun means that the worker had acted.
                    done[key] = interrupted.get(key, done[key])
    finally:
        results.settle(operation.id, done, now=clock())
    return done


def _execute_one(
    operation: Operation, notification_id: ObjectId, channels: Sequence[Channel], *, now: datetime
) -> tuple[str, str] | None:
    try:
        actions.act_as_staff(
            operation.action,
            notification_id=notification_id,
            channels=channels,
            by=operation.started_by or operation.created_by,
            now=now,
            send_at=operation.send_at,
            failed_until=operation.frozen_at,
            new_id=resend_id(operation, notification_id),
            part_of=operation.id,
        )
    except (actions.InvalidStateError, time.InvalidTimeError) as problem:
        return REFUSED, str(problem)
    except LookupError:
        return GONE, actions.NOT_FOUND
    return None
