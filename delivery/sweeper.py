"""Sweeper: recovers expired leases, resolves unknown outcomes, and enqueues lost work again.

Concurrent sweepers are safe: they change state by compare-and-set.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from bson import ObjectId

from domain import queues, retry
from domain.channels import Channel
from domain.states import Priority
from notifications.broadcasts import control
from notifications.bulk import runner
from notifications.files import runner as files_runner
from notifications.inbox import actions as inbox_actions
from notifications.queueing import fair_queue, wakeups
from notifications.queueing.fair_queue import BURST, FairQueue
from notifications.queueing.wakeups import HORIZON, ISOLATED_PER_WAKEUP
from notifications.receipts import processor
from notifications.store import encrypted_content, recovery, steps, test_clocks
from notifications.store.recovery import UnknownOutcome
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from . import digests, idempotency, receipt_lag
from .heartbeats import SWEEP, last_sweep, record

SWEEP_SECONDS = 15
"""Interval of sweeps. The delivery of a lost worker is found within a lease and a sweep, or within
150 s if the sweeper and the next worker are lost, too. With a million due, a sweep takes 0.1 s."""
log = structlog.get_logger(__name__)
MAX_QUEUE_DEPTH = 1_000
"""Queue depth from which a sweep adds no messages, since they would be duplicates."""
MAX_DUE_PER_QUEUE = 500
"""Due deliveries that a sweep reads from a fair queue: more than one worker can lose."""
MIN_SWEEP_INTERVAL = timedelta(seconds=SWEEP_SECONDS / 3)


@dataclass(slots=True)
class SweepReport:
    """Counts of one sweep."""

    woken: int = 0
    pulled: int = 0
    """Fair queues for which a pull was enqueued."""
    unpublished: int = 0
    """Due deliveries and broadcasts whose message the broker did not accept."""
    recovered: int = 0
    resolved: int = 0


def sweep(*, now: datetime) -> SweepReport:
    """Recover leases, resolve unknown outcomes, and enqueue due work. Safe to run at any time."""
    crash_points.reach(Boundary.SWEEP_BEGINS)
    processor.apply_early_receipts(now=now)
    report = SweepReport(recovered=recover_expired_leases(now=now))
    crash_points.reach(Boundary.LEASES_EXPIRED)
    report.resolved = resolve_unknown_outcomes(now=now)
    crash_points.reach(Boundary.RESOLVED)
    purged_secrets = encrypted_content.purge_secrets(now=now)
    resurfaced = inbox_actions.resurface_due(now=now)
    for priority in Priority:
        _enqueue_due(priority, report, now)
    bulk_operations = runner.enqueue_due(now=now)
    files = files_runner.enqueue_due(now=now)
    report.unpublished += control.enqueue_due(now=now)
    closing_tasks = digests.enqueue_due(now=now)
    moved_clocks = _enqueue_test_clocks(now)
    crash_points.reach(Boundary.SWEEP_ENQUEUED)
    wakeups.request_heartbeat(now=now)
    record(SWEEP, now)
    log.info(
        "swept",
        woken=report.woken,
        pulled=report.pulled,
        unpublished=report.unpublished,
        recovered=report.recovered,
        resolved=report.resolved,
        purged_secrets=purged_secrets,
        resurfaced=resurfaced,
        bulk_operations=bulk_operations,
        files=files,
        closing_tasks=closing_tasks,
        test_clocks=moved_clocks,
    )
    return report


def sweep_if_due(*, now: datetime) -> None:
    """Sweep unless a sweep has just ended. A restarted worker finds hundreds of queued sweeps."""
    last = last_sweep()
    if last is None or now - last > MIN_SWEEP_INTERVAL:
        sweep(now=now)


def recover_expired_leases(*, now: datetime, client_id: ObjectId | None = None) -> int:
    """End sends whose worker was lost, as unknown or by their attempts. Return how many.

    ``client_id``: only those of one client.
    """
    recovered = expired = recovery.expire_leases(now=now, client_id=client_id)
    while expired:
        expired = recovery.expire_leases(now=now, client_id=client_id)
        recovered += expired
    return recovered


def resolve_unknown_outcomes(*, now: datetime, client_id: ObjectId | None = None) -> int:
    """Apply the type's policy to unknown outcomes past their receipt deadline. Return how many.

    ``client_id``: only to those of one client.
    """
    resolved = 0
    while waiting := recovery.unknown_outcomes(now=now, client_id=client_id):
        repeatable = idempotency.repeatable(waiting, now=now)
        decided = {
            unresolved: retry.decide_unknown(
                # The type may have been disabled since.
                policy=retry.UnknownPolicy.RETRY
                if unresolved in repeatable
                else idempotency.policy_of(unresolved.type),
                state=unresolved.retry_state,
                now=now,
            )
            for unresolved in waiting
        }
        at_risk = [
            unresolved
            for unresolved, decision in decided.items()
            if unresolved not in repeatable
            and not _has_arrived(unresolved, is_repeated=isinstance(decision, retry.RetryAt))
        ]
        late = receipt_lag.late_until(at_risk, now=now)
        decisions = [
            (unresolved, retry.AwaitReceipt(late[unresolved]) if unresolved in late else decision)
            for unresolved, decision in decided.items()
        ]
        done = recovery.resolve_unknown(decisions, now=now)
        given_up = [
            unresolved.notification_id for unresolved, d in decisions if isinstance(d, retry.GiveUp)
        ]
        steps.open_next_steps(ids=given_up, now=now)
        resolved += max(done - len(late), 0)
        if not done:
            # Concurrent sweepers resolve the rest.
            break
    return resolved


def _has_arrived(outcome: UnknownOutcome, *, is_repeated: bool) -> bool:
    """Return whether a receipt says nothing new: the message arrived, and isn't repeated."""
    return bool(outcome.accepted_records) or (outcome.is_reached and not is_repeated)


