"""One batch of deliveries of one channel: claim, gate, render, send, settle.

Nothing here writes state itself: the store does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog
from bson import ObjectId

from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from notifyproject.platform import cache, crash_points, process
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name
from providers.contract import Provider
from providers.registry import providers_for

from . import (
    alone,
    callback_hints,
    claiming,
    consequences,
    health,
    inbox_hints,
    pausing,
    routing,
    screening,
    spans,
    store,
    targets,
    wording,
)
from .batch_report import BatchReport
from .jobs import Job, rounds
from .lanes import Wakeup
from .outcomes import Result, conclude
from .routing import Route
from .sending import Clock, send_all, throw
from .store import Claimed, Parked, Settlement
from .turns import turns

log = structlog.get_logger(__name__)

S = DeliveryStatus


def deliver(ids: Sequence[ObjectId], *, channel: Channel, clock: Clock = utc_now) -> BatchReport:
    """Send what of these deliveries is due; any number of callers at once is safe."""
    crash_points.reach(Boundary.TASK_TAKEN)
    report = BatchReport()
    for some in claiming.batches(ids):
        cache.compare_at_next_read()
        claims = claiming.claim(some, channel=channel, now=clock())
        _deliver_batch(claims, channel, clock, report)
        lone = claiming.left_alone(some, claims, channel=channel, now=clock())
        _deliver_alone(lone, channel, clock, report)
    crash_points.reach(Boundary.TASK_DONE)
    return report


def _deliver_alone(
    ids: Sequence[ObjectId], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    """Send a few of these, one after the other, and report the rest: others may do those."""
    left = list(ids)
    with alone.some(channel) as most:
        for one in ids[:most]:
            with alone.one():
                if process.is_shutting_down():
                    break
                claims = claiming.claim_alone(one, channel=channel, now=clock())
                _deliver_batch(claims, channel, clock, report)
            left.remove(one)
    report.left += left


def _deliver_batch(
    claims: Sequence[Claimed], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    report.claimed += len(claims)
    if claims:
        crash_points.reach(Boundary.CLAIMED)
    for is_test in (False, True):
        if alike := [claimed for claimed in claims if claimed.is_test is is_test]:
            providers = providers_for(channel, test=is_test)
            _deliver_claimed(alike, channel, providers, clock, report)


def _deliver_claimed(
    claims: Sequence[Claimed],
    channel: Channel,
    providers: Sequence[Provider],
    clock: Clock,
    report: BatchReport,
) -> None:
    ready, parked = screening.screen(claims, now=clock(), has_provider=bool(providers))
    aim = targets.aim(ready, channel=channel, now=clock())
    aimed = [claimed for claimed in ready if claimed.reference in aim.targets]
    messages, unrenderable = wording.render(aimed, now=clock())
    _park([*parked, *aim.parked, *unrenderable], clock(), report)
    crash_points.reach(Boundary.RENDERED)
    drafts = [
        Job(
            claimed=claimed,
            message=messages[claimed.notification_id].message,
            secret=messages[claimed.notification_id].secret,
            targets=tuple(aim.targets[claimed.reference]),
            asleep_until=aim.asleep.get(claimed.reference),
        )
        for claimed in ready
        if claimed.notification_id in messages
    ]
    is_proven = health.is_proven(providers[0], now=clock()) if drafts else False
    left = rounds(providers[0], drafts, is_proven=is_proven) if drafts else []
    while left and not process.is_shutting_down():
        if not _round(left[0], providers, clock, report):
            break
        left.pop(0)
    _release([job.claimed for some in left for job in some], clock(), report)


def _round(
    drafts: Sequence[Job], providers: Sequence[Provider], clock: Clock, report: BatchReport
) -> bool:
    """Send some of a batch; return False if the turn for it did not come, or too late."""
    claims = [job.claimed for job in drafts]
    with turns.take(providers[0].name, claims, now=clock()) as is_ours:
        if not is_ours or process.is_shutting_down():
            return False
        routes, waiting = routing.choose(
            claims,
            providers=providers,
            targets={job.claimed.reference: job.targets for job in drafts},
            paused=pausing.held([provider.name for provider in providers], now=clock()),
            now=clock(),
        )
        drafted = {job.claimed.reference: job for job in drafts}
        sent = [
            _send(route, [_on(route, drafted[c.reference]) for c in route.claims], clock)
            for route in routes
        ]
    crash_points.reach(Boundary.BATCH_SENT)
    _park(waiting, clock(), report)
    for one in sent:
        _conclude(one, clock(), report)
    return True


def _on(route: Route, draft: Job) -> Job:
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
    begun: Sequence[Claimed]
    results: Sequence[tuple[Job, tuple[Result, ...]]]
    began_at: datetime


def _send(route: Route, jobs: Sequence[Job], clock: Clock) -> _Sent:
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
    alone.begun()
    started = [replace(by_id[c.notification_id], claimed=c) for c in begun]
    crash_points.reach(Boundary.STARTED)
    return _Sent(route, begun, send_all(provider, started, clock), now)


def _conclude(sent: _Sent, now: datetime, report: BatchReport) -> None:
    """Settle; and tell the provider's circuit, and whom it concerns, how it went."""
    route, provider = sent.route, sent.route.provider
    settlements = [_settlement(route, job, results, now) for job, results in sent.results]
    _settle(settlements, now, report)
    _withdraw(sent.begun, [job.claimed for job, _ in sent.results], now, report)
    flat = [(job, result) for job, results in sent.results for result in results]
    health.report(provider, [result for _, result in flat], probes=route.probes, now=now)
    crash_points.reach(Boundary.REPORTED)
    consequences.draw(flat, provider=provider.name, now=now)
    tried = [results for _, results in sent.results]
    spans.attempted(settlements, tried, began_at=sent.began_at, now=now)


