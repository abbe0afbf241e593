"""Handing claimed deliveries to a provider, and what becomes of them.

The only place where an exception becomes a result; what that makes of a delivery stands in
:mod:`notifications.outcomes`.
"""

import os
import random
import time
import traceback
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

import structlog
from django.conf import settings

from notifyproject import crash
from notifyproject.crash import Boundary

from .channels.base import Channel as Provider
from .channels.base import ManyAtOnce, Message, NotTried, Outbound, SendResult
from .channels.http import TOTAL_TIMEOUT
from .errors import FailureCode, ProviderError, TransientError
from .outcomes import Result
from .secrecy import without_quotes
from .store import Claimed, Secret
from .targets import Target

log = structlog.get_logger(__name__)

LEASE_MARGIN = timedelta(seconds=2)
"""A send starts only if its lease outlives the longest request by this much."""
LOGGED_ERRORS, LOGGED_FRAMES = 5, 20
"""How much of a defect is logged: so many errors, each from so many of the last calls."""
Clock = Callable[[], datetime]
_dice = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A started delivery, what it says, and where it goes."""

    claimed: Claimed
    message: Message
    targets: tuple[Target, ...]
    """At least one; several for a person with several devices."""
    secret: Secret | None = None
    """What of the message is kept nowhere, should the provider repeat it."""
    held_until: datetime | None = None
    """Others are left out, as nothing goes to their platform before then."""
    asleep_until: datetime | None = None
    """Others are left out, as they are in their quiet hours until then."""


Pair = tuple[Job, Target]


def send_all(
    provider: Provider, jobs: Sequence[Job], clock: Clock
) -> list[tuple[Job, tuple[Result, ...]]]:
    """Send concurrently; a single one in this thread, so that it never queues behind a batch.

    Return what came of each that was begun. The others came too late, and nothing of them left.
    """
    groups = _groups(provider, [(job, target) for job in jobs for target in job.targets])

    def send(group: Sequence[Pair]) -> list[Result | None]:
        if len(group) == 1 or not isinstance(provider, ManyAtOnce):
            return [_send_one(provider, *pair, clock) for pair in group]
        return _send_together(provider, group, clock)

    results = (
        map(send, groups)
        if len(groups) == 1
        else _senders(os.getpid(), provider.name).map(send, groups)
    )
    by_reference: dict[str, list[Result]] = {}
    for group, some in zip(groups, results, strict=True):
        for (job, _), result in zip(group, some, strict=True):
            if result is not None:
                by_reference.setdefault(job.claimed.reference, []).append(result)
                # In one thread: dozens that write to one log wait for each other at every line.
                _log(job.claimed, result)
    return [
        (job, tuple(by_reference[job.claimed.reference]))
        for job in jobs
        if job.claimed.reference in by_reference
    ]


def rounds(provider: Provider, jobs: Sequence[Job]) -> list[list[Job]]:
    """Return jobs in rounds that this process's threads send at once; at least one.

    People who are sent the same mail in one request count once, a device of several each.
    """
    taken: list[list[Job]] = []
    room = 0
    for group in _alike(provider, jobs):
        requests = max(len(job.targets) for job in group)
        if not taken or requests > room:
            taken.append([])
            room = settings.WORKER_THREADS
        taken[-1] += group
        room -= requests
    return taken


def _alike(provider: Provider, jobs: Sequence[Job]) -> list[list[Job]]:
    """Return jobs in the groups that go in one request, if their provider takes several in one."""
    if not isinstance(provider, ManyAtOnce):
        return [[job] for job in jobs]
    groups: dict[Hashable, list[Job]] = {}
    for job in jobs:
        mail = provider.same_mail(_outbound(job, job.targets[0]))
        groups.setdefault(mail, []).append(job)
    return list(groups.values())


def _groups(provider: Provider, pairs: Sequence[Pair]) -> list[list[Pair]]:
    """Return what goes in one request each: alone, but for the same mail to several people."""
    if len(pairs) == 1 or not isinstance(provider, ManyAtOnce):
        return [[pair] for pair in pairs]
    groups: dict[Hashable, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(provider.same_mail(_outbound(*pair)), []).append(pair)
    return list(groups.values())


def _send_together(
    provider: ManyAtOnce, group: Sequence[Pair], clock: Clock
) -> list[Result | None]:
    """Send the same mail to several people at once; None for who was too late or not tried."""
    started_at, ticks = clock(), time.monotonic()
    in_time = [pair for pair in group if not _is_too_late(pair[0].claimed, started_at)]
    crash.at(Boundary.GROUP_BEGINS)
    try:
        outcomes = provider.send_many([_outbound(*p) for p in in_time], timeout=TOTAL_TIMEOUT)
    except Exception as error:
        # As in _try: whether these left, nobody knows.
        outcomes = [_defect(error, _outbound(*pair)) for pair in in_time]
    crash.at(Boundary.GROUP_ANSWERED)
    taken = {pair[0].claimed.reference: o for pair, o in zip(in_time, outcomes, strict=True)}
    return [
        _result(job, target, outcome, clock=clock, started_at=started_at, ticks=ticks)
        if (outcome := taken.get(job.claimed.reference)) is not None
        and not isinstance(outcome, NotTried)
        else None
        for job, target in group
    ]


def throw() -> float:
    """Return the dice of a retry's wait, in [-1, 1]."""
    return _dice.uniform(-1, 1)


