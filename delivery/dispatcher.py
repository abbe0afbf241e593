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
from domain.time import Clock, utc_now
from notifications import callback_events, store
from notifications.inbox import wakeups as inbox_wakeups
from notifications.queueing.wakeups import ISOLATED_PER_WAKEUP, Wakeup
from notifications.store import ClaimedDelivery, Deferred, Settlement
from notifyproject.platform import cache, crash_points, process
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
    counts: dict[str, int] = field(default_factory=dict)
    wakeups: list[Wakeup] = field(default_factory=list)
    remaining_candidates: list[ObjectId] = field(default_factory=list)
    """Poison candidates that are due and that this batch had no time to isolate."""

    def count(self, status: DeliveryStatus) -> None:
        """Count one delivery's fate."""
        self.counts[status.value] = self.counts.get(status.value, 0) + 1

    def add_wakeup(self, claimed: ClaimedDelivery, *, at: datetime) -> None:
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
    def acquire(
        self, provider: str, claims: Sequence[ClaimedDelivery], *, now: datetime
    ) -> Iterator[bool]:
        """Wait for the provider; yield whether it was free before the leases ran short."""
        if len(claims) == 1:
            yield True
            return
        with self._lock:
            provider_lock = self._by_provider.setdefault(provider, threading.Lock())
        time_left = min(claimed.lease_until for claimed in claims) - MIN_LEASE_LEFT - now
        is_acquired = provider_lock.acquire(timeout=max(time_left.total_seconds(), 0))
        try:
            yield is_acquired
        finally:
            if is_acquired:
                provider_lock.release()


bulkhead = Bulkhead()
_isolating_threads = ConcurrencyLimiter()
_isolation_lock = threading.Lock()
_isolation_state = threading.local()


