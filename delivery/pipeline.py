"""The way of one batch of due deliveries, from the claim to its settlement.

The steps: claim, eligibility, digests, targets, rendering, limits; then the send loop, with
routing, start, send, and settlement. A delivery that fails at a step leaves the batch, and the
reason is stored. Each poison candidate is sent alone.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Self

import structlog
from bson import ObjectId
from django.conf import settings

from domain.channels import Channel
from domain.time import Clock, utc_now
from notifications.catalog.limits import may_apply
from notifications.queueing.fair_queue import FairQueue
from notifications.queueing.wakeups import Wakeup
from notifications.store import leases
from notifications.store.claims import ClaimedDelivery, NotSent
from notifyproject.platform import cache, crash_points, process
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name
from providers import senders
from providers.contract import Message, Provider, SelectiveProvider, SendTarget
from providers.registry import providers_for

from . import (
    accounts,
    daily_units,
    digests,
    eligibility,
    feedback,
    idempotency,
    limits,
    rendering,
    rooms,
    settlement,
    targets,
    texts,
)
from .accounts import BatchProviders
from .runtime import Lanes, SendingRuntime
from .send_loop import SendLoop
from .sending import PreparedDelivery
from .settlement import BatchReport

log = structlog.get_logger(__name__)
MAX_BATCH = 100
"""Deliveries of one claim."""
ISOLATION_TIME = timedelta(seconds=45)
"""Time in which a wake-up isolates poison candidates. With a last request of 15 s it takes a
minute: less than the two minutes after which the broker redelivers a message."""


def dispatch(
    runtime: SendingRuntime,
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
    if not channel.is_known:
        log.warning("unknown_channel", channel=channel.value)
        return report
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), MAX_BATCH):
        batch = unique[start : start + MAX_BATCH]
        cache.compare_at_next_read()
        claims = leases.claim(ids=batch, channel=channel, worker=worker_name(), now=clock())
        _deliver(runtime, claims, channel, clock, report, on_in_flight=on_in_flight)
        if len(claims) < len(batch):
            claimed_ids = {claimed.notification_id for claimed in claims}
            unclaimed = [
                notification_id for notification_id in batch if notification_id not in claimed_ids
            ]
            candidates = leases.poison_candidates(ids=unclaimed, channel=channel, now=clock())
            _dispatch_isolated(runtime, candidates, channel, clock, report)
    crash_points.reach(Boundary.TASK_DONE)
    return report


def _dispatch_isolated(
    runtime: SendingRuntime,
    ids: Sequence[ObjectId],
    channel: Channel,
    clock: Clock,
    report: BatchReport,
) -> None:
    """Send poison candidates one by one. Those without a thread or time are left to the sweeper.

    Wake-ups for them would add load to a process that has no capacity.
    """
    limit, ends_at = max(channel_threads() // 2, 1), clock() + ISOLATION_TIME
    with runtime.isolating_threads.try_acquire(channel, limit=limit) as has_thread:
        for notification_id in ids if has_thread else ():
            with Isolation(runtime.isolation) as isolation:
                if process.is_shutting_down() or clock() >= ends_at:
                    break
                claims = leases.claim(
                    ids=[notification_id],
                    channel=channel,
                    worker=worker_name(),
                    now=clock(),
                    include_poison_candidates=True,
                )
                _deliver(runtime, claims, channel, clock, report, on_started=isolation.end)


def _deliver(
    runtime: SendingRuntime,
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
        usual = providers_for(channel, test=is_test)
        providers = (
            accounts.BatchProviders(usual=usual)
            if is_test
            else accounts.providers_of(group, channel, usual=usual)
        )
        report.lanes = [*report.lanes, *providers.lanes(group)]
        deliveries = _prepare(runtime, group, channel, clock, report, providers=providers)
        if deliveries:
            loop = SendLoop(
                runtime,
                clock,
                report,
                on_started=on_started,
                on_in_flight=on_in_flight,
            )
            loop.run(deliveries)


def _prepare(
    runtime: SendingRuntime,
    claims: Sequence[ClaimedDelivery],
    channel: Channel,
    clock: Clock,
    report: BatchReport,
    *,
    providers: BatchProviders,
) -> list[PreparedDelivery]:
    separate, digested = digests.join_digests(claims, now=clock())
    ready, ineligible = eligibility.filter_eligible(
        separate,
        now=clock(),
        has_provider=bool(providers.usual),
        own_providers=providers.own,
        with_soft_bounces=any(map(feedback.clears_soft_bounces, providers)),
    )
    ready, without_account = accounts.hold_without_account(ready, providers, now=clock())
    repeats, unrepeatable = idempotency.find_repeats(ready, providers=providers, now=clock())
    if unrepeatable:
        known = {unsent.claimed.reference for unsent in unrepeatable}
        ready = [claimed for claimed in ready if claimed.reference not in known]
    paced = rooms.Paced(allowed=ready)
    if not channel.is_personal:
        late = digests.late_for_rooms(ready, now=clock())
        paced = rooms.pace(ready, runtime.rates, late=late, now=clock())
        digested += digests.join_rooms(paced.crowded, now=clock())
    ready = list(paced.allowed)
    resolved = targets.resolve_targets(
        ready, channel=channel, providers=providers.usual, now=clock()
    )
    with_targets = [claimed for claimed in ready if claimed.reference in resolved.targets]
    messages, unrenderable = rendering.render_batch(with_targets, now=clock())
    rendered = [delivery for delivery in with_targets if delivery.notification_id in messages]
    refused: list[NotSent] = []
    over_cap: list[NotSent] = []
    if channel.pays_by_part:
        rendered, refused = texts.split_refused(rendered, messages)
    limited = (
        limits.apply_limits(rendered, now=clock())
        if may_apply(channel)
        else limits.Limited(allowed=rendered)
    )
    allowed = limited.allowed
    if channel.pays_by_part:
        allowed, over_cap = daily_units.hold_over_caps(allowed, messages, now=clock())
    report.moved_up += [
        Wakeup(moved.notification_id, moved.channel, moved.priority, clock())
        for moved in limited.moved_up
    ]
    digested += digests.join_over_limit(limited.digested, now=clock())
    not_sent = [
        *ineligible,
        *without_account,
        *paced.waiting,
        *unrepeatable,
        *resolved.not_sent,
        *unrenderable,
        *refused,
        *limited.refused,
        *over_cap,
        *digested,
    ]
    settlement.hold_or_end(not_sent, clock(), report)
    digests.confirm_joined(digested, now=clock())
    crash_points.reach(Boundary.RENDERED)
    return [
        PreparedDelivery(
            claimed=claimed,
            message=messages[claimed.notification_id].message,
            secret=messages[claimed.notification_id].secret,
            targets=_with_sender(
                resolved.targets[claimed.reference], messages[claimed.notification_id].message
            ),
            providers=providers.of(claimed),
            repeats=repeats.get(claimed.reference),
            quiet_hours_end=resolved.in_quiet_hours.get(claimed.reference),
        )
        for claimed in allowed
    ]


def _with_sender(targets: tuple[SendTarget, ...], message: Message) -> tuple[SendTarget, ...]:
    """Return targets that name the sender of their brand, if it isn't the installation's."""
    sender = message.sender
    if sender is None or sender.address.lower() == senders.own_sender().address.lower():
        return targets
    return tuple(replace(target, sender=sender.address.lower()) for target in targets)


def channel_threads() -> int:
    """Return how many threads of this process one channel may use: three quarters of them."""
    return max(settings.WORKER_THREADS * 3 // 4, 1)


def remember_lanes(runtime: SendingRuntime, queue: FairQueue, report: BatchReport) -> None:
    """Note what sends a queue's batch: the next one is probably sent by the same accounts."""
    if list(report.lanes) == [providers_for(queue.channel)]:
        runtime.lanes.pop(queue, None)
    elif report.lanes:
        runtime.lanes[queue] = report.lanes


