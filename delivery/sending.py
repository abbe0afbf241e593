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
from domain.time import Clock
from notifications.content.redaction import mask_response
from notifications.store import ClaimedDelivery
from notifyproject.platform import crash_points
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
    blocked_until: datetime | None = None
    """Others are left out, as nothing goes to their platform before then."""
    quiet_hours_end: datetime | None = None
    """Others are left out, as they are in their quiet hours until then."""


@dataclass(frozen=True, slots=True)
class TargetedRequest:
    """A delivery for one of its targets, as the provider is handed it."""

    delivery: PreparedDelivery
    target: SendTarget
    request: SendRequest

    @classmethod
    def of(cls, delivery: PreparedDelivery, target: SendTarget) -> Self:
        """Return what a delivery has for a target."""
        claimed = delivery.claimed
        request = SendRequest(
            reference=claimed.reference_to(target.device_id),
            notification_id=str(claimed.notification_id),
            recipient=target.address,
            recipient_name=claimed.recipient.name,
            message=delivery.message,
            category=claimed.category.value,
            priority=claimed.priority,
            platform=target.platform or None,
            is_service_window_open=target.window_open,
            expires_at=claimed.expires_at,
        )
        return cls(delivery, target, request)


def split_rounds(
    provider: Provider, deliveries: Sequence[PreparedDelivery], *, has_recent_success: bool
) -> list[list[PreparedDelivery]]:
    """Return deliveries in rounds that this process sends at once; at least one.

    A round has as many requests as the process has threads, the first one to a provider that has
    not proven itself of late a few: should it take nothing, its circuit is open before the second.
    People who are sent the same mail in one request count once, a device of several each.
    """
    rounds: list[list[PreparedDelivery]] = []
    capacity = 0
    for group in _group_by_mail(provider, deliveries):
        requests = max(len(delivery.targets) for delivery in group)
        if not rounds or requests > capacity:
            capacity = settings.WORKER_THREADS
            if not rounds and not has_recent_success:
                capacity = min(capacity, PROBE_BATCH)
            rounds.append([])
        rounds[-1] += group
        capacity -= requests
    return rounds


def _group_by_mail(
    provider: Provider, deliveries: Sequence[PreparedDelivery]
) -> list[list[PreparedDelivery]]:
    """Return deliveries in the groups that go in one request, if their provider takes several in one."""
    if not isinstance(provider, BatchProvider):
        return [[delivery] for delivery in deliveries]
    groups: dict[Hashable, list[PreparedDelivery]] = {}
    for delivery in deliveries:
        groups.setdefault(provider.batch_key(delivery.message), []).append(delivery)
    return list(groups.values())


def group_requests(
    provider: Provider, targeted_requests: Sequence[TargetedRequest]
) -> list[list[TargetedRequest]]:
    """Return what goes in one request each: alone, but for the same mail to several people."""
    if len(targeted_requests) == 1 or not isinstance(provider, BatchProvider):
        return [[targeted] for targeted in targeted_requests]
    groups: dict[Hashable, list[TargetedRequest]] = {}
    for targeted in targeted_requests:
        groups.setdefault(provider.batch_key(targeted.request.message), []).append(targeted)
    return list(groups.values())


log = structlog.get_logger(__name__)
LEASE_MARGIN = timedelta(seconds=2)
"""A send starts only if its lease outlives the longest request by this much."""
LOGGED_ERRORS, LOGGED_FRAMES = 5, 20
"""How much of a defect is logged: so many errors, each from so many of the last calls."""


def send_batch(
    provider: Provider, deliveries: Sequence[PreparedDelivery], clock: Clock
) -> list[tuple[PreparedDelivery, tuple[TargetResult, ...]]]:
    """Send concurrently; a single one in this thread, so that it never queues behind a batch.

    Return what came of each that was begun. The others came too late, and nothing of them left.
    """
    targeted_requests = [
        TargetedRequest.of(delivery, target)
        for delivery in deliveries
        for target in delivery.targets
    ]
    groups = group_requests(provider, targeted_requests)
    by_reference: dict[str, list[TargetResult]] = {}
    for group, group_results in zip(groups, _send_groups(provider, groups, clock), strict=True):
        for targeted, result in zip(group, group_results, strict=True):
            if result is not None:
                claimed = targeted.delivery.claimed
                by_reference.setdefault(claimed.reference, []).append(result)
                # In one thread: dozens that write to one log wait for each other at every line.
                _log(claimed, result)
    return [
        (delivery, tuple(by_reference[delivery.claimed.reference]))
        for delivery in deliveries
        if delivery.claimed.reference in by_reference
    ]


def _send_groups(
    provider: Provider, groups: Sequence[Sequence[TargetedRequest]], clock: Clock
) -> list[list[TargetResult | None]]:
    """Return what came of each group: this thread talks for all that it can, others send the rest.

    A single group is sent in this thread in any case.
    """
    non_blocking = as_non_blocking(provider)
    non_blocking_flags = [
        non_blocking is not None
        and len(group) == 1
        and non_blocking.is_non_blocking(group[0].request)
        for group in groups
    ]
    blocking_groups = [
        group
        for group, is_non_blocking in zip(groups, non_blocking_flags, strict=True)
        if not is_non_blocking
    ]
    send = partial(_send_group, provider, clock)
    threaded_results = iter(
        map(send, blocking_groups)
        if len(groups) == 1 or not blocking_groups
        else _thread_pool(os.getpid(), provider.name).map(send, blocking_groups)
    )
    multiplexed_results = iter(
        http_client.run_exchanges(
            _send_one(provider, group[0], clock)
            for group, is_non_blocking in zip(groups, non_blocking_flags, strict=True)
            if is_non_blocking
        )
    )
    return [
        [_unwrap(next(multiplexed_results))] if is_non_blocking else next(threaded_results)
        for is_non_blocking in non_blocking_flags
    ]