def _send_one(provider: Provider, job: Job, target: Target, clock: Clock) -> Result | None:
    """Send to one target and return what came of it; None if it is too late to begin."""
    claimed, started_at, ticks = job.claimed, clock(), time.monotonic()
    if _is_too_late(claimed, started_at):
        return None
    crash.at(Boundary.SEND_BEGINS)
    outcome = _try(provider, _outbound(job, target))
    crash.at(Boundary.SEND_ANSWERED)
    return _result(job, target, outcome, clock=clock, started_at=started_at, ticks=ticks)


def _outbound(job: Job, target: Target) -> Outbound:
    claimed = job.claimed
    return Outbound(
        reference=claimed.reference_to(target.device_id),
        thread=str(claimed.notification_id),
        recipient=target.address,
        recipient_name=claimed.recipient.name,
        message=job.message,
        category=claimed.category.value,
        priority=claimed.priority,
        platform=target.platform or None,
        window_open=target.window_open,
        expires_at=claimed.expires_at,
    )


def _result(
    job: Job,
    target: Target,
    outcome: SendResult | ProviderError,
    *,
    clock: Clock,
    started_at: datetime,
    ticks: float,
) -> Result:
    """Return what came of one try; ``ticks`` is when it began by the steady clock."""
    return Result(
        device_id=target.device_id,
        platform=target.platform,
        outcome=without_quotes(outcome, job.secret),
        started_at=started_at,
        finished_at=clock(),
        duration_ms=round((time.monotonic() - ticks) * 1000),
    )


def _log(claimed: Claimed, result: Result) -> None:
    outcome = result.outcome
    log.info(
        "delivery_attempted",
        delivery_id=claimed.reference_to(result.device_id),
        channel=claimed.channel.value,
        attempt=claimed.attempt_count,
        outcome=type(outcome).__name__,
        code=outcome.code if isinstance(outcome, ProviderError) else None,
        duration_ms=result.duration_ms,
        request_id=claimed.request_id,
    )


def _is_too_late(claimed: Claimed, now: datetime) -> bool:
    """Return whether a delivery's lease is not ours for long enough, or its own time is over.

    A process that was frozen wakes up here: nothing has left yet, and another worker may be at it.
    The last of a batch may have waited for a minute behind a slow provider.
    """
    if now + timedelta(seconds=TOTAL_TIMEOUT) + LEASE_MARGIN >= claimed.lease_until:
        log.warning("send_aborted_lease_over", delivery_id=claimed.reference)
        return True
    if claimed.expires_at is not None and now >= claimed.expires_at:
        log.info("send_aborted_expired", delivery_id=claimed.reference)
        return True
    return False


def _try(provider: Provider, outbound: Outbound) -> SendResult | ProviderError:
    """Return what came of handing a message to the provider, whatever it was."""
    try:
        return provider.send(outbound, timeout=TOTAL_TIMEOUT)
    except ProviderError as error:
        return error
    except Exception as error:
        # A defect of ours. The rest of the batch goes on; whether this one left, nobody knows.
        return _defect(error, outbound)


def _defect(error: Exception, outbound: Outbound) -> TransientError:
    # Where it happened, and not what it says: there may be an address or a body in that.
    log.error("provider_adapter_failed", delivery_id=outbound.reference, stack=_places(error))
    return TransientError(
        "The service itself failed while it was sending.",
        code=FailureCode.INTERNAL_ERROR,
        ambiguous=True,
    )


def _places(error: BaseException) -> str:
    """Return where an error was raised, and before it those that it came from, without texts."""
    chain: list[str] = []
    one: BaseException | None = error
    while one is not None and len(chain) < LOGGED_ERRORS:
        frames = "".join(traceback.format_tb(one.__traceback__, limit=-LOGGED_FRAMES))
        chain.append(f"{frames}{type(one).__module__}.{type(one).__qualname__}")
        one = one.__cause__ or one.__context__
    return "\n".join(reversed(chain))


@cache
def _senders(_process_id: int, provider: str) -> ThreadPoolExecutor:
    """Return this process's threads for a provider: one that hangs holds up none of the others."""
    return ThreadPoolExecutor(max_workers=settings.WORKER_THREADS, thread_name_prefix=provider)