@contextmanager
def isolate_candidates(channel: Channel) -> Iterator[int]:
    """Yield how many candidates this thread may isolate: none while half of the threads do.

    The other half keeps sending what is not suspected.
    """
    with _isolating_threads.try_acquire(
        channel, limit=max(channel_threads() // 2, 1)
    ) as is_acquired:
        yield ISOLATED_PER_WAKEUP if is_acquired else 0


@contextmanager
def isolate() -> Iterator[None]:
    """Wait until no other thread holds a candidate that it has not begun to send."""
    _isolation_lock.acquire()
    _isolation_state.is_acquired = True
    try:
        yield
    finally:
        end_isolation()


def end_isolation() -> None:
    """Let the next candidate be claimed; does nothing in a thread that holds none."""
    if getattr(_isolation_state, "is_acquired", False):
        _isolation_state.is_acquired = False
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


def claim_isolated(
    notification_id: ObjectId, *, channel: Channel, now: datetime
) -> list[ClaimedDelivery]:
    """Claim a delivery that was claimed before and never sent, if it is still nobody's."""
    return store.claim(
        ids=[notification_id],
        channel=channel,
        worker=worker_name(),
        now=now,
        include_poison_candidates=True,
    )


def poison_candidates(
    ids: Sequence[ObjectId], claims: Sequence[ClaimedDelivery], *, channel: Channel, now: datetime
) -> list[ObjectId]:
    """Return what of these a claim of all has left out, for each is to go alone."""
    if len(claims) == len(ids):
        return []
    claimed = {one.notification_id for one in claims}
    unclaimed = [one for one in ids if one not in claimed]
    return store.poison_candidates(ids=unclaimed, channel=channel, now=now)


log = structlog.get_logger(__name__)
S = DeliveryStatus


def dispatch(ids: Sequence[ObjectId], *, channel: Channel, clock: Clock = utc_now) -> BatchReport:
    """Send what of these deliveries is due; any number of callers at once is safe."""
    crash_points.reach(Boundary.WAKEUP_RECEIVED)
    report = BatchReport()
    for batch in batches(ids):
        cache.compare_at_next_read()
        claims = claim(batch, channel=channel, now=clock())
        _deliver_batch(claims, channel, clock, report)
        candidates = poison_candidates(batch, claims, channel=channel, now=clock())
        _dispatch_isolated(candidates, channel, clock, report)
    crash_points.reach(Boundary.TASK_DONE)
    return report


def _dispatch_isolated(
    ids: Sequence[ObjectId], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    """Send a few of these, one after the other, and report the rest: others may do those."""
    remaining = list(ids)
    with isolate_candidates(channel) as limit:
        for one in ids[:limit]:
            with isolate():
                if process.is_shutting_down():
                    break
                claims = claim_isolated(one, channel=channel, now=clock())
                _deliver_batch(claims, channel, clock, report)
            remaining.remove(one)
    report.remaining_candidates += remaining


def _deliver_batch(
    claims: Sequence[ClaimedDelivery], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    report.claimed += len(claims)
    if claims:
        crash_points.reach(Boundary.CLAIMED)
    for is_test in (False, True):
        if group := [claimed for claimed in claims if claimed.is_test is is_test]:
            providers = providers_for(channel, test=is_test)
            _deliver_claimed(group, channel, providers, clock, report)


def _deliver_claimed(
    claims: Sequence[ClaimedDelivery],
    channel: Channel,
    providers: Sequence[Provider],
    clock: Clock,
    report: BatchReport,
) -> None:
    ready, deferred = eligibility.filter_eligible(claims, now=clock(), has_provider=bool(providers))
    resolved = targets.resolve_targets(ready, channel=channel, now=clock())
    with_targets = [claimed for claimed in ready if claimed.reference in resolved.targets]
    messages, unrenderable = rendering.render_batch(with_targets, now=clock())
    _defer([*deferred, *resolved.deferred, *unrenderable], clock(), report)
    crash_points.reach(Boundary.RENDERED)
    deliveries = [
        PreparedDelivery(
            claimed=claimed,
            message=messages[claimed.notification_id].message,
            secret=messages[claimed.notification_id].secret,
            targets=tuple(resolved.targets[claimed.reference]),
            quiet_hours_end=resolved.in_quiet_hours.get(claimed.reference),
        )
        for claimed in ready
        if claimed.notification_id in messages
    ]
    has_recent_success = (
        feedback.has_recent_success(providers[0], now=clock()) if deliveries else False
    )
    rounds = (
        split_rounds(providers[0], deliveries, has_recent_success=has_recent_success)
        if deliveries
        else []
    )
    while rounds and not process.is_shutting_down():
        if not _send_round(rounds[0], providers, clock, report):
            break
        rounds.pop(0)
    _release([delivery.claimed for some in rounds for delivery in some], clock(), report)


def _send_round(
    deliveries: Sequence[PreparedDelivery],
    providers: Sequence[Provider],
    clock: Clock,
    report: BatchReport,
) -> bool:
    """Send some of a batch; return False if the turn for it did not come, or too late."""
    claims = [delivery.claimed for delivery in deliveries]
    with bulkhead.acquire(providers[0].name, claims, now=clock()) as is_acquired:
        if not is_acquired or process.is_shutting_down():
            return False
        routes, deferred = routing.choose_routes(
            claims,
            providers=providers,
            targets={delivery.claimed.reference: delivery.targets for delivery in deliveries},
            paused=circuit_breaker.paused_until(
                [provider.name for provider in providers], now=clock()
            ),
            now=clock(),
        )
        by_reference = {delivery.claimed.reference: delivery for delivery in deliveries}
        sent = [
            _start_and_send(
                route, [_for_route(route, by_reference[c.reference]) for c in route.claims], clock
            )
            for route in routes
        ]
    crash_points.reach(Boundary.BATCH_SENT)
    _defer(deferred, clock(), report)
    for batch in sent:
        _finish_batch(batch, clock(), report)
    return True


def _for_route(route: Route, delivery: PreparedDelivery) -> PreparedDelivery:
    """Return what is to be sent now; devices whose platform is blocked are left out."""
    if (
        not route.blocked_platforms
        and len(delivery.targets) == 1
        and delivery.targets[0].device_id is None
    ):
        # One address that is no device: nothing to leave out and no device to name. What follows
        # would make an equal copy, and in a batch of mails copies are all that it would do.
        return delivery
    open_targets = tuple(t for t in delivery.targets if t.platform not in route.blocked_platforms)
    blocked = [
        route.blocked_platforms[t.platform]
        for t in delivery.targets
        if t.platform in route.blocked_platforms
    ]
    ids = tuple(t.device_id for t in open_targets if t.device_id is not None)
    return replace(
        delivery,
        claimed=replace(delivery.claimed, device_ids=ids),
        targets=open_targets,
        blocked_until=min(blocked, default=None),
    )


@dataclass(frozen=True, slots=True)
class _SentBatch:
    """What came of what was started for a provider."""

    route: Route
    started: Sequence[ClaimedDelivery]
    results: Sequence[tuple[PreparedDelivery, tuple[TargetResult, ...]]]
    started_at: datetime


def _start_and_send(
    route: Route, deliveries: Sequence[PreparedDelivery], clock: Clock
) -> _SentBatch:
    """Start, and hand to the provider."""
    provider, now = route.provider, clock()
    started_claims = store.start(
        [delivery.claimed for delivery in deliveries],
        provider=provider.name,
        worker=worker_name(),
        now=now,
    )
    if len(started_claims) < len(deliveries):
        log.info(
            "deliveries_taken_over",
            provider=provider.name,
            lost=len(deliveries) - len(started_claims),
        )
    by_id = {delivery.claimed.notification_id: delivery for delivery in deliveries}
    end_isolation()
    started = [replace(by_id[c.notification_id], claimed=c) for c in started_claims]
    crash_points.reach(Boundary.STARTED)
    return _SentBatch(route, started_claims, send_batch(provider, started, clock), now)


def _finish_batch(sent: _SentBatch, now: datetime, report: BatchReport) -> None:
    """Settle; and tell the provider's circuit, and whom it concerns, how it went."""
    route, provider = sent.route, sent.route.provider
    settlements = [_settlement(route, delivery, results, now) for delivery, results in sent.results]
    _settle(settlements, now, report)
    _return_unsent(sent.started, [delivery.claimed for delivery, _ in sent.results], now, report)
    flat = [(delivery, result) for delivery, results in sent.results for result in results]
    feedback.report_provider_health(
        provider, [result for _, result in flat], probes=route.probes, now=now
    )
    crash_points.reach(Boundary.REPORTED)
    feedback.apply_reputation(flat, provider=provider.name, now=now)
    tried = [results for _, results in sent.results]
    feedback.record_attempts(settlements, tried, started_at=sent.started_at, now=now)


def _settlement(
    route: Route, delivery: PreparedDelivery, results: Sequence[TargetResult], now: datetime
) -> Settlement:
    return combine_results(
        delivery.claimed,
        results,
        provider=route.provider.name,
        now=now,
        jitter=random_jitter(),
        has_failover=route.has_failover,
        blocked_until=delivery.blocked_until,
        quiet_hours_end=delivery.quiet_hours_end,
    )


def _settle(settlements: Sequence[Settlement], now: datetime, report: BatchReport) -> None:
    settled_count = store.settle(settlements, now=now)
    crash_points.reach(Boundary.SETTLED)
    if settled_count < len(settlements):
        log.info("outcomes_overtaken", count=len(settlements) - settled_count)
    inbox_wakeups.wake_settled(settlements)
    callback_events.enqueue_publisher(now=now)
    for settlement in settlements:
        report.count(settlement.status)
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.add_wakeup(settlement.claimed, at=settlement.next_attempt_at)
    _activate_fallbacks([s.claimed for s in settlements if s.status is S.FAILED], now, report)


def _return_unsent(
    started: Sequence[ClaimedDelivery],
    sent: Sequence[ClaimedDelivery],
    now: datetime,
    report: BatchReport,
) -> None:
    """Give back what the sender did not begin: it was too late for it."""
    sent_references = {claimed.reference for claimed in sent}
    unsent = [claimed for claimed in started if claimed.reference not in sent_references]
    store.return_unsent(unsent, now=now)
    for claimed in unsent:
        report.count(S.PENDING)
        report.add_wakeup(claimed, at=now)


def _release(claims: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    """Give back what this process does not come to."""
    if not claims:
        return
    store.release(claims, now=now)
    crash_points.reach(Boundary.RELEASED)
    for claimed in claims:
        report.count(S.PENDING)
        report.add_wakeup(claimed, at=now)


def _defer(deferred: Sequence[Deferred], now: datetime, report: BatchReport) -> None:
    deferred = [_as_sent_if_accepted(one) for one in deferred]
    store.defer(deferred, now=now)
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.DEFERRED)
    for one in deferred:
        report.count(one.status)
        if one.next_attempt_at is not None:
            report.add_wakeup(one.claimed, at=one.next_attempt_at)
    _activate_fallbacks(
        [p.claimed for p in deferred if p.status in (S.FAILED, S.SUPPRESSED)], now, report
    )
    feedback.record_deferrals(deferred, now=now)


def _as_sent_if_accepted(deferred: Deferred) -> Deferred:
    """Return the end of a delivery: whatever keeps it from the others, one device has it."""
    is_over = deferred.status is not S.PENDING
    return (
        replace(deferred, status=S.SENT)
        if is_over and deferred.claimed.accepted_targets
        else deferred
    )


def _activate_fallbacks(
    failed: Sequence[ClaimedDelivery], now: datetime, report: BatchReport
) -> None:
    """Let the channels that wait for these to fail go at once."""
    for claimed in failed:
        if claimed.fallback_channels:
            ids = [claimed.notification_id]
            store.activate_fallback(ids=ids, fallback_for=claimed.channel, now=now)
            report.wakeups += [
                Wakeup(claimed.notification_id, channel, claimed.priority, now)
                for channel in claimed.fallback_channels
            ]
