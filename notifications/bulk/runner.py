"""What a worker does with an operation: a share of it under a lease, page by page.

Any number of workers may be told; one has the lease. A worker that is lost is replaced when its
lease is over, by the sweep's word, and the next one repeats at most the few notifications that it
had in hand: each is acted on once all the same.
"""

import os
import socket
from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from bson import ObjectId

from domain.states import BulkOutcome, BulkStage
from domain.time import utc_now
from notifyproject.platform import process
from notifyproject.platform.clock import Clock

from .. import queries
from ..queueing import wakeups
from . import executor, repository, results, selection
from . import operation as bulk_operation
from .operation import Position
from .repository import OperationLease, Progress
from .results import DeliveryOutcome

log = structlog.get_logger(__name__)
SHARE = timedelta(seconds=10)
"""How long a worker stays at it before others get its thread."""
SLICE = 50
"""Notifications that are acted on between two looks at whether to go on."""
PREVIEW_CAP = 10_000
"""Notifications a preview looks at."""
NOTHING = "nothing"
"""Notifications of a preview with no delivery that there is something to do to."""
TOO_SLOW = "Finding the next notifications took too long: choose a filter that reads less."
UNMATCHED = "It does not match the filter any more."


def run(operation_id: ObjectId, *, clock: Clock = utc_now) -> bool:
    """Go on with an operation; return False if there is nothing to do or another worker is at it.

    Raises PyMongoError; the lease is then over by itself.
    """
    now = clock()
    hold = repository.claim(operation_id, worker=f"{socket.gethostname()}:{os.getpid()}", now=now)
    if hold is None:
        return False
    if hold.was_lost:
        _count_anew(operation_id)
    next_at = _work(hold, ends_at=now + SHARE, clock=clock)
    if next_at is not None:
        wakeups.publish_operation(operation_id, at=next_at, now=clock())
    return True


def enqueue_due(*, now: datetime) -> int:
    """Tell workers to go on with what no worker has; return how many operations that are."""
    waiting = repository.due_operations(now=now)
    for operation_id in waiting:
        wakeups.publish_operation(operation_id, at=None, now=now)
    return len(waiting)


def _work(hold: OperationLease, *, ends_at: datetime, clock: Clock) -> datetime | None:
    """Do pages until the share is done; return when to go on, None if there is nothing to do."""
    held: OperationLease | None = hold
    while held is not None:
        now = clock()
        if now >= ends_at or process.is_shutting_down():
            return now if repository.release(held, at=now, now=now) else None
        try:
            places = selection.next_page(held.operation)
        except selection.SelectionTimeoutError:
            _stop(held, now)
            return None
        next_at = None
        if held.operation.stage is BulkStage.PREVIEWING:
            held = _preview_page(held, places, clock)
        elif places:
            held, next_at = _run_page(held, places, clock)
        else:
            held = _finish_unmatched(held, clock)
        if held is not None and next_at is not None:
            return next_at if repository.release(held, at=next_at, now=clock()) else None
    stopped = repository.one(hold.operation.id)
    if stopped is not None and stopped.stage in (BulkStage.PAUSED, BulkStage.CANCELLED):
        _count_anew(stopped.id)
    return None


def _preview_page(
    hold: OperationLease, places: Sequence[Position], clock: Clock
) -> OperationLease | None:
    """Judge the next page of the cohort; None when the preview is ready or the lease is lost."""
    documents = queries.get_many([place.id for place in places])
    verdicts = executor.assess(hold.operation, documents, now=clock())
    results.add(hold.operation.id, verdicts, outcome=BulkOutcome.WAITING, now=clock())
    found: dict[str, int] = {}
    for verdict in verdicts.values():
        found[verdict.kind.value] = found.get(verdict.kind.value, 0) + 1
    concerned = {which.notification_id for which in verdicts}
    if idle := sum(place.id not in concerned for place in places):
        found[NOTHING] = idle
    after = places[-1] if places else hold.operation.after
    progress = Progress(after=after, found=found, found_count=len(places))
    moved = repository.save_progress(hold, progress, now=clock())
    if moved is None:
        return None
    is_capped = moved.operation.found_count >= PREVIEW_CAP
    if len(places) == selection.PAGE and not is_capped:
        return moved
    repository.finish(moved, BulkStage.READY, now=clock(), is_capped=is_capped)
    log.info("operation_previewed", operation_id=str(hold.operation.id))
    return None


def _run_page(
    hold: OperationLease, places: Sequence[Position], clock: Clock
) -> tuple[OperationLease | None, datetime | None]:
    """Act on a page, slice by slice; return when to go on if the pace wants a pause before."""
    per_second = hold.operation.per_second
    began, acted, most = clock(), 0, bulk_operation.batch_limit(per_second)
    held: OperationLease | None = hold
    while places and held is not None:
        size = min(SLICE, most - acted)
        some, places = places[:size], places[size:]
        try:
            tally = executor.execute(held.operation, some, clock=clock, until=held.lease_until)
        except executor.LeaseExpiredError:
            log.warning("operation_lease_over", operation_id=str(hold.operation.id))
            return None, None
        acted += tally.acted
        progress = Progress(after=some[-1], counts=tally.counts(), reasons=tally.reasons())
        held = repository.save_progress(held, progress, now=clock())
        if acted >= most:
            break
    next_at = bulk_operation.next_run_at(began=began, acted=acted, per_second=per_second)
    return held, next_at if next_at > clock() else None


def _finish_unmatched(hold: OperationLease, clock: Clock) -> OperationLease | None:
    """Say of what was previewed and not met any more why; complete the operation after the last."""
    operation = hold.operation
    rows = results.unsettled(operation.id, limit=selection.PAGE)
    if not rows:
        _count_anew(operation.id)
        repository.finish(hold, BulkStage.COMPLETED, now=clock())
        log.info("operation_completed", operation_id=str(operation.id))
        return None
    ids = list({which.notification_id for which in rows})
    documents = {document["_id"]: document for document in queries.get_many(ids)}
    fresh = executor.assess(operation, list(documents.values()), now=clock())
    settled = {
        which: DeliveryOutcome(
            outcome=BulkOutcome.SKIPPED,
            verdict=row.verdict,
            reason=executor.CHANGED,
            detail=UNMATCHED,
        )
        if which in fresh
        else executor.left(documents.get(which.notification_id), which, row)
        for which, row in rows.items()
    }
    results.settle(operation.id, settled, now=clock())
    tally = executor.Tally(settled=settled)
    progress = Progress(counts=tally.counts(), reasons=tally.reasons())
    return repository.save_progress(hold, progress, now=clock())


def _stop(hold: OperationLease, now: datetime) -> None:
    """Stop what reads too much, with a word why."""
    stage = BulkStage.PAUSED if hold.operation.stage is BulkStage.RUNNING else BulkStage.CANCELLED
    repository.finish(hold, stage, now=now, problem=TOO_SLOW)
    log.warning("operation_too_slow", operation_id=str(hold.operation.id))


def _count_anew(operation_id: ObjectId) -> None:
    """Count what a worker did whose word about it was lost."""
    counts, reasons = results.counts(operation_id)
    repository.count_anew(operation_id, counts=counts, reasons=reasons)