def in_flight(runtime: SendingRuntime, queue: FairQueue) -> int:
    """Return how many requests to a queue's accounts are in flight here, or about to be."""
    providers = {each.account: each for lane in _lanes_of(runtime, queue) for each in lane}
    return sum(runtime.windows.of(provider).taken for provider in providers.values())


def are_all(runtime: SendingRuntime, accounts: Collection[str], queue: FairQueue) -> bool:
    """Return whether these are all of a queue's accounts."""
    lanes = _lanes_of(runtime, queue)
    return all(provider.account in accounts for lane in lanes for provider in lane)


def is_waiting_for_rate(runtime: SendingRuntime, queue: FairQueue) -> bool:
    """Return whether batches of this process wait for tokens of all that sends a queue."""
    lanes = _lanes_of(runtime, queue)
    return any(lanes) and all(_is_lane_waiting(runtime, lane) for lane in lanes)


def _lanes_of(runtime: SendingRuntime, queue: FairQueue) -> Lanes:
    return runtime.lanes.get(queue) or [providers_for(queue.channel)]


def _is_lane_waiting(runtime: SendingRuntime, providers: Sequence[Provider]) -> bool:
    # Where each accepts other targets, the others have lanes of their own.
    is_each = any(isinstance(provider, SelectiveProvider) for provider in providers)
    waits = [bool(runtime.rate_waits.get(provider.account)) for provider in providers]
    return all(waits) if is_each else any(waits)


class Isolation:
    """Lets one thread at a time hold a poison candidate that is claimed and not started.

    If this process crashes, each candidate that it has claimed and not started counts a crash.
    """

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __enter__(self) -> Self:
        """Wait until no other thread is in its isolation."""
        self._lock.acquire()
        self._is_held = True
        return self

    def __exit__(self, *_: object) -> None:
        """End the isolation."""
        self.end()

    def end(self) -> None:
        """Let the next candidate be claimed: this one has started, and its send may be slow."""
        if self._is_held:
            self._is_held = False
            self._lock.release()
