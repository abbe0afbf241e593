"""Sends one batch of due deliveries, from the claim to the settlement.

The steps: claim, eligibility, targets, rendering, routing, start, send, settle. A delivery that
fails at a step leaves the batch, and the reason is stored. Each poison candidate is sent alone.
"""

import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from notifications.store import ClaimedDelivery, NotSent, Settlement
from notifyproject.platform import cache, crash_points, process
from notifyproject.platform.concurrency import ConcurrencyLimiter
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name
from providers.contract import Provider
from providers.registry import providers_for

from . import circuit_breaker, eligibility, feedback, rendering, routing, targets
from .results import TargetResult, combine_results
from .routing import Route
from .sending import PreparedDelivery, send_batch, split_rounds

log = structlog.get_logger(__name__)
_random = random.SystemRandom()
S = DeliveryStatus
MAX_BATCH = 100
"""Maximum of deliveries in one claim: four rounds of 25 requests end within the lease."""
MIN_LEASE_LEFT = timedelta(seconds=40)
"""Lease time that a round needs at its start. With less, its deliveries are released."""


@dataclass(slots=True)
class BatchReport:
    """Result of a batch: deliveries by status, and the wake-ups to enqueue."""

    claimed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wakeups: list[Wakeup] = field(default_factory=list)
    remaining_candidates: list[ObjectId] = field(default_factory=list)
    """Due poison candidates that this batch did not isolate, for lack of a thread."""

    def add_wakeup(self, claimed: ClaimedDelivery, *, at: datetime) -> None:
        """Add a wake-up for a delivery at a time."""
        self.wakeups.append(Wakeup(claimed.notification_id, claimed.channel, claimed.priority, at))


def dispatch(ids: Sequence[ObjectId], *, channel: Channel, clock: Clock = utc_now) -> BatchReport:
    """Send the deliveries among ``ids`` that are due. Concurrent callers never send one twice."""
    crash_points.reach(Boundary.WAKEUP_RECEIVED)
    report = BatchReport()
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), MAX_BATCH):
        batch = unique[start : start + MAX_BATCH]
        cache.compare_at_next_read()
        claims = store.claim(ids=batch, channel=channel, worker=worker_name(), now=clock())
        _deliver(claims, channel, clock, report)
        if len(claims) < len(batch):
            claimed_ids = {claimed.notification_id for claimed in claims}
            unclaimed = [one for one in batch if one not in claimed_ids]
            candidates = store.poison_candidates(ids=unclaimed, channel=channel, now=clock())
            _dispatch_isolated(candidates, channel, clock, report)
    crash_points.reach(Boundary.TASK_DONE)
    return report


