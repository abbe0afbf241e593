"""Sends deliveries to a provider concurrently, and returns one result for each target."""

import asyncio
import time
import traceback
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from queue import Empty, SimpleQueue

import structlog

from domain.content import SensitiveContent
from domain.errors import FailureCode, ProviderError, TransientError
from domain.time import Clock
from notifications.content.redaction import mask_response
from notifications.store.claims import ClaimedDelivery
from notifyproject.platform import crash_points, event_loop, process
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.logs import buffered_lines
from providers import contract
from providers.contract import (
    Message,
    NotAttemptedError,
    Provider,
    SendRequest,
    SendResult,
    SendTarget,
)
from providers.http import TOTAL_TIMEOUT

from .idempotency import Repeat
from .results import TargetResult
from .routing import Route
from .window import SendWindow, SendWindows

log = structlog.get_logger(__name__)
COLLECTED_GROUPS = 32
"""Groups that are settled together, unless COLLECT_SECONDS pass after the first of them."""
COLLECT_SECONDS = 0.02
LEASE_MARGIN = timedelta(seconds=2)
"""A send starts only if its lease outlives the longest request by this much."""
LOGGED_ERRORS, LOGGED_FRAMES = 5, 20
"""Limits of a logged stack: errors in the chain, and frames of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDelivery:
    """A delivery with its message and its targets, ready to send."""

    claimed: ClaimedDelivery
    message: Message
    targets: tuple[SendTarget, ...]
    providers: tuple[Provider, ...] = ()
    """What may send it, in the order of failover."""
    secret: SensitiveContent | None = None
    """Sensitive values to mask if the provider repeats them in its response."""
    others_at: datetime | None = None
    """When the targets follow that the route's provider doesn't accept."""
    repeats: Repeat | None = None
    """The ambiguous attempts that this one repeats at an idempotent provider."""
    blocked_until: datetime | None = None
    quiet_hours_end: datetime | None = None


Results = tuple[PreparedDelivery, tuple[TargetResult, ...]]
"""A delivery with the results of its requests; without any if it was too late for them."""


def group_by_request(
    provider: Provider, deliveries: Sequence[PreparedDelivery]
) -> list[list[PreparedDelivery]]:
    """Return deliveries in groups that share a request: of one each, but for a batch provider."""
    if len(deliveries) == 1 or not isinstance(provider, contract.BatchProvider):
        return [[delivery] for delivery in deliveries]
    groups: dict[Hashable, list[PreparedDelivery]] = {}
    for delivery in deliveries:
        groups.setdefault(provider.batch_key(delivery.message), []).append(delivery)
    return list(groups.values())


def request_count(group: Sequence[PreparedDelivery]) -> int:
    """Return how many requests a group has in flight at once.

    A push has one for each device. A batch of emails has one for all of its deliveries.
    """
    return max(len(delivery.targets) for delivery in group)


class InFlight:
    """The requests in flight of one batch. The event loop sends; the batch's thread collects."""

    def __init__(self, windows: SendWindows, clock: Clock) -> None:
        self.count = 0
        """Groups that were submitted and not collected."""
        self._windows = windows
        self._clock = clock
        self._finished: SimpleQueue[tuple[Route, Sequence[Results]] | BaseException] = SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(
        self,
        route: Route,
        groups: Sequence[Sequence[PreparedDelivery]],
        *,
        at_once: bool = False,
    ) -> None:
        """Send each group when the provider's window admits it; ``at_once``: now."""
        self.count += len(groups)
        event_loop.call(partial(self._admit, route, groups, at_once=at_once))

    def collect(self, *, timeout: float) -> list[tuple[Route, Sequence[Results]]]:
        """Wait for a group, then shortly for others; return those that have finished."""
        finished: list[tuple[Route, Sequence[Results]]] = []
        deadline = time.monotonic() + timeout
        while self.count and len(finished) < COLLECTED_GROUPS:
            try:
                outcome = self._finished.get(timeout=max(deadline - time.monotonic(), 0))
            except Empty:
                break
            self.count -= 1
            if isinstance(outcome, BaseException):
                raise outcome
            if not finished:
                deadline = min(deadline, time.monotonic() + COLLECT_SECONDS)
            finished.append(outcome)
        with buffered_lines():
            for _, group in finished:
                for delivery, results in group:
                    for result in results:
                        _log(delivery.claimed, result)
        return finished

    def _admit(
        self, route: Route, groups: Sequence[Sequence[PreparedDelivery]], *, at_once: bool
    ) -> None:
        window = self._windows.of(route.provider)
        for group in groups:
            send = partial(self._begin, route, group, window, at_once=at_once)
            window.admit(request_count(group), send, at_once=at_once)

    def _begin(
        self,
        route: Route,
        group: Sequence[PreparedDelivery],
        window: SendWindow,
        *,
        at_once: bool,
    ) -> None:
        is_sent = not process.is_shutting_down() and (at_once or not window.is_paused)
        sending = self._send(route, group, window, is_sent=is_sent)
        task = asyncio.get_running_loop().create_task(sending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(
        self,
        route: Route,
        group: Sequence[PreparedDelivery],
        window: SendWindow,
        *,
        is_sent: bool,
    ) -> None:
        results: Sequence[Results] = [(delivery, ()) for delivery in group]
        began_at = window.clock()
        try:
            if is_sent:
                results = await _send_group(route.provider, group, window, self._clock)
        except BaseException as error:
            self._finished.put(error)
            raise
        finally:
            flat = [result for _, some in results for result in some]
            window.release(request_count(group), results=flat, started_at=began_at)
        self._finished.put((route, results))


async def _send_group(
    provider: Provider, group: Sequence[PreparedDelivery], window: SendWindow, clock: Clock
) -> list[Results]:
    pairs = [(delivery, target) for delivery in group for target in delivery.targets]
    results: list[TargetResult | None]
    if len(pairs) == 1:
        results = [await _send_one(provider, *pairs[0], clock)]
    elif len(group) > 1 and isinstance(provider, contract.BatchProvider):
        results = await _send_many(provider, pairs, clock)
    else:
        results, size = [], window.size
        for start in range(0, len(pairs), size):
            chunk = pairs[start : start + size]
            results += await asyncio.gather(
                *(_send_one(provider, *request, clock) for request in chunk)
            )
    of_delivery: dict[str, list[TargetResult]] = {
        delivery.claimed.reference: [] for delivery in group
    }
    for (delivery, _), result in zip(pairs, results, strict=True):
        if result is not None:
            of_delivery[delivery.claimed.reference].append(result)
    return [(delivery, tuple(of_delivery[delivery.claimed.reference])) for delivery in group]


async def _send_many(
    provider: contract.BatchProvider,
    pairs: Sequence[tuple[PreparedDelivery, SendTarget]],
    clock: Clock,
) -> list[TargetResult | None]:
    started_at, monotonic_start = clock(), time.monotonic()
    requests = [_request(delivery, target) for delivery, target in pairs]
    is_late = [
        _is_too_late(delivery, request, started_at)
        for (delivery, _), request in zip(pairs, requests, strict=True)
    ]
    in_time = [request for request, late in zip(requests, is_late, strict=True) if not late]
    crash_points.reach(Boundary.GROUP_BEGINS)
    outcomes: Sequence[SendResult | ProviderError]
    try:
        outcomes = await provider.send_many(in_time, timeout=TOTAL_TIMEOUT)
    except Exception as error:
        # As in _send_one: the outcome is unknown.
        outcomes = [
            _internal_error(error, delivery.claimed)
            for (delivery, _), late in zip(pairs, is_late, strict=True)
            if not late
        ]
    crash_points.reach(Boundary.GROUP_ANSWERED)
    by_reference = {
        request.reference: outcome for request, outcome in zip(in_time, outcomes, strict=True)
    }
    return [
        _target_result(
            delivery, target, result, clock, started_at=started_at, monotonic_start=monotonic_start
        )
        if (result := by_reference.get(request.reference)) is not None
        and not isinstance(result, NotAttemptedError)
        else None
        for (delivery, target), request in zip(pairs, requests, strict=True)
    ]


async def _send_one(
    provider: Provider, delivery: PreparedDelivery, target: SendTarget, clock: Clock
) -> TargetResult | None:
    started_at, monotonic_start = clock(), time.monotonic()
    request = _request(delivery, target)
    if _is_too_late(delivery, request, started_at):
        return None
    crash_points.reach(Boundary.SEND_BEGINS)
    outcome: SendResult | ProviderError
    try:
        outcome = await provider.send(request, timeout=TOTAL_TIMEOUT)
    except ProviderError as error:
        outcome = error
    except Exception as error:
        # A defect in an adapter. The rest of the batch continues; this outcome is unknown.
        outcome = _internal_error(error, delivery.claimed)
    crash_points.reach(Boundary.SEND_ANSWERED)
    if isinstance(outcome, NotAttemptedError):
        return None
    return _target_result(
        delivery, target, outcome, clock, started_at=started_at, monotonic_start=monotonic_start
    )


def _request(delivery: PreparedDelivery, target: SendTarget) -> SendRequest:
    claimed, repeats = delivery.claimed, delivery.repeats
    reference = claimed.reference_to(target.device_id)
    return SendRequest(
        reference=reference,
        idempotency_key=repeats.series.reference if repeats else reference,
        attempted_at=repeats.series.began_at if repeats else claimed.started_at,
        notification_id=str(claimed.notification_id),
        recipient=target.address,
        recipient_name=claimed.recipient.name,
        message=delivery.message,
        category=claimed.category.value,
        priority=claimed.priority,
        platform=target.platform or None,
        scope=target.scope or None,
        subscription=target.subscription,
        secrets=target.secrets,
        is_service_window_open=target.window_open,
        expires_at=claimed.expires_at,
    )


def _target_result(
    delivery: PreparedDelivery,
    target: SendTarget,
    outcome: SendResult | ProviderError,
    clock: Clock,
    *,
    started_at: datetime,
    monotonic_start: float,
) -> TargetResult:
    return TargetResult(
        device_id=target.device_id,
        scope=target.scope,
        outcome=mask_response(outcome, delivery.secret),
        started_at=started_at,
        finished_at=clock(),
        duration_ms=round((time.monotonic() - monotonic_start) * 1000),
        units=_billed_units(delivery, outcome),
    )


def _billed_units(delivery: PreparedDelivery, outcome: SendResult | ProviderError) -> int | None:
    """Return how many parts may be billed; None on a channel without parts, and for a refusal."""
    if isinstance(outcome, SendResult):
        return outcome.units or delivery.message.units
    is_ambiguous = isinstance(outcome, TransientError) and outcome.is_ambiguous
    return delivery.message.units if is_ambiguous else None


def _log(claimed: ClaimedDelivery, result: TargetResult) -> None:
    outcome = result.outcome
    log.info(
        "delivery_attempted",
        delivery_id=claimed.delivery_id,
        device_id=result.device_id,
        channel=claimed.channel.value,
        attempt=claimed.attempt_count,
        outcome=type(outcome).__name__,
        code=outcome.code if isinstance(outcome, ProviderError) else None,
        duration_ms=result.duration_ms,
        request_id=claimed.request_id,
    )


def _is_too_late(delivery: PreparedDelivery, request: SendRequest, now: datetime) -> bool:
    claimed = delivery.claimed
    if now + timedelta(seconds=TOTAL_TIMEOUT) + LEASE_MARGIN >= claimed.lease_until:
        log.warning("send_aborted_lease_over", delivery_id=claimed.delivery_id)
        return True
    if contract.is_expired(request, now=now):
        log.info("send_aborted_expired", delivery_id=claimed.delivery_id)
        return True
    if delivery.repeats is not None and now >= delivery.repeats.until:
        # It waited for the rate or the window meanwhile. The next claim decides what to do.
        log.info("send_aborted_forgotten", delivery_id=claimed.delivery_id)
        return True
    return False


def _internal_error(error: Exception, claimed: ClaimedDelivery) -> TransientError:
    # The stack without the message, which may contain an address or a body.
    stack = _format_stack(error)
    log.error("provider_adapter_failed", delivery_id=claimed.delivery_id, stack=stack)
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
