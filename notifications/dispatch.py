"""One batch of deliveries of one channel: claim, gate, render, send, settle.

Nothing here writes state itself: the store does.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import TypeVar

import structlog
from bson import ObjectId
from django.conf import settings

from recipients import queries as recipients

from . import gate, rendering, store
from .channels.base import Channel as Provider
from .channels.base import Message
from .channels.registry import provider_for
from .errors import FailureCode
from .sending import Clock, send_all
from .states import Channel, DeliveryStatus
from .store import Claimed, Parked, Settlement
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
    provider = provider_for(channel)
    ready, parked = _sort_out(claims, provider, clock())
    messages, unrenderable = _render(ready)
    _park([*parked, *unrenderable], clock(), report)
    sendable = [claimed for claimed in ready if claimed.notification_id in messages]
    if provider is None:
        return
    for some in _chunks(sendable, settings.WORKER_THREADS):
        started = store.start(some, provider=provider.name, worker=worker_name(), now=clock())
        if len(started) < len(some):
            log.info("deliveries_taken_over", channel=channel.value, lost=len(some) - len(started))
        sent = send_all(provider, started, messages, clock)
        _settle(sent, clock(), report)
        _withdraw(started, sent, clock(), report)


def _sort_out(
    claims: Sequence[Claimed], provider: Provider | None, now: datetime
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
            has_provider=provider is not None,
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
            messages[claimed.notification_id] = rendering.render_message(
                content=claimed.content, data=claimed.data, recipient=claimed.recipient
            )
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


def _settle(settlements: Sequence[Settlement], now: datetime, report: BatchReport) -> None:
    ours = store.settle(settlements, now=now)
    if ours < len(settlements):
        log.info("outcomes_overtaken", count=len(settlements) - ours)
    for settlement in settlements:
        report.count(settlement.status)
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.wakeups.append(_wakeup(settlement.claimed, settlement.next_attempt_at))


def _withdraw(
    started: Sequence[Claimed], sent: Sequence[Settlement], now: datetime, report: BatchReport
) -> None:
    """Give back what the sender did not begin: it was too late for it."""
    begun = {settlement.claimed.reference for settlement in sent}
    left = [claimed for claimed in started if claimed.reference not in begun]
    store.withdraw(left, now=now)
    for claimed in left:
        report.count(S.PENDING)
        report.wakeups.append(_wakeup(claimed, now))


def _park(parked: Sequence[Parked], now: datetime, report: BatchReport) -> None:
    store.park(parked, now=now)
    for one in parked:
        report.count(one.status)
        if one.next_attempt_at is not None:
            report.wakeups.append(_wakeup(one.claimed, one.next_attempt_at))


def _wakeup(claimed: Claimed, at: datetime) -> Wakeup:
    return Wakeup(claimed.notification_id, claimed.channel, claimed.priority.value, at)


@cache
def worker_name() -> str:
    """Return the name this process signs its claims with."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])
