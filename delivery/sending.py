"""Turns deliveries into requests, sends them, and returns one result for each.

Requests that a provider takes together are one send batch. A provider that has just failed gets a
few requests first, as probes.
"""

import os
import time
import traceback
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Self

import structlog
from django.conf import settings

from domain.content import SensitiveContent
from domain.errors import FailureCode, ProviderError, TransientError
from notifications.content.redaction import mask_response
from notifications.store import ClaimedDelivery
from notifyproject.platform import crash_points
from notifyproject.platform.clock import Clock
from notifyproject.platform.crash_points import Boundary
from providers import http_client
from providers.contract import (
    BatchProvider,
    Message,
    NotAttemptedError,
    Provider,
    SendRequest,
    SendResult,
    as_non_blocking,
    is_expired,
)
from providers.http import TOTAL_TIMEOUT, Exchange

from .results import TargetResult
from .targets import SendTarget

PROBE_BATCH = 10
"""Requests to a provider of which nobody here knows whether it takes any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDelivery:
    """A started delivery, what it says, and where it goes."""

    claimed: ClaimedDelivery
    message: Message
    targets: tuple[SendTarget, ...]
    """At least one; several for a person with several devices."""
    secret: SensitiveContent | None = None
    """What of the message is kept nowhere, should the provider repeat it."""
    held_until: datetime | None = None
    """Others are left out, as nothing goes to their platform before then."""
    asleep_until: datetime | None = None
    """Others are left out, as they are in their quiet hours until then."""


@dataclass(frozen=True, slots=True)
class TargetedRequest:
    """A job for one of its targets, as the provider is handed it."""

    job: PreparedDelivery
    target: SendTarget
    outbound: SendRequest

    @classmethod
    def of(cls, job: PreparedDelivery, target: SendTarget) -> Self:
        """Return what a job has for a target."""
        claimed = job.claimed
        outbound = SendRequest(
            reference=claimed.reference_to(target.device_id),
            notification_id=str(claimed.notification_id),
            recipient=target.address,
            recipient_name=claimed.recipient.name,
            message=job.message,
            category=claimed.category.value,
            priority=claimed.priority,
            platform=target.platform or None,
            is_service_window_open=target.window_open,
            expires_at=claimed.expires_at,
        )
        return cls(job, target, outbound)


def split_rounds(
    provider: Provider, jobs: Sequence[PreparedDelivery], *, is_proven: bool
) -> list[list[PreparedDelivery]]:
    """Return jobs in rounds that this process sends at once; at least one.

    A round has as many requests as the process has threads, the first one to a provider that has
    not proven itself of late a few: should it take nothing, its circuit is open before the second.
    People who are sent the same mail in one request count once, a device of several each.
    """
    taken: list[list[PreparedDelivery]] = []
    room = 0
    for group in _alike(provider, jobs):
        requests = max(len(job.targets) for job in group)
        if not taken or requests > room:
            room = settings.WORKER_THREADS
            if not taken and not is_proven:
                room = min(room, PROBE_BATCH)
            taken.append([])
        taken[-1] += group
        room -= requests
    return taken


def _alike(provider: Provider, jobs: Sequence[PreparedDelivery]) -> list[list[PreparedDelivery]]:
    """Return jobs in the groups that go in one request, if their provider takes several in one."""
    if not isinstance(provider, BatchProvider):
        return [[job] for job in jobs]
    groups: dict[Hashable, list[PreparedDelivery]] = {}
    for job in jobs:
        groups.setdefault(provider.batch_key(job.message), []).append(job)
    return list(groups.values())


def in_requests(
    provider: Provider, parcels: Sequence[TargetedRequest]
) -> list[list[TargetedRequest]]:
    """Return what goes in one request each: alone, but for the same mail to several people."""
    if len(parcels) == 1 or not isinstance(provider, BatchProvider):
        return [[parcel] for parcel in parcels]
    groups: dict[Hashable, list[TargetedRequest]] = {}
    for parcel in parcels:
        groups.setdefault(provider.batch_key(parcel.outbound.message), []).append(parcel)
    return list(groups.values())


log = structlog.get_logger(__name__)
LEASE_MARGIN = timedelta(seconds=2)
"""A send starts only if its lease outlives the longest request by this much."""
LOGGED_ERRORS, LOGGED_FRAMES = 5, 20
"""How much of a defect is logged: so many errors, each from so many of the last calls."""


def send_batch(
    provider: Provider, jobs: Sequence[PreparedDelivery], clock: Clock
) -> list[tuple[PreparedDelivery, tuple[TargetResult, ...]]]:
    """Send concurrently; a single one in this thread, so that it never queues behind a batch.

    Return what came of each that was begun. The others came too late, and nothing of them left.
    """
    parcels = [TargetedRequest.of(job, target) for job in jobs for target in job.targets]
    groups = in_requests(provider, parcels)
    by_reference: dict[str, list[TargetResult]] = {}
    for group, some in zip(groups, _send_groups(provider, groups, clock), strict=True):
        for parcel, result in zip(group, some, strict=True):
            if result is not None:
                claimed = parcel.job.claimed
                by_reference.setdefault(claimed.reference, []).append(result)
                # In one thread: dozens that write to one log wait for each other at every line.
                _log(claimed, result)
    return [
        (job, tuple(by_reference[job.claimed.reference]))
        for job in jobs
        if job.claimed.reference in by_reference
    ]


def _send_groups(
    provider: Provider, groups: Sequence[Sequence[TargetedRequest]], clock: Clock
) -> list[list[TargetResult | None]]:
    """Return what came of each group: this thread talks for all that it can, others send the rest.

    A single group is sent in this thread in any case.
    """
    talking = as_non_blocking(provider)
    talks = [
        talking is not None and len(group) == 1 and talking.is_non_blocking(group[0].outbound)
        for group in groups
    ]
    rest = [group for group, is_talk in zip(groups, talks, strict=True) if not is_talk]
    send = partial(_send_group, provider, clock)
    elsewhere = iter(
        map(send, rest)
        if len(groups) == 1 or not rest
        else _senders(os.getpid(), provider.name).map(send, rest)
    )
    here = iter(
        http_client.run_exchanges(
            _one(provider, group[0], clock)
            for group, is_talk in zip(groups, talks, strict=True)
            if is_talk
        )
    )
    return [[_sure(next(here))] if is_talk else next(elsewhere) for is_talk in talks]


def _sure(result: TargetResult | Exception | None) -> TargetResult | None:
    if isinstance(result, Exception):
        raise result
    return result


def _send_group(
    provider: Provider, clock: Clock, group: Sequence[TargetedRequest]
) -> list[TargetResult | None]:
    if len(group) > 1 and isinstance(provider, BatchProvider):
        return _send_together(provider, group, clock)
    return [http_client.run_exchange(_one(provider, parcel, clock)) for parcel in group]


def _send_together(
    provider: BatchProvider, group: Sequence[TargetedRequest], clock: Clock
) -> list[TargetResult | None]:
    """Send the same mail to several people at once; None for who was too late or not tried."""
    started_at, ticks = clock(), time.monotonic()
    in_time = [parcel for parcel in group if not _is_too_late(parcel, started_at)]
    crash_points.reach(Boundary.GROUP_BEGINS)
    try:
        outcomes = provider.send_many([p.outbound for p in in_time], timeout=TOTAL_TIMEOUT)
    except Exception as error:
        # As in _try: whether these left, nobody knows.
        outcomes = [_defect(error, parcel.outbound) for parcel in in_time]
    crash_points.reach(Boundary.GROUP_ANSWERED)
    taken = {p.outbound.reference: o for p, o in zip(in_time, outcomes, strict=True)}
    return [
        _result(parcel, outcome, clock=clock, started_at=started_at, ticks=ticks)
        if (outcome := taken.get(parcel.outbound.reference)) is not None
        and not isinstance(outcome, NotAttemptedError)
        else None
        for parcel in group
    ]


def _one(
    provider: Provider, parcel: TargetedRequest, clock: Clock
) -> Exchange[TargetResult | None]:
    """Send to one target and return what came of it; None if it is too late to begin."""
    started_at, ticks = clock(), time.monotonic()
    if _is_too_late(parcel, started_at):
        return None
    crash_points.reach(Boundary.SEND_BEGINS)
    outcome = yield from _try(provider, parcel.outbound)
    crash_points.reach(Boundary.SEND_ANSWERED)
    if isinstance(outcome, NotAttemptedError):
        return None
    return _result(parcel, outcome, clock=clock, started_at=started_at, ticks=ticks)


def _result(
    parcel: TargetedRequest,
    outcome: SendResult | ProviderError,
    *,
    clock: Clock,
    started_at: datetime,
    ticks: float,
) -> TargetResult:
    """Return what came of one try; ``ticks`` is when it began by the steady clock."""
    return TargetResult(
        device_id=parcel.target.device_id,
        platform=parcel.target.platform,
        outcome=mask_response(outcome, parcel.job.secret),
        started_at=started_at,
        finished_at=clock(),
        duration_ms=round((time.monotonic() - ticks) * 1000),
    )


def _log(claimed: ClaimedDelivery, result: TargetResult) -> None:
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


def _is_too_late(parcel: TargetedRequest, now: datetime) -> bool:
    """Return whether a delivery's lease is not ours for long enough, or its own time is over.

    A process that was frozen wakes up here: nothing has left yet, and another worker may be at it.
    The last of a batch may have waited for a minute behind a slow provider.
    """
    claimed = parcel.job.claimed
    if now + timedelta(seconds=TOTAL_TIMEOUT) + LEASE_MARGIN >= claimed.lease_until:
        log.warning("send_aborted_lease_over", delivery_id=claimed.reference)
        return True
    if is_expired(parcel.outbound, now=now):
        log.info("send_aborted_expired", delivery_id=claimed.reference)
        return True
    return False


def _try(provider: Provider, outbound: SendRequest) -> Exchange[SendResult | ProviderError]:
    """Return what came of handing a message to the provider, whatever it was."""
    try:
        if talking := as_non_blocking(provider):
            return (yield from talking.exchange(outbound, timeout=TOTAL_TIMEOUT))
        return provider.send(outbound, timeout=TOTAL_TIMEOUT)
    except ProviderError as error:
        return error
    except Exception as error:
        # A defect of ours. The rest of the batch goes on; whether this one left, nobody knows.
        return _defect(error, outbound)


def _defect(error: Exception, outbound: SendRequest) -> TransientError:
    # Where it happened, and not what it says: there may be an address or a body in that.
    log.error("provider_adapter_failed", delivery_id=outbound.reference, stack=_places(error))
    return TransientError(
        "The service itself failed while it was sending.",
        code=FailureCode.INTERNAL_ERROR,
        is_ambiguous=True,
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
