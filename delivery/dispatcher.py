"""Runs one batch: claims, checks, renders, routes, sends, and settles it.

Deliveries that may be poison messages are isolated: each of them is a batch of its own.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog
from bson import ObjectId
from django.conf import settings

from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from notifications import callback_events, store
from notifications.inbox import wakeups as inbox_wakeups
from notifications.queueing.wakeups import ISOLATED_PER_WAKEUP, Wakeup
from notifications.store import ClaimedDelivery, Deferred, Settlement
from notifyproject.platform import cache, crash_points, process
from notifyproject.platform.clock import Clock
from notifyproject.platform.concurrency import ConcurrencyLimiter
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name
from providers.contract import Provider
from providers.registry import providers_for

from . import circuit_breaker, eligibility, feedback, rendering, routing, targets
from .results import TargetResult, combine_results, random_jitter
from .routing import Route
from .sending import PreparedDelivery, send_batch, split_rounds


@dataclass(slots=True)
class BatchReport:
    """Result of a batch: deliveries by status, and the wake-ups to enqueue."""

    claimed: int = 0
    fates: dict[str, int] = field(default_factory=dict)
    wakeups: list[Wakeup] = field(default_factory=list)
    left: list[ObjectId] = field(default_factory=list)
    """Poison candidates that are due and that this batch had no time to isolate."""

    def count(self, status: DeliveryStatus) -> None:
        """Count one delivery's fate."""
        self.fates[status.value] = self.fates.get(status.value, 0) + 1

    def look_again(self, claimed: ClaimedDelivery, *, at: datetime) -> None:
        """Have a delivery looked at again at an instant."""
        wakeup = Wakeup(claimed.notification_id, claimed.channel, claimed.priority, at)
        self.wakeups.append(wakeup)


