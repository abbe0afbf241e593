"""Runs a bulk operation under a lease, page by page.

The run after a lost worker repeats at most a few notifications. Each is acted on only once.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog
from bson import ObjectId

from domain.states import BulkOutcome, BulkStage
from domain.time import Clock, utc_now
from notifyproject.platform import process

from .. import queries
from ..actions.risk import ResendRisk
from ..catalog.texts import paid_country
from ..documents.notification import NotificationDocument
from ..queueing import wakeups
from ..store.reading import recipient_of
from . import executor, repository, results, selection, trial
from . import operation as bulk_operation
from .operation import ActedOn, Position
from .repository import OperationLease
from .results import DeliveryKey
from .trial import Verdict

log = structlog.get_logger(__name__)
MAX_RUN_TIME = timedelta(seconds=10)  # Longest run before other tasks get the thread
SLICE_SIZE = 50  # Notifications between two checks of the lease and of shutdown
PREVIEW_CAP = 10_000  # Notifications that a preview assesses
NO_DELIVERY = "nothing"  # Counts the notifications of a preview without a delivery to act on
TOO_SLOW_MESSAGE = "Finding the next notifications took too long. Use a narrower filter."
UNMATCHED_DETAIL = "No longer matches the filter."


def run(operation_id: ObjectId, *, clock: Clock = utc_now) -> bool:
    """Run an operation for a limited time. Return False if it isn't due or is leased."""
    now = clock()
    lease = repository.claim(operation_id, worker=process.worker_name(), now=now)
    if lease is None:
        return False
    if lease.claim.is_takeover:
        repository.recount(operation_id)
    next_at = _run_pages(lease, ends_at=now + MAX_RUN_TIME, clock=clock)
    if next_at is not None:
        wakeups.publish_operation(operation_id, at=next_at, now=clock())
    return True


def enqueue_due(*, now: datetime) -> int:
    """Enqueue a run of each operation that is due and not leased. Return how many there are."""
    operation_ids = repository.due_operations(now=now)
    for operation_id in operation_ids:
        wakeups.publish_operation(operation_id, at=None, now=now)
    return len(operation_ids)


def _run_pages(lease: OperationLease, *, ends_at: datetime, clock: Clock) -> datetime | None:
    """Process pages until the run ends. Return when to continue, or None if nothing is left."""
    current: OperationLease | None = lease
    while current is not None:
        now = clock()
        if now >= ends_at or process.is_shutting_down():
            return now if repository.release(current, at=now, now=now) else None
        try:
            positions = selection.next_page(current.operation)
        except selection.SelectionTimeoutError:
            repository.stop(current, problem=TOO_SLOW_MESSAGE, now=now)
            log.warning("operation_timed_out", operation_id=str(current.operation.id))
            return None
        next_at = None
        if current.operation.stage is BulkStage.PREVIEWING:
            current = _preview_page(current, positions, clock)
        elif positions:
            current, next_at = _continue(current, positions, clock)
        else:
            current = _finish_unmatched(current, clock)
        if current is not None and next_at is not None:
            return next_at if repository.release(current, at=next_at, now=clock()) else None
    stopped = repository.get(lease.operation.id)
    if stopped is not None and stopped.stage in (BulkStage.PAUSED, BulkStage.CANCELLED):
        repository.recount(stopped.id)
    return None


def _continue(
    lease: OperationLease, positions: Sequence[Position], clock: Clock
) -> tuple[OperationLease | None, datetime | None]:
    """Act on a page unless all deliveries fail. Return the lease, and when to continue."""
    now = clock()
    checked = trial.assess(lease.operation, now=now)
    if checked.verdict is Verdict.STOP:
        repository.stop(lease, problem=checked.problem, now=now)
        log.warning("operation_stopped", operation_id=str(lease.operation.id))
        return None, None
    if checked.verdict is Verdict.WAIT:
        return lease, now + trial.CHECK_INTERVAL
    if checked.is_over and not lease.operation.is_proven:
        return repository.prove(lease), None
    return _run_page(lease, positions, clock)


