"""One batch of deliveries of one channel: claim, gate, render, send, settle.

Nothing here writes state itself: the store does.
"""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from typing import TypeVar

import structlog
from bson import ObjectId
from django.conf import settings

from recipients import queries as recipients

from . import (
    approved,
    consequences,
    gate,
    health,
    rendering,
    routing,
    store,
    targets,
    types,
    unsubscribing,
)
from .channels.base import ManyAtOnce, Message
from .channels.registry import providers_for
from .errors import FailureCode
from .outcomes import Result, conclude
from .routing import Route
from .sending import Clock, Job, send_all, throw
from .states import Channel, DeliveryStatus
from .store import Claimed, Parked, Settlement
from .targets import Aim
from .timing import utc_now

log = structlog.get_logger(__name__)

MAX_BATCH = 100
"""Deliveries one claim takes: 100 in 4 rounds of 25 or more requests end within the lease."""
T = TypeVar("T")
S = DeliveryStatus


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A delivery that is to be looked at again at ``at``."""

    notification_id: ObjectId
    channel: Channel
    priority: str
    at: datetime


@dataclass(slots=True)
class BatchReport:
    """What a batch did: how many deliveries of each fate, and what to look at again soon."""

    claimed: int = 0
    fates: dict[str, int] = field(default_factory=dict)
    wakeups: list[Wakeup] = field(default_factory=list)

    def count(self, status: DeliveryStatus) -> None:
        """Count one delivery's fate."""
        self.fates[status.value] = self.fates.get(status.value, 0) + 1


def deliver(ids: Sequence[ObjectId], *, channel: Channel, clock: Clock = utc_now) -> BatchReport:
    """Send what of these deliveries is due; any number of callers at once is safe."""
    report = BatchReport()
    for some in _chunks(list(dict.fromkeys(ids)), MAX_BATCH):
        claims = store.claim(ids=some, channel=channel, worker=worker_name(), now=clock())
        report.claimed += len(claims)
        if claims:
            _deliver_claimed(claims, channel, clock, report)
    return report


def _deliver_claimed(
    claims: Sequence[Claimed], channel: Channel, clock: Clock, report: BatchReport
) -> None:
    providers = providers_for(channel)
    ready, parked = _sort_out(claims, clock(), has_provider=bool(providers))
    aim = targets.aim(ready, channel=channel, now=clock())
    messages, unrenderable = _render([c for c in ready if c.reference in aim.targets])
    _park([*parked, *aim.parked, *unrenderable], clock(), report)
    sendable = [claimed for claimed in ready if claimed.notification_id in messages]
    if not sendable:
        return
    routes, waiting = routing.choose(
        sendable, providers=providers, targets=aim.targets, now=clock()
    )
    _park(waiting, clock(), report)
    for route in routes:
        size = MAX_BATCH if isinstance(route.provider, ManyAtOnce) else settings.WORKER_THREADS
        for some in _chunks(route.claims, size):
            _send(route, _jobs(route, some, aim, messages), clock, report)


def _jobs(
    route: Route,
    claims: Sequence[Claimed],
    aim: Aim,
    messages: Mapping[ObjectId, Message],
) -> list[Job]:
    """Return what is to be sent now; devices whose platform is held are left out."""
    jobs = []
    for claimed in claims:
        whole = aim.targets[claimed.reference]
        now_going = tuple(t for t in whole if t.platform not in route.held)
        held = [route.held[t.platform] for t in whole if t.platform in route.held]
        ids = tuple(t.device_id for t in now_going if t.device_id is not None)
        jobs.append(
            Job(
                claimed=replace(claimed, device_ids=ids),
                message=messages[claimed.notification_id],
                targets=now_going,
                held_until=min(held, default=None),
                asleep_until=aim.asleep.get(claimed.reference),
            )
        )
    return jobs