def _unwrap(result: TargetResult | Exception | None) -> TargetResult | None:
    if isinstance(result, Exception):
        raise result
    return result


def _send_group(
    provider: Provider, clock: Clock, group: Sequence[TargetedRequest]
) -> list[TargetResult | None]:
    if len(group) > 1 and isinstance(provider, BatchProvider):
        return _send_many(provider, group, clock)
    return [http_client.run_exchange(_send_one(provider, targeted, clock)) for targeted in group]


def _send_many(
    provider: BatchProvider, group: Sequence[TargetedRequest], clock: Clock
) -> list[TargetResult | None]:
    """Send the same mail to several people at once; None for who was too late or not tried."""
    started_at, monotonic_start = clock(), time.monotonic()
    in_time = [targeted for targeted in group if not _is_too_late(targeted, started_at)]
    crash_points.reach(Boundary.GROUP_BEGINS)
    try:
        outcomes = provider.send_many([p.request for p in in_time], timeout=TOTAL_TIMEOUT)
    except Exception as error:
        # As in _try: whether these left, nobody knows.
        outcomes = [_internal_error(error, targeted.request) for targeted in in_time]
    crash_points.reach(Boundary.GROUP_ANSWERED)
    by_reference = {p.request.reference: o for p, o in zip(in_time, outcomes, strict=True)}
    return [
        _target_result(
            targeted, result, clock=clock, started_at=started_at, monotonic_start=monotonic_start
        )
        if (result := by_reference.get(targeted.request.reference)) is not None
        and not isinstance(result, NotAttemptedError)
        else None
        for targeted in group
    ]


def _send_one(
    provider: Provider, targeted: TargetedRequest, clock: Clock
) -> Exchange[TargetResult | None]:
    """Send to one target and return what came of it; None if it is too late to begin."""
    started_at, monotonic_start = clock(), time.monotonic()
    if _is_too_late(targeted, started_at):
        return None
    crash_points.reach(Boundary.SEND_BEGINS)
    outcome = yield from _call_provider(provider, targeted.request)
    crash_points.reach(Boundary.SEND_ANSWERED)
    if isinstance(outcome, NotAttemptedError):
        return None
    return _target_result(
        targeted, outcome, clock=clock, started_at=started_at, monotonic_start=monotonic_start
    )


def _target_result(
    targeted: TargetedRequest,
    outcome: SendResult | ProviderError,
    *,
    clock: Clock,
    started_at: datetime,
    monotonic_start: float,
) -> TargetResult:
    """Return what came of one try; ``monotonic_start`` is when it began by the steady clock."""
    return TargetResult(
        device_id=targeted.target.device_id,
        platform=targeted.target.platform,
        outcome=mask_response(outcome, targeted.delivery.secret),
        started_at=started_at,
        finished_at=clock(),
        duration_ms=round((time.monotonic() - monotonic_start) * 1000),
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


def _is_too_late(targeted: TargetedRequest, now: datetime) -> bool:
    """Return whether a delivery's lease is not ours for long enough, or its own time is over.

    A process that was frozen wakes up here: nothing has left yet, and another worker may be at it.
    The last of a batch may have waited for a minute behind a slow provider.
    """
    claimed = targeted.delivery.claimed
    if now + timedelta(seconds=TOTAL_TIMEOUT) + LEASE_MARGIN >= claimed.lease_until:
        log.warning("send_aborted_lease_over", delivery_id=claimed.reference)
        return True
    if is_expired(targeted.request, now=now):
        log.info("send_aborted_expired", delivery_id=claimed.reference)
        return True
    return False


def _call_provider(
    provider: Provider, request: SendRequest
) -> Exchange[SendResult | ProviderError]:
    """Return what came of handing a message to the provider, whatever it was."""
    try:
        if non_blocking := as_non_blocking(provider):
            return (yield from non_blocking.exchange(request, timeout=TOTAL_TIMEOUT))
        return provider.send(request, timeout=TOTAL_TIMEOUT)
    except ProviderError as error:
        return error
    except Exception as error:
        # A defect of ours. The rest of the batch goes on; whether this one left, nobody knows.
        return _internal_error(error, request)


def _internal_error(error: Exception, request: SendRequest) -> TransientError:
    # Where it happened, and not what it says: there may be an address or a body in that.
    log.error("provider_adapter_failed", delivery_id=request.reference, stack=_format_stack(error))
    return TransientError(
        "The service itself failed while it was sending.",
        code=FailureCode.INTERNAL_ERROR,
        is_ambiguous=True,
    )


def _format_stack(error: BaseException) -> str:
    """Return where an error was raised, and before it those that it came from, without texts."""
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None and len(chain) < LOGGED_ERRORS:
        frames = "".join(traceback.format_tb(current.__traceback__, limit=-LOGGED_FRAMES))
        chain.append(f"{frames}{type(current).__module__}.{type(current).__qualname__}")
        current = current.__cause__ or current.__context__
    return "\n".join(reversed(chain))


@cache
def _thread_pool(_process_id: int, provider: str) -> ThreadPoolExecutor:
    """Return this process's threads for a provider: one that hangs holds up none of the others."""
    return ThreadPoolExecutor(max_workers=settings.WORKER_THREADS, thread_name_prefix=provider)