def _preview_page(
    lease: OperationLease, positions: Sequence[Position], clock: Clock
) -> OperationLease | None:
    """Assess the next page. Return None if the preview is complete or the lease is lost."""
    documents = queries.get_many([position.id for position in positions])
    risks = executor.assess(lease.operation, documents, now=clock())
    results.add(lease.operation.id, risks, outcome=BulkOutcome.WAITING, now=clock())
    preview_counts = Counter(risk.kind.value for risk in risks.values())
    preview_counts.update(_count_units(documents, risks))
    matched_ids = {key.notification_id for key in risks}
    if unmatched_count := sum(position.id not in matched_ids for position in positions):
        preview_counts[NO_DELIVERY] = unmatched_count
    position = positions[-1] if positions else lease.operation.position
    saved = repository.save_progress(
        lease,
        position=position,
        preview_counts=preview_counts,
        found_count=len(positions),
        now=clock(),
    )
    if saved is None:
        return None
    is_capped = saved.operation.found_count >= PREVIEW_CAP
    if len(positions) == selection.PAGE_SIZE and not is_capped:
        return saved
    repository.finish(saved, BulkStage.READY, now=clock(), is_capped=is_capped)
    log.info("operation_previewed", operation_id=str(lease.operation.id))
    return None


def _count_units(
    documents: Sequence[NotificationDocument], risks: Mapping[DeliveryKey, ResendRisk]
) -> Counter[str]:
    """Count the parts of texts by risk and country. One that was never sent counts as one."""
    counted = Counter[str]()
    texts = {key: risk for key, risk in risks.items() if key.channel.pays_by_part}
    known = queries.sent_units([key.notification_id for key in texts])
    by_id = {document["_id"]: document for document in documents}
    for key, risk in texts.items():
        number = recipient_of(by_id[key.notification_id]).address(key.channel)
        units = known.get((key.notification_id, key.channel.value), 1)
        counted[bulk_operation.units_key(risk.kind, paid_country(number))] += units
    return counted


def _run_page(
    lease: OperationLease, positions: Sequence[Position], clock: Clock
) -> tuple[OperationLease | None, datetime | None]:
    """Act on a page in slices. Return the lease, and when to continue if the throttle pauses."""
    per_second = lease.operation.per_second
    started_at, acted_count, limit = clock(), 0, bulk_operation.batch_limit(per_second)
    is_on_trial = trial.is_on_trial(lease.operation)
    current: OperationLease | None = lease
    while positions and current is not None:
        size = trial.trial_size(current.operation, wanted=min(SLICE_SIZE, limit - acted_count))
        slice_positions, positions = positions[:size], positions[size:]
        try:
            outcomes, slice_count = executor.execute(
                current.operation, slice_positions, clock=clock, until=current.claim.until
            )
        except executor.LeaseExpiredError:
            log.warning("operation_lease_expired", operation_id=str(lease.operation.id))
            return None, None
        acted_count += slice_count
        current = repository.save_progress(
            current,
            position=slice_positions[-1],
            outcomes=outcomes.values(),
            acted_on=[
                ActedOn(key.notification_id, key.channel)
                for key, outcome in outcomes.items()
                if outcome.outcome is BulkOutcome.DONE
            ],
            now=clock(),
        )
        is_tried = current is not None and len(current.operation.recent) >= trial.TRIAL
        if acted_count >= limit or (is_tried and is_on_trial):
            break
    next_at = bulk_operation.next_run_at(
        started_at=started_at, acted_count=acted_count, per_second=per_second
    )
    return current, next_at if next_at > clock() else None


def _finish_unmatched(lease: OperationLease, clock: Clock) -> OperationLease | None:
    """Settle previewed deliveries that no longer match. After the last, complete the operation."""
    operation = lease.operation
    rows = results.unsettled(operation.id, limit=selection.PAGE_SIZE)
    if not rows:
        repository.recount(operation.id)
        repository.finish(lease, BulkStage.COMPLETED, now=clock())
        log.info("operation_completed", operation_id=str(operation.id))
        return None
    ids = list({key.notification_id for key in rows})
    documents = {document["_id"]: document for document in queries.get_many(ids)}
    risks = executor.assess(operation, list(documents.values()), now=clock())
    outcomes = {
        key: results.skipped(row.risk, reason=executor.CHANGED, detail=UNMATCHED_DETAIL)
        if key in risks
        else executor.skip_outcome(documents.get(key.notification_id), key, row)
        for key, row in rows.items()
    }
    results.settle(operation.id, outcomes, now=clock())
    return repository.save_progress(lease, outcomes=outcomes.values(), now=clock())