def _settlement(route: Route, job: Job, results: Sequence[Result], now: datetime) -> Settlement:
    return conclude(
        job.claimed,
        results,
        provider=route.provider.name,
        now=now,
        dice=throw(),
        has_substitute=route.has_substitute,
        held_until=job.held_until,
        asleep_until=job.asleep_until,
    )


def _settle(settlements: Sequence[Settlement], now: datetime, report: BatchReport) -> None:
    ours = store.settle(settlements, now=now)
    crash_points.reach(Boundary.SETTLED)
    if ours < len(settlements):
        log.info("outcomes_overtaken", count=len(settlements) - ours)
    inbox_hints.settled(settlements)
    callback_hints.changed(now=now)
    for settlement in settlements:
        report.count(settlement.status)
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.look_again(settlement.claimed, at=settlement.next_attempt_at)
    _call_in([s.claimed for s in settlements if s.status is S.FAILED], now, report)


def _withdraw(
    started: Sequence[Claimed], begun: Sequence[Claimed], now: datetime, report: BatchReport
) -> None:
    """Give back what the sender did not begin: it was too late for it."""
    known = {claimed.reference for claimed in begun}
    left = [claimed for claimed in started if claimed.reference not in known]
    store.withdraw(left, now=now)
    for claimed in left:
        report.count(S.PENDING)
        report.look_again(claimed, at=now)


def _release(claims: Sequence[Claimed], now: datetime, report: BatchReport) -> None:
    """Give back what this process does not come to."""
    if not claims:
        return
    store.release(claims, now=now)
    crash_points.reach(Boundary.RELEASED)
    for claimed in claims:
        report.count(S.PENDING)
        report.look_again(claimed, at=now)


def _park(parked: Sequence[Parked], now: datetime, report: BatchReport) -> None:
    parked = [_or_sent(one) for one in parked]
    store.park(parked, now=now)
    callback_hints.changed(now=now)
    crash_points.reach(Boundary.PARKED)
    for one in parked:
        report.count(one.status)
        if one.next_attempt_at is not None:
            report.look_again(one.claimed, at=one.next_attempt_at)
    _call_in([p.claimed for p in parked if p.status in (S.FAILED, S.SUPPRESSED)], now, report)
    spans.parked(parked, now=now)


def _or_sent(parked: Parked) -> Parked:
    """Return the end of a delivery: whatever keeps it from the others, one device has it."""
    is_over = parked.status is not S.PENDING
    return replace(parked, status=S.SENT) if is_over and parked.claimed.accepted_targets else parked


def _call_in(failed: Sequence[Claimed], now: datetime, report: BatchReport) -> None:
    """Let the channels that wait for these to fail go at once."""
    for claimed in failed:
        if claimed.substitutes:
            ids = [claimed.notification_id]
            store.hasten(ids=ids, instead_of=claimed.channel, now=now)
            report.wakeups += [
                Wakeup(claimed.notification_id, channel, claimed.priority, now)
                for channel in claimed.substitutes
            ]