def _dispatch_isolated(
    ids: Sequence[ObjectId], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    remaining = list(ids)
    limit = max(channel_threads() // 2, 1)
    with _isolating_threads.try_acquire(channel, limit=limit) as has_thread:
        for one in ids[: ISOLATED_PER_WAKEUP if has_thread else 0]:
            with isolate():
                if process.is_shutting_down():
                    break
                claims = store.claim(
                    ids=[one],
                    channel=channel,
                    worker=worker_name(),
                    now=clock(),
                    include_poison_candidates=True,
                )
                _deliver(claims, channel, clock, report)
            remaining.remove(one)
    report.remaining_candidates += remaining


def _deliver(
    claims: Sequence[ClaimedDelivery], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    report.claimed += len(claims)
    if claims:
        crash_points.reach(Boundary.CLAIMED)
    for is_test in (False, True):
        group = [claimed for claimed in claims if claimed.is_test is is_test]
        if not group:
            continue
        providers = providers_for(channel, test=is_test)
        deliveries = _prepare(group, channel, clock, report, has_provider=bool(providers))
        if deliveries:
            _send(deliveries, providers, clock, report)


def _prepare(
    claims: Sequence[ClaimedDelivery],
    channel: Channel,
    clock: Clock,
    report: BatchReport,
    *,
    has_provider: bool,
) -> list[PreparedDelivery]:
    ready, ineligible = eligibility.filter_eligible(claims, now=clock(), has_provider=has_provider)
    resolved = targets.resolve_targets(ready, channel=channel, now=clock())
    with_targets = [claimed for claimed in ready if claimed.reference in resolved.targets]
    messages, unrenderable = rendering.render_batch(with_targets, now=clock())
    _settle_not_sent([*ineligible, *resolved.not_sent, *unrenderable], clock(), report)
    crash_points.reach(Boundary.RENDERED)
    return [
        PreparedDelivery(
            claimed=claimed,
            message=messages[claimed.notification_id].message,
            secret=messages[claimed.notification_id].secret,
            targets=tuple(resolved.targets[claimed.reference]),
            quiet_hours_end=resolved.in_quiet_hours.get(claimed.reference),
        )
        for claimed in with_targets
        if claimed.notification_id in messages
    ]


def _send(
    deliveries: Sequence[PreparedDelivery],
    providers: Sequence[Provider],
    clock: Clock,
    report: BatchReport,
) -> None:
    has_recent_success = feedback.has_recent_success(providers[0], now=clock())
    rounds = split_rounds(providers[0], deliveries, has_recent_success=has_recent_success)
    while rounds and not process.is_shutting_down():
        if not _send_round(rounds[0], providers, clock, report):
            break
        rounds.pop(0)
    if left := [delivery.claimed for some in rounds for delivery in some]:
        now = clock()
        store.release(left, now=now)
        crash_points.reach(Boundary.RELEASED)
        _requeue(left, now, report)


def _send_round(
    deliveries: Sequence[PreparedDelivery],
    providers: Sequence[Provider],
    clock: Clock,
    report: BatchReport,
) -> bool:
    """Route, send, and settle one round. Return False if the round could not start in time."""
    claims = [delivery.claimed for delivery in deliveries]
    by_reference = {delivery.claimed.reference: delivery for delivery in deliveries}
    with bulkhead(providers[0].name, claims, now=clock()) as is_acquired:
        if not is_acquired or process.is_shutting_down():
            return False
        names = [provider.name for provider in providers]
        routes, not_sent = routing.choose_routes(
            claims,
            providers=providers,
            targets={reference: one.targets for reference, one in by_reference.items()},
            paused=circuit_breaker.paused_until(names, now=clock()),
            now=clock(),
        )
        sent = [_start_and_send(route, by_reference, clock) for route in routes]
    crash_points.reach(Boundary.BATCH_SENT)
    _settle_not_sent(not_sent, clock(), report)
    for batch in sent:
        _finish(batch, clock(), report)
    return True


def _for_route(route: Route, delivery: PreparedDelivery) -> PreparedDelivery:
    if (
        not route.blocked_platforms
        and len(delivery.targets) == 1
        and delivery.targets[0].device_id is None
    ):
        # One address that is not a device: the copy below would be equal, and in a batch of
        # mails such copies cost measurable time.
        return delivery
    open_targets = tuple(t for t in delivery.targets if t.platform not in route.blocked_platforms)
    blocked = [
        route.blocked_platforms[t.platform]
        for t in delivery.targets
        if t.platform in route.blocked_platforms
    ]
    platforms = {t.device_id: t.platform for t in open_targets if t.device_id is not None}
    return replace(
        delivery,
        claimed=replace(delivery.claimed, device_ids=tuple(platforms), platforms=platforms),
        targets=open_targets,
        blocked_until=min(blocked, default=None),
    )


@dataclass(frozen=True, slots=True)
class _SentBatch:
    route: Route
    started: Sequence[ClaimedDelivery]
    results: Sequence[tuple[PreparedDelivery, tuple[TargetResult, ...]]]
    started_at: datetime


def _start_and_send(
    route: Route, by_reference: Mapping[str, PreparedDelivery], clock: Clock
) -> _SentBatch:
    """Record the start of each attempt, then send the deliveries whose lease is still ours."""
    provider, now = route.provider, clock()
    deliveries = [_for_route(route, by_reference[one.reference]) for one in route.claims]
    claims = [delivery.claimed for delivery in deliveries]
    started_claims = store.start(claims, provider=provider.name, worker=worker_name(), now=now)
    if lost := len(claims) - len(started_claims):
        log.info("deliveries_taken_over", provider=provider.name, lost=lost)
    by_id = {delivery.claimed.notification_id: delivery for delivery in deliveries}
    # A started delivery is no poison candidate: the next candidate may be claimed during the send.
    end_isolation()
    started = [replace(by_id[c.notification_id], claimed=c) for c in started_claims]
    crash_points.reach(Boundary.STARTED)
    return _SentBatch(route, started_claims, send_batch(provider, started, clock), now)


def _finish(sent: _SentBatch, now: datetime, report: BatchReport) -> None:
    route, provider = sent.route, sent.route.provider
    settlements = [
        combine_results(
            delivery.claimed,
            results,
            provider=provider.name,
            now=now,
            jitter=_random.uniform(-1, 1),
            has_failover=route.has_failover,
            blocked_until=delivery.blocked_until,
            quiet_hours_end=delivery.quiet_hours_end,
        )
        for delivery, results in sent.results
    ]
    _settle(settlements, now, report)
    # The lease or the notification ended before the request.
    attempted = {delivery.claimed.reference for delivery, _ in sent.results}
    unsent = [claimed for claimed in sent.started if claimed.reference not in attempted]
    store.return_unsent(unsent, now=now)
    _requeue(unsent, now, report)
    flat = [(delivery, result) for delivery, results in sent.results for result in results]
    feedback.report_provider_health(
        provider, [result for _, result in flat], probes=route.probes, now=now
    )
    crash_points.reach(Boundary.REPORTED)
    feedback.apply_reputation(flat, provider=provider.name, now=now)
    attempt_results = [results for _, results in sent.results]
    feedback.record_attempts(settlements, attempt_results, started_at=sent.started_at, now=now)


def _settle(settlements: Sequence[Settlement], now: datetime, report: BatchReport) -> None:
    settled_count = store.settle(settlements, now=now)
    crash_points.reach(Boundary.SETTLED)
    if settled_count < len(settlements):
        log.info("settlements_superseded", count=len(settlements) - settled_count)
    inbox_wakeups.wake_settled(settlements)
    callback_events.enqueue_publisher(now=now)
    for settlement in settlements:
        report.counts[settlement.status.value] += 1
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.add_wakeup(settlement.claimed, at=settlement.next_attempt_at)
    _activate_fallbacks([s.claimed for s in settlements if s.status is S.FAILED], now, report)


def _requeue(claims: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    for claimed in claims:
        report.counts[S.PENDING.value] += 1
        report.add_wakeup(claimed, at=now)


def _settle_not_sent(not_sent: Sequence[NotSent], now: datetime, report: BatchReport) -> None:
    # A delivery that ends here counts as sent if an earlier attempt reached one of its devices.
    not_sent = [
        replace(one, status=S.SENT)
        if one.status is not S.PENDING and one.claimed.accepted_targets
        else one
        for one in not_sent
    ]
    store.settle_not_sent(not_sent, now=now)
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.DEFERRED)
    for one in not_sent:
        report.counts[one.status.value] += 1
        if one.next_attempt_at is not None:
            report.add_wakeup(one.claimed, at=one.next_attempt_at)
    # A delivery may end as expired before its expiry: a fallback channel still has that time.
    ended = (S.FAILED, S.SUPPRESSED, S.EXPIRED)
    _activate_fallbacks([one.claimed for one in not_sent if one.status in ended], now, report)
    feedback.record_not_sent(not_sent, now=now)


def _activate_fallbacks(
    failed: Sequence[ClaimedDelivery], now: datetime, report: BatchReport
) -> None:
    for claimed in failed:
        if claimed.fallback_channels:
            ids = [claimed.notification_id]
            store.activate_fallback(ids=ids, fallback_for=claimed.channel, now=now)
            report.wakeups += [
                Wakeup(claimed.notification_id, channel, claimed.priority, now)
                for channel in claimed.fallback_channels
            ]


_bulkheads: dict[str, threading.Lock] = {}


@contextmanager
def bulkhead(provider: str, claims: Sequence[ClaimedDelivery], *, now: datetime) -> Iterator[bool]:
    """Wait until no other batch of this process is being sent to the provider.

    Yield False if too little lease time is left by then. A single delivery does not wait.
    """
    if len(claims) == 1:
        yield True
        return
    provider_lock = _bulkheads.setdefault(provider, threading.Lock())
    time_left = min(claimed.lease_until for claimed in claims) - MIN_LEASE_LEFT - now
    is_acquired = provider_lock.acquire(timeout=max(time_left.total_seconds(), 0))
    try:
        yield is_acquired
    finally:
        if is_acquired:
            provider_lock.release()


def channel_threads() -> int:
    """Return how many threads of this process one channel may use: three quarters of them."""
    return max(settings.WORKER_THREADS * 3 // 4, 1)


# If this process crashes, each candidate that is claimed but not started counts a crash. Therefore
# a lock allows one such candidate at a time: `isolate` takes the lock before the claim, and
# `_start_and_send` calls `end_isolation` at the start, so that a slow send blocks no candidate. A
# deferred candidate never starts, so `isolate` also releases the lock at its end. The thread-local
# flag says whether this thread holds the lock, since ordinary batches call `end_isolation`, too.
_isolating_threads = ConcurrencyLimiter()
_isolation_lock = threading.Lock()
_isolation_state = threading.local()


@contextmanager
def isolate() -> Iterator[None]:
    """Wait until no other thread has a poison candidate between claim and start."""
    _isolation_lock.acquire()
    _isolation_state.is_acquired = True
    try:
        yield
    finally:
        end_isolation()


def end_isolation() -> None:
    """Let another thread claim a poison candidate, if this thread holds the isolation lock."""
    if getattr(_isolation_state, "is_acquired", False):
        _isolation_state.is_acquired = False
        _isolation_lock.release()
