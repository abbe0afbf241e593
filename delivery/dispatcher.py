"""Sends one batch of due deliveries, from the claim to the settlement.

The steps: claim, eligibility, targets, rendering, limits, routing, start, send, settle. A delivery
that fails at a step leaves the batch, and the reason is stored. Each poison candidate is sent
alone.
"""

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import Self

import structlog
from bson import ObjectId
from django.conf import settings

from domain.plans import ENDED_UNREACHED
from domain.states import Channel, DeliveryStatus
from domain.time import Clock, utc_now
from domain.wait_reasons import WaitReason
from notifications import callback_events, store
from notifications.catalog.limits import active_limits
from notifications.inbox import wakeups as inbox_wakeups
from notifications.queueing.wakeups import Wakeup
from notifications.store import ClaimedDelivery, NotSent, Settlement
from notifyproject.platform import cache, crash_points, process
from notifyproject.platform.concurrency import ConcurrencyLimiter
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name
from providers.contract import Provider
from providers.registry import providers_for

from . import circuit_breaker, digests, eligibility, feedback, limits, rendering, routing, targets
from .results import TargetResult, combine_results
from .routing import Route
from .sending import InFlight, PreparedDelivery, SentGroup, group_by_request, request_count
from .window import send_window

log = structlog.get_logger(__name__)
_random = random.SystemRandom()
S = DeliveryStatus
MAX_BATCH = 100
"""Deliveries of one claim."""
MIN_LEASE_LEFT = timedelta(seconds=40)
"""Lease time that a send needs at its start. Deliveries that wait longer are released."""
STARTED_GROUPS = 32
"""Groups whose start is recorded together."""
REFILL_SECONDS = 0.02
"""Longest wait for an answer while deliveries wait for capacity in the window."""
WAIT_SECONDS = 1.0
"""Longest wait for capacity before a shutdown or a short lease is noticed."""
RATE_WAIT_SECONDS = 10.0
"""Longest time that a batch waits for the rate limiter. The deliveries that are left are held."""
RATE_CHECK_SECONDS = 0.07
"""Interval of its requests to the rate limiter, whose burst is the messages of 0.1 s."""
MAX_SEND_SECONDS = 60.0
"""Longest wait for an answer: four times a request's timeout."""
ISOLATION_TIME = timedelta(seconds=45)
"""Time in which a wake-up isolates poison candidates. With a last request of 15 s it takes a
minute: less than the two minutes after which the broker redelivers a message."""


@dataclass(slots=True)
class BatchReport:
    """Result of a batch: deliveries by status, and the wake-ups to enqueue."""

    claimed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wakeups: list[Wakeup] = field(default_factory=list)
    """Of deliveries of the batch."""
    moved_up: list[Wakeup] = field(default_factory=list)
    """Of other deliveries, for which a limit has room now: also other clients' and priorities'."""

    def add_wakeup(self, claimed: ClaimedDelivery, *, at: datetime) -> None:
        """Add a wake-up for a delivery at a time."""
        self.wakeups.append(Wakeup(claimed.notification_id, claimed.channel, claimed.priority, at))