def channel_threads() -> int:
    """Return how many of this process's threads a channel may have: most of them."""
    return max(settings.WORKER_THREADS * 3 // 4, 1)


MIN_LEASE_LEFT = timedelta(seconds=40)
"""How much of a lease must be left to begin a round: claiming again is better than being late."""


class Bulkhead:
    """One batch at a time per provider in this process, so that none takes all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_provider: dict[str, threading.Lock] = {}

    @contextmanager
    def take(
        self, provider: str, claims: Sequence[ClaimedDelivery], *, now: datetime
    ) -> Iterator[bool]:
        """Wait for the provider; yield whether it was free before the leases ran short."""
        if len(claims) == 1:
            yield True
            return
        with self._lock:
            turn = self._by_provider.setdefault(provider, threading.Lock())
        left = min(claimed.lease_until for claimed in claims) - MIN_LEASE_LEFT - now
        is_ours = turn.acquire(timeout=max(left.total_seconds(), 0))
        try:
            yield is_ours
        finally:
            if is_ours:
                turn.release()


bulkhead = Bulkhead()
_isolating_threads = ConcurrencyLimiter()
_isolation_lock = threading.Lock()
_held_here = threading.local()


@contextmanager
def isolate_candidates(channel: Channel) -> Iterator[int]:
    """Yield how many candidates this thread may isolate: none while half of the threads do.

    The other half keeps sending what is not suspected.
    """
    with _isolating_threads.try_acquire(channel, limit=max(channel_threads() // 2, 1)) as has_room:
        yield ISOLATED_PER_WAKEUP if has_room else 0


@contextmanager
def isolate() -> Iterator[None]:
    """Wait until no other thread holds a candidate that it has not begun to send."""
    _isolation_lock.acquire()
    _held_here.is_ours = True
    try:
        yield
    finally:
        end_isolation()


def end_isolation() -> None:
    """Let the next candidate be claimed; does nothing in a thread that holds none."""
    if getattr(_held_here, "is_ours", False):
        _held_here.is_ours = False
        _isolation_lock.release()


MAX_BATCH = 100
"""Deliveries one claim takes: 100 in 4 rounds of 25 or more requests end within the lease."""


def batches(ids: Sequence[ObjectId]) -> Iterator[list[ObjectId]]:
    """Yield these deliveries, each once, as many at a time as one claim takes."""
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), MAX_BATCH):
        yield unique[start : start + MAX_BATCH]


def claim(ids: Sequence[ObjectId], *, channel: Channel, now: datetime) -> list[ClaimedDelivery]:
    """Claim what of these deliveries is due and nobody else's, in this process's name."""
    return store.claim(ids=ids, channel=channel, worker=worker_name(), now=now)


def claim_isolated(one: ObjectId, *, channel: Channel, now: datetime) -> list[ClaimedDelivery]:
    """Claim a delivery that was claimed before and never sent, if it is still nobody's."""
    return store.claim(
        ids=[one], channel=channel, worker=worker_name(), now=now, with_suspects=True
    )


def poison_candidates(
    ids: Sequence[ObjectId], claims: Sequence[ClaimedDelivery], *, channel: Channel, now: datetime
) -> list[ObjectId]:
    """Return what of these a claim of all has left out, for each is to go alone."""
    if len(claims) == len(ids):
        return []
    claimed = {one.notification_id for one in claims}
    left = [one for one in ids if one not in claimed]
    return store.poison_candidates(ids=left, channel=channel, now=now)


log = structlog.get_logger(__name__)
S = DeliveryStatus


def dispatch(ids: Sequence[ObjectId], *, channel: Channel, clock: Clock = utc_now) -> BatchReport:
    """Send what of these deliveries is due; any number of callers at once is safe."""
    crash_points.reach(Boundary.WAKEUP_RECEIVED)
    report = BatchReport()
    for some in batches(ids):
        cache.compare_at_next_read()
        claims = claim(some, channel=channel, now=clock())
        _deliver_batch(claims, channel, clock, report)
        lone = poison_candidates(some, claims, channel=channel, now=clock())
        _dispatch_isolated(lone, channel, clock, report)
    crash_points.reach(Boundary.TASK_DONE)
    return report


def _dispatch_isolated(
    ids: Sequence[ObjectId], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    """Send a few of these, one after the other, and report the rest: others may do those."""
    left = list(ids)
    with isolate_candidates(channel) as most:
        for one in ids[:most]:
            with isolate():
                if process.is_shutting_down():
                    break
                claims = claim_isolated(one, channel=channel, now=clock())
                _deliver_batch(claims, channel, clock, report)
            left.remove(one)
    report.left += left


def _deliver_batch(
    claims: Sequence[ClaimedDelivery], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    report.claimed += len(claims)
    if claims:
        crash_points.reach(Boundary.CLAIMED)
    for is_test in (False, True):
        if alike := [claimed for claimed in claims if claimed.is_test is is_test]:
            providers = providers_for(channel, test=is_test)
            _deliver_claimed(alike, channel, providers, clock, report)


def _deliver_claimed(
    claims: Sequence[ClaimedDelivery],
    channel: Channel,
    providers: Sequence[Provider],
    clock: Clock,
    report: BatchReport,
) -> None:
    ready, parked = eligibility.filter_eligible(claims, now=clock(), has_provider=bool(providers))
    aim = targets.resolve_targets(ready, channel=channel, now=clock())
    aimed = [claimed for claimed in ready if claimed.reference in aim.targets]
    messages, unrenderable = rendering.render_batch(aimed, now=clock())
    _defer([*parked, *aim.parked, *unrenderable], clock(), report)
    crash_points.reach(Boundary.RENDERED)
    drafts = [
        PreparedDelivery(
            claimed=claimed,
            message=messages[claimed.notification_id].message,
            secret=messages[claimed.notification_id].secret,
            targets=tuple(aim.targets[claimed.reference]),
            asleep_until=aim.asleep.get(claimed.reference),
        )
        for claimed in ready
        if claimed.notification_id in messages
    ]
    is_proven = feedback.has_recent_success(providers[0], now=clock()) if drafts else False
    left = split_rounds(providers[0], drafts, is_proven=is_proven) if drafts else []
    while left and not process.is_shutting_down():
        if not _round(left[0], providers, clock, report):
            break
        left.pop(0)
    _release([job.claimed for some in left for job in some], clock(), report)


def _round(
    drafts: Sequence[PreparedDelivery],
    providers: Sequence[Provider],
    clock: Clock,
    report: BatchReport,
) -> bool:
    """Send some of a batch; return False if the turn for it did not come, or too late."""
    claims = [job.claimed for job in drafts]
    with bulkhead.take(providers[0].name, claims, now=clock()) as is_ours:
        if not is_ours or process.is_shutting_down():
            return False
        routes, waiting = routing.choose_routes(
            claims,
            providers=providers,
            targets={job.claimed.reference: job.targets for job in drafts},
            paused=circuit_breaker.paused_until(
                [provider.name for provider in providers], now=clock()
            ),
            now=clock(),
        )
        drafted = {job.claimed.reference: job for job in drafts}
        sent = [
            _send(route, [_on(route, drafted[c.reference]) for c in route.claims], clock)
            for route in routes
        ]
    crash_points.reach(Boundary.BATCH_SENT)
    _defer(waiting, clock(), report)
    for one in sent:
        _conclude(one, clock(), report)
    return True


def _on(route: Route, draft: PreparedDelivery) -> PreparedDelivery:
    """Return what is to be sent now; devices whose platform is held are left out."""
    if not route.held and len(draft.targets) == 1 and draft.targets[0].device_id is None:
        # One address that is no device: nothing to leave out and no device to name. What follows
        # would make an equal copy, and in a batch of mails copies are all that it would do.
        return draft
    going = tuple(t for t in draft.targets if t.platform not in route.held)
    held = [route.held[t.platform] for t in draft.targets if t.platform in route.held]
    ids = tuple(t.device_id for t in going if t.device_id is not None)
    return replace(
        draft,
        claimed=replace(draft.claimed, device_ids=ids),
        targets=going,
        held_until=min(held, default=None),
    )


@dataclass(frozen=True, slots=True)
class _Sent:
    """What came of what was started for a provider."""

    route: Route
    begun: Sequence[ClaimedDelivery]
    results: Sequence[tuple[PreparedDelivery, tuple[TargetResult, ...]]]
    began_at: datetime


def _send(route: Route, jobs: Sequence[PreparedDelivery], clock: Clock) -> _Sent:
    """Start, and hand to the provider."""
    provider, now = route.provider, clock()
    begun = store.start(
        [job.claimed for job in jobs],
        provider=provider.name,
        worker=worker_name(),
        now=now,
    )
    if len(begun) < len(jobs):
        log.info("deliveries_taken_over", provider=provider.name, lost=len(jobs) - len(begun))
    by_id = {job.claimed.notification_id: job for job in jobs}
    end_isolation()
    started = [replace(by_id[c.notification_id], claimed=c) for c in begun]
    crash_points.reach(Boundary.STARTED)
    return _Sent(route, begun, send_batch(provider, started, clock), now)


def _conclude(sent: _Sent, now: datetime, report: BatchReport) -> None:
    """Settle; and tell the provider's circuit, and whom it concerns, how it went."""
    route, provider = sent.route, sent.route.provider
    settlements = [_settlement(route, job, results, now) for job, results in sent.results]
    _settle(settlements, now, report)
    _return_unsent(sent.begun, [job.claimed for job, _ in sent.results], now, report)
    flat = [(job, result) for job, results in sent.results for result in results]
    feedback.report_provider_health(
        provider, [result for _, result in flat], probes=route.probes, now=now
    )
    crash_points.reach(Boundary.REPORTED)
    feedback.apply_reputation(flat, provider=provider.name, now=now)
    tried = [results for _, results in sent.results]
    feedback.record_attempts(settlements, tried, began_at=sent.began_at, now=now)


def _settlement(
    route: Route, job: PreparedDelivery, results: Sequence[TargetResult], now: datetime
) -> Settlement:
    return combine_results(
        job.claimed,
        results,
        provider=route.provider.name,
        now=now,
        dice=random_jitter(),
        has_substitute=route.has_substitute,
        held_until=job.held_until,
        asleep_until=job.asleep_until,
    )


def _settle(settlements: Sequence[Settlement], now: datetime, report: BatchReport) -> None:
    ours = store.settle(settlements, now=now)
    crash_points.reach(Boundary.SETTLED)
    if ours < len(settlements):
        log.info("outcomes_overtaken", count=len(settlements) - ours)
    inbox_wakeups.wake_settled(settlements)
    callback_events.enqueue_publisher(now=now)
    for settlement in settlements:
        report.count(settlement.status)
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.look_again(settlement.claimed, at=settlement.next_attempt_at)
    _call_in([s.claimed for s in settlements if s.status is S.FAILED], now, report)


def _return_unsent(
    started: Sequence[ClaimedDelivery],
    begun: Sequence[ClaimedDelivery],
    now: datetime,
    report: BatchReport,
) -> None:
    """Give back what the sender did not begin: it was too late for it."""
    known = {claimed.reference for claimed in begun}
    left = [claimed for claimed in started if claimed.reference not in known]
    store.return_unsent(left, now=now)
    for claimed in left:
        report.count(S.PENDING)
        report.look_again(claimed, at=now)


def _release(claims: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    """Give back what this process does not come to."""
    if not claims:
        return
    store.release(claims, now=now)
    crash_points.reach(Boundary.RELEASED)
    for claimed in claims:
        report.count(S.PENDING)
        report.look_again(claimed, at=now)


def _defer(parked: Sequence[Deferred], now: datetime, report: BatchReport) -> None:
    parked = [_or_sent(one) for one in parked]
    store.defer(parked, now=now)
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.DEFERRED)
    for one in parked:
        report.count(one.status)
        if one.next_attempt_at is not None:
            report.look_again(one.claimed, at=one.next_attempt_at)
    _call_in([p.claimed for p in parked if p.status in (S.FAILED, S.SUPPRESSED)], now, report)
    feedback.record_deferrals(parked, now=now)


def _or_sent(parked: Deferred) -> Deferred:
    """Return the end of a delivery: whatever keeps it from the others, one device has it."""
    is_over = parked.status is not S.PENDING
    return replace(parked, status=S.SENT) if is_over and parked.claimed.accepted_targets else parked


def _call_in(failed: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    """Let the channels that wait for these to fail go at once."""
    for claimed in failed:
        if claimed.substitutes:
            ids = [claimed.notification_id]
            store.activate_fallback(ids=ids, instead_of=claimed.channel, now=now)
            report.wakeups += [
                Wakeup(claimed.notification_id, channel, claimed.priority, now)
                for channel in claimed.substitutes
            ]