def _send(route: Route, jobs: Sequence[Job], clock: Clock, report: BatchReport) -> None:
    """Start, send, settle; and tell the provider's circuit, and whom it concerns, how it went."""
    provider = route.provider
    begun = store.start(
        [job.claimed for job in jobs], provider=provider.name, worker=worker_name(), now=clock()
    )
    if len(begun) < len(jobs):
        log.info("deliveries_taken_over", provider=provider.name, lost=len(jobs) - len(begun))
    by_id = {job.claimed.notification_id: job for job in jobs}
    started = [replace(by_id[c.notification_id], claimed=c) for c in begun]
    sent = send_all(provider, started, clock)
    now = clock()
    _settle([_settlement(route, job, results, now) for job, results in sent], now, report)
    _withdraw(begun, [job.claimed for job, _ in sent], now, report)
    flat = [(job, result) for job, results in sent for result in results]
    results = [result for _, result in flat]
    health.report(provider, results, probes=route.probes, now=now)
    consequences.draw(flat, provider=provider.name, now=now)


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


def _sort_out(
    claims: Sequence[Claimed], now: datetime, *, has_provider: bool
) -> tuple[list[Claimed], list[Parked]]:
    """Return what is to be sent now, and what is not with the reason."""
    people = recipients.known(c.user_id for c in claims if c.user_id)
    addresses = {
        (c.channel.value, address) for c in claims if (address := c.recipient.address(c.channel))
    }
    suppressed = recipients.suppressed(addresses, now=now)
    ready: list[Claimed] = []
    parked: list[Parked] = []
    for claimed in claims:
        person = people.get(claimed.user_id or "")
        address = claimed.recipient.address(claimed.channel)
        suppression = suppressed.get((claimed.channel.value, address or ""))
        held_back = suppression and gate.applies(claimed, marketing_only=suppression.marketing_only)
        reason = gate.check(
            claimed,
            now=now,
            quiet=gate.quiet_hours(
                person.quiet_hours if person else None,
                own_zone=person.timezone if person else None,
                sent_zone=claimed.recipient.timezone,
            ),
            suppression=suppression.reason if suppression and held_back else None,
            has_provider=has_provider,
        )
        if reason is None:
            ready.append(claimed)
        else:
            parked.append(reason)
    return ready, parked


def _render(claims: Sequence[Claimed]) -> tuple[dict[ObjectId, Message], list[Parked]]:
    """Return the messages by notification, and what cannot be made into one."""
    messages: dict[ObjectId, Message] = {}
    parked: list[Parked] = []
    for claimed in claims:
        try:
            messages[claimed.notification_id] = _message(claimed)
        except rendering.TemplateProblem as problem:
            parked.append(
                Parked(
                    claimed=claimed,
                    status=S.FAILED,
                    code=FailureCode.RENDER_FAILED,
                    reason=str(problem),
                )
            )
    return messages, parked


def _message(claimed: Claimed) -> Message:
    """Return what a delivery says; raises TemplateProblem."""
    message = rendering.render_message(
        channel=claimed.channel,
        content=claimed.content,
        data=claimed.data,
        recipient=claimed.recipient,
        unsubscribe_url=unsubscribing.url_of(claimed),
    )
    if claimed.channel is not Channel.WHATSAPP:
        return message
    known = types.find(claimed.type)
    wordings = known.approved if known else ()
    locale = claimed.recipient.locale
    return replace(message, approved=approved.choose(wordings, locale=locale, data=claimed.data))


def _settle(settlements: Sequence[Settlement], now: datetime, report: BatchReport) -> None:
    ours = store.settle(settlements, now=now)
    if ours < len(settlements):
        log.info("outcomes_overtaken", count=len(settlements) - ours)
    for settlement in settlements:
        report.count(settlement.status)
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.wakeups.append(_wakeup(settlement.claimed, settlement.next_attempt_at))
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
        report.wakeups.append(_wakeup(claimed, now))


def _park(parked: Sequence[Parked], now: datetime, report: BatchReport) -> None:
    parked = [_or_sent(one) for one in parked]
    store.park(parked, now=now)
    for one in parked:
        report.count(one.status)
        if one.next_attempt_at is not None:
            report.wakeups.append(_wakeup(one.claimed, one.next_attempt_at))
    _call_in([p.claimed for p in parked if p.status in (S.FAILED, S.SUPPRESSED)], now, report)


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
                Wakeup(claimed.notification_id, channel, claimed.priority.value, now)
                for channel in claimed.substitutes
            ]


def _wakeup(claimed: Claimed, at: datetime) -> Wakeup:
    return Wakeup(claimed.notification_id, claimed.channel, claimed.priority.value, at)


@cache
def worker_name() -> str:
    """Return the name this process signs its claims with."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