def dispatch(
    ids: Sequence[ObjectId],
    *,
    channel: Channel,
    clock: Clock = utc_now,
    on_in_flight: Callable[[BatchReport], None] = lambda _: None,
) -> BatchReport:
    """Send the deliveries among ``ids`` that are due. Concurrent callers never send one twice.

    ``on_in_flight`` is called when the last request of a batch is in flight.
    """
    crash_points.reach(Boundary.WAKEUP_RECEIVED)
    report = BatchReport()
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), MAX_BATCH):
        batch = unique[start : start + MAX_BATCH]
        cache.compare_at_next_read()
        claims = store.claim(ids=batch, channel=channel, worker=worker_name(), now=clock())
        _deliver(claims, channel, clock, report, on_in_flight=on_in_flight)
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
    """Send poison candidates one by one. Those without a thread or time are left to the sweeper.

    Wake-ups for them would add load to a process that has no capacity.
    """
    limit, ends_at = max(channel_threads() // 2, 1), clock() + ISOLATION_TIME
    with _isolating_threads.try_acquire(channel, limit=limit) as has_thread:
        for one in ids if has_thread else ():
            with Isolation() as isolation:
                if process.is_shutting_down() or clock() >= ends_at:
                    break
                claims = store.claim(
                    ids=[one],
                    channel=channel,
                    worker=worker_name(),
                    now=clock(),
                    include_poison_candidates=True,
                )
                _deliver(claims, channel, clock, report, on_started=isolation.end)


def _deliver(
    claims: Sequence[ClaimedDelivery],
    channel: Channel,
    clock: Clock,
    report: BatchReport,
    *,
    on_started: Callable[[], None] = lambda: None,
    on_in_flight: Callable[[BatchReport], None] = lambda _: None,
) -> None:
    report.claimed += len(claims)
    if claims:
        crash_points.reach(Boundary.CLAIMED)
    for is_test in (False, True):
        group = [claimed for claimed in claims if claimed.is_test is is_test]
        if not group:
            continue
        providers = providers_for(channel, test=is_test)
        deliveries = _prepare(group, channel, clock, report, providers=providers)
        if deliveries:
            _BatchSend(providers, clock, report, on_started, on_in_flight).run(deliveries)


def _prepare(
    claims: Sequence[ClaimedDelivery],
    channel: Channel,
    clock: Clock,
    report: BatchReport,
    *,
    providers: Sequence[Provider],
) -> list[PreparedDelivery]:
    separate, digested = digests.join_digests(claims, now=clock())
    ready, ineligible = eligibility.filter_eligible(
        separate,
        now=clock(),
        has_provider=bool(providers),
        with_soft_bounces=any(map(feedback.clears_soft_bounces, providers)),
    )
    resolved = targets.resolve_targets(ready, channel=channel, now=clock())
    with_targets = [claimed for claimed in ready if claimed.reference in resolved.targets]
    messages, unrenderable = rendering.render_batch(with_targets, now=clock())
    rendered = [one for one in with_targets if one.notification_id in messages]
    limited = (
        limits.apply_limits(rendered, now=clock())
        if active_limits()
        else limits.Limited(allowed=rendered)
    )
    report.moved_up += [
        Wakeup(one.notification_id, one.channel, one.priority, clock()) for one in limited.moved_up
    ]
    digested += digests.join_over_limit(limited.digested, now=clock())
    not_sent = [*ineligible, *resolved.not_sent, *unrenderable, *limited.refused, *digested]
    _settle_not_sent(not_sent, clock(), report)
    digests.confirm_joined(digested, now=clock())
    crash_points.reach(Boundary.RENDERED)
    return [
        PreparedDelivery(
            claimed=claimed,
            message=messages[claimed.notification_id].message,
            secret=messages[claimed.notification_id].secret,
            targets=tuple(resolved.targets[claimed.reference]),
            quiet_hours_end=resolved.in_quiet_hours.get(claimed.reference),
        )
        for claimed in limited.allowed
    ]


class _BatchSend:
    """Sends prepared deliveries through the provider's window, and settles them as answers come."""

    def __init__(
        self,
        providers: Sequence[Provider],
        clock: Clock,
        report: BatchReport,
        on_started: Callable[[], None],
        on_in_flight: Callable[[BatchReport], None],
    ) -> None:
        self._providers = providers
        self._clock = clock
        self._report = report
        self._on_started = on_started
        self._on_in_flight = on_in_flight
        self._window = send_window(providers[0])
        self._in_flight = InFlight(clock)
        self._waiting: deque[list[PreparedDelivery]] = deque()
        self._is_single = False
        self._next_start = self._rate_wait_end = time.monotonic()

    def run(self, deliveries: Sequence[PreparedDelivery]) -> None:
        """Send all deliveries that their leases leave time for; release the others."""
        self._waiting += group_by_request(self._providers[0], deliveries)
        self._is_single = len(deliveries) == 1
        if not self._is_single:
            self._rate_wait_end += RATE_WAIT_SECONDS
        try:
            while self._waiting or self._in_flight.count:
                if process.is_shutting_down():
                    self._release_waiting()
                if self._waiting:
                    if not self._await_rate():
                        continue
                    self._start(self._take_groups())
                    if not self._waiting:
                        self._end_rate_wait()
                        self._on_in_flight(self._report)
                self._finish(REFILL_SECONDS if self._waiting else MAX_SEND_SECONDS)
        finally:
            self._end_rate_wait()
            # After an error, such as of MongoDB, the requests in flight still have results.
            while self._in_flight.count:
                self._finish(MAX_SEND_SECONDS)

    def _take_groups(self) -> list[list[PreparedDelivery]]:
        """Return groups that have capacity in the window; none if there is no capacity yet."""
        wanted = sum(map(request_count, islice(self._waiting, STARTED_GROUPS)))
        if self._in_flight.count:
            capacity = self._window.try_acquire(wanted)
        elif self._is_single:
            # A single delivery does not wait, so that it never queues behind a batch.
            self._window.adjust(wanted)
            capacity = wanted
        else:
            ends_at = min(one.claimed.lease_until for group in self._waiting for one in group)
            time_left = (ends_at - MIN_LEASE_LEFT - self._clock()).total_seconds()
            capacity = self._window.acquire(wanted, timeout=max(min(time_left, WAIT_SECONDS), 0))
            if not capacity and time_left <= WAIT_SECONDS:
                self._release_waiting()
        if process.is_shutting_down():
            self._window.adjust(-capacity)
            return []
        groups: list[list[PreparedDelivery]] = []
        while capacity > 0:
            groups.append(self._waiting.popleft())
            capacity -= request_count(groups[-1])
        # The last one, to many devices, may have needed more.
        self._window.adjust(-capacity)
        return groups

    def _start(self, groups: Sequence[Sequence[PreparedDelivery]]) -> None:
        """Route the groups, record the start of each attempt, and hand them to the event loop."""
        if not groups:
            return
        by_reference = {one.claimed.reference: one for group in groups for one in group}
        now, names = self._clock(), [provider.name for provider in self._providers]
        began = time.monotonic()
        unused = sum(map(request_count, groups))
        try:
            routes, not_sent = routing.choose_routes(
                [one.claimed for one in by_reference.values()],
                providers=self._providers,
                targets={reference: one.targets for reference, one in by_reference.items()},
                paused=circuit_breaker.paused_until(names, now=now),
                now=now,
            )
            for route in routes:
                sending = group_by_request(route.provider, self._record_start(route, by_reference))
                count = sum(map(request_count, sending))
                is_failover = route.provider is not self._providers[0]
                if is_failover:
                    send_window(route.provider).adjust(count)
                else:
                    unused -= count
                if sending:
                    at_once = self._is_single or is_failover
                    self._in_flight.submit(route, sending, at_once=at_once)
                else:
                    # All were taken over or cancelled: a probe goes back.
                    _finish(route, [], self._clock(), self._report)
        finally:
            self._window.adjust(-unused)
        held = self._keep_rate_limited(not_sent, by_reference, now, began)
        _settle_not_sent(held, self._clock(), self._report)

    def _await_rate(self) -> bool:
        """Wait shortly for the next token, and settle answers. Return whether it is due."""
        wait = min(self._next_start - time.monotonic(), WAIT_SECONDS)
        if wait > 0:
            if self._in_flight.count:
                self._finish(wait)
            else:
                time.sleep(wait)
        return wait <= 0

    def _keep_rate_limited(
        self,
        not_sent: Sequence[NotSent],
        by_reference: Mapping[str, PreparedDelivery],
        now: datetime,
        began: float,
    ) -> list[NotSent]:
        """Let deliveries wait in the batch if they soon get a token; return the others.

        With a backlog, each would otherwise be claimed, rendered, and held many times.
        """
        until = now + timedelta(seconds=self._rate_wait_end - began)
        kept, held = [], []
        for one in not_sent:
            at = one.next_attempt_at
            if one.held_reason is WaitReason.RATE_LIMITED and at is not None and at <= until:
                kept.append((at, by_reference[one.claimed.reference]))
            else:
                held.append(one)
        if kept:
            groups = group_by_request(self._providers[0], [delivery for _, delivery in kept])
            self._waiting.extendleft(reversed(groups))
            wait = (min(at for at, _ in kept) - now).total_seconds()
            self._next_start = began + max(wait, RATE_CHECK_SECONDS)
            _rate_waits.setdefault(self._providers[0].account, set()).add(self)
        return held

    def _end_rate_wait(self) -> None:
        _rate_waits.get(self._providers[0].account, set()).discard(self)

    def _record_start(
        self, route: Route, by_reference: Mapping[str, PreparedDelivery]
    ) -> list[PreparedDelivery]:
        """Record the start of each attempt by compare-and-set; return those still leased."""
        provider = route.provider
        deliveries = [_for_route(route, by_reference[one.reference]) for one in route.claims]
        claims = [delivery.claimed for delivery in deliveries]
        started = store.start(
            claims, provider=provider.name, worker=worker_name(), now=self._clock()
        )
        if lost := len(claims) - len(started):
            log.info("deliveries_taken_over", provider=provider.name, lost=lost)
        # A started delivery is no poison candidate: another may be claimed during the send.
        self._on_started()
        crash_points.reach(Boundary.STARTED)
        by_id = {delivery.claimed.notification_id: delivery for delivery in deliveries}
        return [replace(by_id[one.notification_id], claimed=one) for one in started]

    def _finish(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds for answers, and settle their deliveries."""
        finished = self._in_flight.collect(timeout=timeout)
        if not finished:
            if self._in_flight.count and not self._waiting:
                raise RuntimeError(f"no answer within {timeout} seconds")
            return
        crash_points.reach(Boundary.BATCH_SENT)
        by_route: dict[int, list[SentGroup]] = {}
        for group in finished:
            by_route.setdefault(id(group.route), []).append(group)
        for groups in by_route.values():
            sent = [one for group in groups for one in group.results]
            _finish(groups[0].route, sent, self._clock(), self._report)

    def _release_waiting(self) -> None:
        if not self._waiting:
            return
        now = self._clock()
        left = [delivery.claimed for group in self._waiting for delivery in group]
        self._waiting.clear()
        store.release(left, now=now)
        _give_back_uses((claimed, now) for claimed in left)
        crash_points.reach(Boundary.RELEASED)
        _requeue(left, now, self._report)


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


def _finish(
    route: Route,
    sent: Sequence[tuple[PreparedDelivery, tuple[TargetResult, ...]]],
    now: datetime,
    report: BatchReport,
) -> None:
    provider = route.provider
    attempted = [(delivery, results) for delivery, results in sent if results]
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
            is_doubted=bool(route.probes),
        )
        for delivery, results in attempted
    ]
    _settle(settlements, now, report)
    # Their lease or lifetime ended before their request.
    unsent = [delivery.claimed for delivery, results in sent if not results]
    store.return_unsent(unsent, now=now)
    _give_back_uses((claimed, now) for claimed in unsent)
    _requeue(unsent, now, report)
    flat = [(delivery, result) for delivery, results in attempted for result in results]
    feedback.report_provider_health(provider, flat, probes=route.probes, now=now)
    crash_points.reach(Boundary.REPORTED)
    feedback.apply_reputation(flat, provider=provider, now=now, is_doubted=bool(route.probes))
    feedback.record_attempts(settlements, [results for _, results in attempted], now=now)


def _settle(settlements: Sequence[Settlement], now: datetime, report: BatchReport) -> None:
    settled_count = store.settle(settlements, now=now)
    crash_points.reach(Boundary.SETTLED)
    if settled_count < len(settlements):
        log.info("settlements_superseded", count=len(settlements) - settled_count)
    _give_back_uses(
        (s.claimed, s.next_attempt_at)
        for s in settlements
        if s.claimed.limit_uses and limits.is_certainly_unsent(s)
    )
    inbox_wakeups.send_settled_wakeups(settlements)
    callback_events.enqueue_publisher(now=now)
    for settlement in settlements:
        report.counts[settlement.status.value] += 1
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.add_wakeup(settlement.claimed, at=settlement.next_attempt_at)
    _open_next_steps([s.claimed for s in settlements if s.status is S.FAILED], now, report)


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
    _give_back_uses(
        (one.claimed, one.next_attempt_at) for one in not_sent if one.status is not S.SENT
    )
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.DEFERRED)
    for one in not_sent:
        report.counts[one.status.value] += 1
        if one.next_attempt_at is not None:
            report.add_wakeup(one.claimed, at=one.next_attempt_at)
    # A delivery may end as expired before its expiry: the next step still has that time.
    ended = [one.claimed for one in not_sent if one.status in ENDED_UNREACHED]
    _open_next_steps(ended, now, report)
    feedback.record_not_sent(not_sent, now=now)


def _give_back_uses(unsent: Iterable[tuple[ClaimedDelivery, datetime | None]]) -> None:
    """Give back what deliveries have reserved; with each, its next attempt if it has one."""
    if counted := [(claimed, next_at) for claimed, next_at in unsent if claimed.limit_uses]:
        limits.give_back(counted)


def _open_next_steps(ended: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    waiting = [claimed for claimed in ended if claimed.later_channels]
    store.open_next_steps(ids=[claimed.notification_id for claimed in waiting], now=now)
    report.wakeups += [
        Wakeup(claimed.notification_id, channel, claimed.priority, now)
        for claimed in waiting
        for channel in claimed.later_channels
    ]


def channel_threads() -> int:
    """Return how many threads of this process one channel may use: three quarters of them."""
    return max(settings.WORKER_THREADS * 3 // 4, 1)


def in_flight(channel: Channel) -> int:
    """Return how many requests to the channel's providers are in flight here, or about to be."""
    return sum(send_window(provider).taken for provider in providers_for(channel))


def is_waiting_for_rate(channel: Channel) -> bool:
    """Return whether a batch of this process waits for a token of the channel's providers."""
    return any(_rate_waits.get(provider.account) for provider in providers_for(channel))


_rate_waits: dict[str, set[_BatchSend]] = {}
"""By provider account: the batches that wait for a token."""
_isolating_threads = ConcurrencyLimiter()
_isolation_lock = threading.Lock()


class Isolation:
    """Lets one thread at a time hold a poison candidate that is claimed and not started.

    If this process crashes, each candidate that it has claimed and not started counts a crash.
    """

    def __enter__(self) -> Self:
        """Wait until no other thread is in its isolation."""
        _isolation_lock.acquire()
        self._is_held = True
        return self

    def __exit__(self, *_: object) -> None:
        """End the isolation."""
        self.end()

    def end(self) -> None:
        """Let the next candidate be claimed: this one has started, and its send may be slow."""
        if self._is_held:
            self._is_held = False
            _isolation_lock.release()
