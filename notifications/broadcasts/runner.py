"""A worker's turn: one page of a broadcast's audience, or of what is to be withdrawn."""

from datetime import datetime, timedelta

import pymongo
import structlog
from bson import ObjectId

from domain.states import BroadcastStatus, DeliveryStatus
from domain.time import Clock, utc_now
from notifyproject.db.collections import collection
from notifyproject.platform import crash_points, process
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name

from .. import store
from ..catalog import types
from ..queueing import backlog
from . import control, fan_out, repository
from .documents import BroadcastLease, PageResult

log = structlog.get_logger(__name__)
PAGE_SIZE = 1_000
"""People in a page: what one insert takes."""
MAX_CLAIMS = 5
"""Turns in a row that ended without a page: what stops all of them stops the sixth."""
MAX_PAGE_SECONDS = 40.0
"""How long the database may take for a page: well within the lease, so that a worker that was
frozen stores nothing after it."""
SHUTDOWN_DELAY = timedelta(seconds=1)
"""When somebody else is to take a message that came to a worker that is stopping."""
CANCEL_POLL_INTERVAL = timedelta(seconds=30)
"""How often a cancelled broadcast is looked at while some of it is still being sent."""
CANCELLED_REASON = "Its broadcast was cancelled."


def run_page(broadcast_id: ObjectId, *, clock: Clock = utc_now) -> bool:
    """Do the next page of a broadcast and call for the one behind it; safe in any number.

    Returns whether it was this worker's turn. Raises PyMongoError: the page is done again when the
    lease has ended, and nobody is told twice.
    """
    now = clock()
    if process.is_shutting_down():
        control.enqueue(broadcast_id, at=now + SHUTDOWN_DELAY, now=now)
        return False
    lease = repository.acquire_lease(broadcast_id, worker=worker_name(), now=now)
    if lease is None:
        return False
    crash_points.reach(Boundary.BROADCAST_LEASED)
    is_cancelling = lease.status is BroadcastStatus.CANCELLING
    at = _cancel_page(lease, clock) if is_cancelling else _send_page(lease, clock)
    crash_points.reach(Boundary.BROADCAST_ADVANCED)
    if at is not None:
        control.enqueue(broadcast_id, at=at, now=clock())
    return True


def run_inline(*, clock: Clock = utc_now) -> int:
    """Do a page of each broadcast that is due, in this process; return of how many."""
    now = clock()
    return sum(run_page(one, clock=clock) for one, _ in control.find_due(until=now, now=now))


def _send_page(lease: BroadcastLease, clock: Clock) -> datetime | None:
    """Tell the next people; return when to go on, None if nothing is left to do."""
    now = clock()
    if (failure := _end_reason(lease, now)) is not None:
        code, reason = failure
        if repository.fail(lease, code=code, reason=reason, now=now):
            log.warning("broadcast_failed", broadcast_id=str(lease.id), code=code)
            return None
        return now if repository.release_lease(lease, now=now) else None
    if backlog.is_overloaded(now=now):
        until = now + backlog.RETRY_AFTER
        if repository.defer(lease, until=until, now=now):
            return until
        return now if repository.release_lease(lease, now=now) else None
    with pymongo.timeout(MAX_PAGE_SECONDS):
        page = _fan_out(lease, now)
    now = clock()
    if not repository.advance(lease, page, now=now):
        # The lease ended before the page did, and another has it now. Whatever was cancelled
        # meanwhile may have passed over what was stored here.
        log.warning("broadcast_lease_lost", broadcast_id=str(lease.id))
        return now if repository.restart_cancellation(lease.id, now=now) else None
    log.info(
        "broadcast_page_completed",
        broadcast_id=str(lease.id),
        accepted=page.accepted,
        skipped=sum(map(len, page.skipped.values())),
        rejected=sum(map(len, page.rejected.values())),
        is_last=page.is_last,
    )
    return None if page.is_last else now


def _end_reason(lease: BroadcastLease, now: datetime) -> tuple[str, str] | None:
    """Return the code and the words of what ends a broadcast early, if anything does."""
    if lease.expires_at is not None and now >= lease.expires_at:
        return "expired", "Its time was over before everybody had been told."
    if lease.claim_count > MAX_CLAIMS:
        return "stuck", f"{MAX_CLAIMS} workers in a row did not get through the same page."
    if types.find_type(lease.request.type) is None:
        return "unknown_type", "Its type was switched off."
    return None


def _fan_out(lease: BroadcastLease, now: datetime) -> PageResult:
    user_ids = repository.next_user_ids(lease.audience, after=lease.cursor, limit=PAGE_SIZE)
    result = fan_out.fan_out(
        user_ids, request=lease.request, broadcast_id=lease.id, caller=lease.caller, now=now
    )
    return PageResult(
        accepted=result.accepted,
        skipped=result.skipped,
        rejected=result.rejected,
        cursor=user_ids[-1] if user_ids else None,
        is_last=len(user_ids) < PAGE_SIZE,
    )


def _cancel_page(lease: BroadcastLease, clock: Clock) -> datetime | None:
    """Withdraw what is pending of the next notifications; return when to go on, None at the end."""
    now = clock()
    ids = _find_pending(lease.id)
    count = store.cancel_pending(ids=ids, reason=CANCELLED_REASON, now=now) if ids else 0
    at: datetime | None = now
    if len(ids) < PAGE_SIZE:
        # What is being sent ends by itself: well, badly, or pending again and then withdrawn.
        at = now + CANCEL_POLL_INTERVAL if repository.has_open(lease.id) else None
    if not repository.record_cancelled(lease, count, at=at, now=now):
        return None
    log.info("broadcast_withdrawn", broadcast_id=str(lease.id), withdrawn=count, is_over=at is None)
    return at


def _find_pending(broadcast_id: ObjectId) -> list[ObjectId]:
    query = {**repository.match_open(broadcast_id), "delivery.status": DeliveryStatus.PENDING.value}
    found = collection("notifications").find(query, {"_id": 1}, batch_size=PAGE_SIZE)
    return [one["_id"] for one in found.hint("ntf_broadcast").limit(PAGE_SIZE)]