def _enqueue_test_clocks(now: datetime) -> int:
    """Enqueue what is due by the clocks of test clients that are ahead. Return how many clocks."""
    return sum(
        wakeups.publish_test_clock(clock["_id"], now=now)
        for clock in test_clocks.ahead(now=now)
        if "target" in clock
        or test_clocks.due_notifications(clock["_id"], until=clock["stands_at"], limit=1)
    )


def _enqueue_due(priority: Priority, report: SweepReport, now: datetime) -> None:
    clients = fair_queue.waiting_clients(priority=priority)
    for channel in Channel if clients else ():
        waiting = wakeups.depth(queues.queue_name(channel, priority))
        has_capacity = waiting is not None and waiting < MAX_QUEUE_DEPTH
        for client_id in clients:
            queue = FairQueue(client_id, channel, priority)
            due = fair_queue.due(queue, until=now + HORIZON, now=now, limit=MAX_DUE_PER_QUEUE)
            if has_capacity:
                _enqueue_client(queue, due, report, now)
            else:
                report.unpublished += sum(1 for item in due if item.at <= now)


def _enqueue_client(
    queue: FairQueue, due: Sequence[fair_queue.Due], report: SweepReport, now: datetime
) -> None:
    candidates = [item for item in due if item.is_poison_candidate]
    _enqueue_by_id(queue, candidates, report, now, size=ISOLATED_PER_WAKEUP)
    if len(due) > BURST:
        _enqueue_burst(queue, due, report, now)
    else:
        _enqueue_by_id(queue, [item for item in due if not item.is_poison_candidate], report, now)


def _enqueue_burst(
    queue: FairQueue, due: Sequence[fair_queue.Due], report: SweepReport, now: datetime
) -> None:
    """Enqueue pulls for a burst if a delivery is due, or one pull for when the first is due."""
    first = min(item.at for item in due)
    if first <= now:
        is_enqueued = fair_queue.enqueue_pulls(queue, now=now)
    else:
        at = wakeups.wakeup_time(first, now=now)
        is_enqueued = fair_queue.schedule_pull(queue, at=at, now=now)
    report.pulled += is_enqueued
    report.unpublished += 0 if is_enqueued else len(due)


def _enqueue_by_id(
    queue: FairQueue,
    due: Sequence[fair_queue.Due],
    report: SweepReport,
    now: datetime,
    size: int = wakeups.WAKEUP_SIZE,
) -> None:

    def second(due: fair_queue.Due) -> datetime:
        return wakeups.wakeup_time(due.at, now=now)

    for at, some in itertools.groupby(sorted(due, key=second), key=second):
        ids = [due.notification_id for due in some]
        done = wakeups.send_wakeups(
            ids, channel=queue.channel, priority=queue.priority, at=at, now=now, size=size
        )
        report.woken += done
        report.unpublished += len(ids) - done
