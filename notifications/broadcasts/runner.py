"""Runs one page of a broadcast under a lease: a fan-out or a cancellation.

Of a broadcast that awaits an approval, it tells the approvers, or ends it.
"""

from datetime import datetime, timedelta
from functools import partial

import pymongo
import structlog
from bson import ObjectId

from domain.states import BroadcastStatus, DeliveryStatus
from domain.time import Clock, utc_now
from notifications.documents.notification import NOTIFICATIONS
from notifications.store import actions
from notifyproject.platform import crash_points, process
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name

from ..catalog import types
from ..files.enumeration import FileRemovedError, RowsErasedError
from ..queueing import backlog
from . import approvals, audiences, control, fan_out, repository
from .approvals import HeldError
from .audiences import AudiencePage
from .repository import BroadcastLease

log = structlog.get_logger(__name__)
PAGE_SIZE = 1_000  # Recipients in a page: one insert
MAX_PAGE_SECONDS = 40.0
"""Time limit of a page's database calls, below the lease, so that nothing is stored after it."""
SHUTDOWN_DELAY = timedelta(seconds=1)
"""Delay before a message that arrived during shutdown goes to another worker."""
CANCEL_POLL_INTERVAL = timedelta(seconds=30)
"""Interval between checks of a cancelled broadcast that is still sending."""
STUCK_REASON = f"{repository.LEASES.max_claims} consecutive workers failed on the same page."
CANCELLED_REASON = "The broadcast was cancelled."
FILE_REMOVED_REASON = "The rows of the file were removed before all of them were reached."


def run_page(broadcast_id: ObjectId, *, clock: Clock = utc_now) -> bool:
    """Run the next page and enqueue the one after. Return whether the lease was acquired."""
    # Safe to call concurrently. After a PyMongoError, the page is repeated once the lease expires,
    # and stores nothing twice.
    now = clock()
    if process.is_shutting_down():
        control.enqueue(broadcast_id, at=now + SHUTDOWN_DELAY, now=now)
        return False
    lease = repository.acquire_lease(broadcast_id, worker=worker_name(), now=now)
    if lease is None:
        return False
    crash_points.reach(Boundary.BROADCAST_LEASED)
    if lease.status is BroadcastStatus.AWAITING_APPROVAL:
        at = approvals.tell_or_expire(lease, now=clock())
    elif lease.status is BroadcastStatus.CANCELLING:
        at = _cancel_page(lease, clock)
    else:
        try:
            at = _send_page(lease, clock)
        except FileRemovedError:
            at = _end_without_file(lease, clock())
        except RowsErasedError:
            # The page is read again, without them.
            now = clock()
            at = now if repository.release_lease(lease, now=now) else None
    crash_points.reach(Boundary.BROADCAST_ADVANCED)
    if at is not None:
        control.enqueue(broadcast_id, at=at, now=clock())
    return True


def run_inline(*, clock: Clock = utc_now) -> int:
    """Run a page of each due broadcast in this process. Return how many ran."""
    now = clock()
    return sum(
        run_page(broadcast_id, clock=clock)
        for broadcast_id, _ in control.find_due(until=now, now=now)
    )


def _send_page(lease: BroadcastLease, clock: Clock) -> datetime | None:
    """Fan out the next page. Return when to continue, or None if nothing is left."""
    now = clock()
    if (failure := _end_reason(lease, now)) is not None:
        return _fail(lease, failure, now)
    if backlog.is_overloaded(now=now):
        until = now + backlog.RETRY_AFTER
        if repository.defer(lease, until=until, now=now):
            return until
        return now if repository.release_lease(lease, now=now) else None
    try:
        with pymongo.timeout(MAX_PAGE_SECONDS):
            read = audiences.next_page(lease.audience, after=lease.cursor, limit=PAGE_SIZE)
            approvals.check_page(lease, len(read.addressees))
            page = fan_out.fan_out(
                read.addressees,
                request=lease.request,
                broadcast_id=lease.id,
                caller=lease.caller,
                # What changed while the page was made isn't sent either.
                before_storing=partial(_check_page, lease, read),
                now=now,
                pacing=lease.pacing(now=now),
            )
    except HeldError as held:
        return approvals.hold(lease, str(held), now=now)
    for key, refusal in read.refused.items():
        page.reject(key, refusal)
    now = clock()
    is_last = read.is_last
    if not repository.advance(lease, page, cursor=read.cursor, is_last=is_last, now=now):
        # The lease expired during the page, and another worker has it now. A cancellation meanwhile
        # may have missed what was stored here.
        log.warning("broadcast_lease_lost", broadcast_id=str(lease.id))
        return now if repository.restart_cancellation(lease.id, now=now) else None
    log.info(
        "broadcast_page_completed",
        broadcast_id=str(lease.id),
        accepted=page.accepted,
        skipped=sum(map(len, page.skipped.values())),
        rejected=sum(map(len, page.rejected.values())),
        is_last=is_last,
    )
    return None if is_last else now


def _check_page(lease: BroadcastLease, page: AudiencePage) -> None:
    """Raise HeldError or RowsErasedError if a page may not be stored as it was read."""
    approvals.check_page(lease, len(page.addressees))
    page.check()


def _end_without_file(lease: BroadcastLease, now: datetime) -> datetime | None:
    """Fail a broadcast whose file's rows are gone, unless it names another file than approved."""
    if (held := approvals.why_held(lease, 0)) is not None:
        return approvals.hold(lease, held, now=now)
    return _fail(lease, ("file_removed", FILE_REMOVED_REASON), now)


def _fail(lease: BroadcastLease, failure: tuple[str, str], now: datetime) -> datetime | None:
    """End a broadcast early. Return when to continue if it isn't running any more."""
    code, reason = failure
    if repository.fail(lease, code=code, reason=reason, now=now):
        log.warning("broadcast_failed", broadcast_id=str(lease.id), code=code)
        return None
    return now if repository.release_lease(lease, now=now) else None


def _end_reason(lease: BroadcastLease, now: datetime) -> tuple[str, str] | None:
    if lease.expires_at is not None and now >= lease.expires_at:
        return "expired", "Expired before all recipients were reached."
    if lease.claim.is_exhausted:
        return "stuck", STUCK_REASON
    if types.find_type(lease.request.type) is None:
        return "unknown_type", "The type is disabled."
    return None


def _cancel_page(lease: BroadcastLease, clock: Clock) -> datetime | None:
    """Cancel the next pending notifications. Return when to continue, or None at the end."""
    now = clock()
    query = {**repository.match_open(lease.id), "delivery.status": DeliveryStatus.PENDING.value}
    found = NOTIFICATIONS().find(query, {"_id": 1}, batch_size=PAGE_SIZE)
    ids = [document["_id"] for document in found.hint("ntf_broadcast").limit(PAGE_SIZE)]
    count = actions.cancel_pending(ids=ids, reason=CANCELLED_REASON, now=now) if ids else 0
    at: datetime | None = now
    if len(ids) < PAGE_SIZE:
        # Deliveries in progress end by themselves, or become pending again and are cancelled then.
        at = now + CANCEL_POLL_INTERVAL if repository.has_open(lease.id) else None
    if not repository.record_cancelled(lease, count, at=at, now=now):
        return None
    log.info(
        "broadcast_page_cancelled", broadcast_id=str(lease.id), cancelled=count, is_last=at is None
    )
    return at
