"""Sends deliveries to a provider concurrently, and returns one result for each target."""

import os
import time
import traceback
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, partial
from typing import Self, TypeVar

import structlog
from django.conf import settings

from domain.content import SensitiveContent
from domain.errors import FailureCode, ProviderError, TransientError
from domain.time import Clock
from notifications.content.redaction import mask_response
from notifications.store import ClaimedDelivery
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from providers import contract, http_client
from providers.contract import Message, NotAttemptedError, Provider, SendRequest, SendResult
from providers.http import TOTAL_TIMEOUT, Exchange

from .results import TargetResult
from .targets import SendTarget

log = structlog.get_logger(__name__)
PROBE_BATCH = 10
"""Requests of the first round to a provider without a recent success in this process."""
LEASE_MARGIN = timedelta(seconds=2)
"""A send starts only if its lease outlives the longest request by this much."""
LOGGED_ERRORS, LOGGED_FRAMES = 5, 20
"""Limits of a logged stack: chained errors, and frames of each error."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDelivery:
    """A delivery with its message and its targets, ready to send."""

    claimed: ClaimedDelivery
    message: Message
    targets: tuple[SendTarget, ...]
    secret: SensitiveContent | None = None
    """Sensitive values to mask if the provider repeats them in its response."""
    blocked_until: datetime | None = None
    quiet_hours_end: datetime | None = None


@dataclass(frozen=True, slots=True)
class TargetedRequest:
    """One request to the provider, with the delivery and target it is for."""

    delivery: PreparedDelivery
    target: SendTarget
    request: SendRequest

    @classmethod
    def of(cls, delivery: PreparedDelivery, target: SendTarget) -> Self:
        """Build the request that sends a delivery to a target."""
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
    """Split deliveries into rounds of at most one request for each thread of the process.

    Each device counts as a request; a provider's send batch counts as one. Without a recent
    success, the first round is limited to :data:`PROBE_BATCH`: if all fail, the circuit opens in
    time.
    """
    rounds: list[list[PreparedDelivery]] = []
    capacity = 0
    for group in _group_by_batch_key(provider, deliveries, lambda one: one.message):
        requests = max(len(delivery.targets) for delivery in group)
        if not rounds or requests > capacity:
            capacity = settings.WORKER_THREADS
            if not rounds and not has_recent_success:
                capacity = min(capacity, PROBE_BATCH)
            rounds.append([])
        rounds[-1] += group
        capacity -= requests
    return rounds


def _group_by_batch_key(
    provider: Provider, items: Sequence[T], message_of: Callable[[T], Message]
) -> list[list[T]]:
    if len(items) == 1 or not isinstance(provider, contract.BatchProvider):
        return [[item] for item in items]
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(provider.batch_key(message_of(item)), []).append(item)
    return list(groups.values())


def send_batch(
    provider: Provider, deliveries: Sequence[PreparedDelivery], clock: Clock
) -> list[tuple[PreparedDelivery, tuple[TargetResult, ...]]]:
    """Send concurrently. Return the results by delivery, without deliveries that were too late."""
    targeted_requests = [
        TargetedRequest.of(delivery, target)
        for delivery in deliveries
        for target in delivery.targets
    ]
    groups = _group_by_batch_key(provider, targeted_requests, lambda one: one.request.message)
    by_reference: dict[str, list[TargetResult]] = {}
    for group, group_results in zip(groups, _send_groups(provider, groups, clock), strict=True):
        for targeted, result in zip(group, group_results, strict=True):
            if result is not None:
                claimed = targeted.delivery.claimed
                by_reference.setdefault(claimed.reference, []).append(result)
                # Logged in one thread: dozens of threads would contend for the log at every line.
                _log(claimed, result)
    return [
        (delivery, tuple(by_reference[delivery.claimed.reference]))
        for delivery in deliveries
        if delivery.claimed.reference in by_reference
    ]


def _send_groups(
    provider: Provider, groups: Sequence[Sequence[TargetedRequest]], clock: Clock
) -> list[list[TargetResult | None]]:
    """Return the results of each group, with None for requests that were not attempted.

    Non-blocking exchanges and a single group run in this thread; other groups use a thread pool.
    """
    non_blocking = contract.as_non_blocking(provider)
    multiplexed: list[int] = []
    threaded: list[int] = []
    for number, group in enumerate(groups):
        if len(group) == 1 and non_blocking and non_blocking.is_non_blocking(group[0].request):
            multiplexed.append(number)
        else:
            threaded.append(number)
    send, blocking_groups = partial(_send_group, provider, clock), [groups[n] for n in threaded]
    threaded_results = (
        map(send, blocking_groups)
        if len(groups) == 1 or not threaded
        else _thread_pool(os.getpid(), provider.name).map(send, blocking_groups)
    )
    exchanges = (_send_one(provider, groups[number][0], clock) for number in multiplexed)
    results: dict[int, list[TargetResult | None]] = {}
    for number, result in zip(multiplexed, http_client.run_exchanges(exchanges), strict=True):
        if isinstance(result, Exception):
            raise result
        results[number] = [result]
    results |= zip(threaded, threaded_results, strict=True)
    return [results[number] for number in range(len(groups))]


def _send_group(
    provider: Provider, clock: Clock, group: Sequence[TargetedRequest]
) -> list[TargetResult | None]:
    if len(group) > 1 and isinstance(provider, contract.BatchProvider):
        return _send_many(provider, group, clock)
    return [http_client.run_exchange(_send_one(provider, targeted, clock)) for targeted in group]


def _send_many(
    provider: contract.BatchProvider, group: Sequence[TargetedRequest], clock: Clock
) -> list[TargetResult | None]:
    started_at, monotonic_start = clock(), time.monotonic()
    in_time = [targeted for targeted in group if not _is_too_late(targeted, started_at)]
    crash_points.reach(Boundary.GROUP_BEGINS)
    try:
        outcomes = provider.send_many([p.request for p in in_time], timeout=TOTAL_TIMEOUT)
    except Exception as error:
        # As in _send_one: the outcome is unknown.
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
    started_at, monotonic_start = clock(), time.monotonic()
    if _is_too_late(targeted, started_at):
        return None
    crash_points.reach(Boundary.SEND_BEGINS)
    outcome: SendResult | ProviderError
    try:
        if non_blocking := contract.as_non_blocking(provider):
            outcome = yield from non_blocking.exchange(targeted.request, timeout=TOTAL_TIMEOUT)
        else:
            outcome = provider.send(targeted.request, timeout=TOTAL_TIMEOUT)
    except ProviderError as error:
        outcome = error
    except Exception as error:
        # A defect in an adapter. The rest of the batch continues; this outcome is unknown.
        outcome = _internal_error(error, targeted.request)
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
    claimed = targeted.delivery.claimed
    if now + timedelta(seconds=TOTAL_TIMEOUT) + LEASE_MARGIN >= claimed.lease_until:
        log.warning("send_aborted_lease_over", delivery_id=claimed.reference)
        return True
    if contract.is_expired(targeted.request, now=now):
        log.info("send_aborted_expired", delivery_id=claimed.reference)
        return True
    return False


def _internal_error(error: Exception, request: SendRequest) -> TransientError:
    # The stack without the message, which may contain an address or a body.
    log.error("provider_adapter_failed", delivery_id=request.reference, stack=_format_stack(error))
    return TransientError(
        "Internal error while sending.", code=FailureCode.INTERNAL_ERROR, is_ambiguous=True
    )


def _format_stack(error: BaseException) -> str:
    chain: list[str] = []
    current: BaseException | None = error
    while current is not None and len(chain) < LOGGED_ERRORS:
        frames = "".join(traceback.format_tb(current.__traceback__, limit=-LOGGED_FRAMES))
        chain.append(f"{frames}{type(current).__module__}.{type(current).__qualname__}")
        current = current.__cause__ or current.__context__
    return "\n".join(reversed(chain))


@cache
def _thread_pool(_process_id: int, provider: str) -> ThreadPoolExecutor:
    """Return a provider's own thread pool, so that a hanging provider blocks no other."""
    return ThreadPoolExecutor(max_workers=settings.WORKER_THREADS, thread_name_prefix=provider)
