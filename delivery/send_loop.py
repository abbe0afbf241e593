"""Sends the prepared deliveries of a batch as the send window and the rate have room for them."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import islice

import structlog

from domain import retry
from domain.time import Clock
from notifications.store import leases
from notifications.store.claims import NotSent
from notifyproject.platform import crash_points, process
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.process import worker_name
from providers.contract import Provider, SendTarget

from . import daily_units, eligibility, provider_pauses, routing, settlement
from .routing import Route
from .runtime import SendingRuntime
from .sending import InFlight, PreparedDelivery, Results, group_by_request, request_count
from .settlement import BatchReport
from .window import SendWindow

log = structlog.get_logger(__name__)
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
RECHECK_SECONDS = 2.0
"""Deliveries that were prepared longer ago are checked again: their recipient may have opted out
while they waited for capacity or for the rate."""
MAX_SEND_SECONDS = 60.0
"""Longest wait for an answer: four times a request's timeout."""


@dataclass(slots=True)
class _Lane:
    """The waiting deliveries of the provider that they prefer, for whose room and rate they wait.

    Providers that accept different targets have a lane each, and so have the accounts of brands, so
    that a slow one delays no other.
    """

    provider: Provider
    providers: tuple[Provider, ...]
    """What may send its deliveries, in the order of failover."""
    window: SendWindow
    next_start: float
    """When its rate allows the next send, on the monotonic clock."""
    waiting: deque[list[PreparedDelivery]] = field(default_factory=deque)


class SendLoop:
    """Sends prepared deliveries through send windows, and settles them as answers come."""

    def __init__(
        self,
        runtime: SendingRuntime,
        clock: Clock,
        report: BatchReport,
        *,
        on_started: Callable[[], None],
        on_in_flight: Callable[[BatchReport], None],
    ) -> None:
        self._runtime = runtime
        self._clock = clock
        self._report = report
        self._on_started = on_started
        self._on_in_flight = on_in_flight
        self._in_flight = InFlight(runtime.windows, clock)
        self._lanes: list[_Lane] = []
        self._is_single = False
        self._rate_wait_end = self._prepared_at = time.monotonic()

    def run(self, deliveries: Sequence[PreparedDelivery]) -> None:
        """Send all deliveries that their leases leave time for; release the others."""
        self._lanes = self._lanes_of(deliveries)
        self._is_single = len(deliveries) == 1
        if not self._is_single:
            self._rate_wait_end += RATE_WAIT_SECONDS
        try:
            while (lanes := self._waiting_lanes()) or self._in_flight.count:
                if process.is_shutting_down():
                    for lane in lanes:
                        self._release_waiting(lane)
                    lanes = []
                if lanes:
                    if not (due := self._await_rate(lanes)):
                        continue
                    for lane in due:
                        self._send_groups(lane, self._take_groups(lane, is_alone=len(lanes) == 1))
                    lanes = self._waiting_lanes()
                    if not lanes:
                        self._end_rate_wait()
                        self._on_in_flight(self._report)
                self._collect_answers(REFILL_SECONDS if lanes else MAX_SEND_SECONDS)
        finally:
            self._end_rate_wait()
            # After an error, such as of MongoDB, the requests in flight still have results.
            while self._in_flight.count:
                self._collect_answers(MAX_SEND_SECONDS)

    def _lanes_of(self, deliveries: Sequence[PreparedDelivery]) -> list[_Lane]:
        lanes: dict[tuple[str, int], tuple[Provider, list[PreparedDelivery]]] = {}
        for delivery in deliveries:
            provider = routing.preferred_provider(delivery.providers, delivery.targets)
            # Deliveries with the same providers have the same tuple.
            key = (provider.account, id(delivery.providers))
            lanes.setdefault(key, (provider, []))[1].append(delivery)
        now = time.monotonic()
        return [
            _Lane(
                provider,
                some[0].providers,
                self._runtime.windows.of(provider),
                now,
                deque(group_by_request(provider, some)),
            )
            for provider, some in lanes.values()
        ]

    def _waiting_lanes(self) -> list[_Lane]:
        return [lane for lane in self._lanes if lane.waiting]

    def _take_groups(self, lane: _Lane, *, is_alone: bool) -> list[list[PreparedDelivery]]:
        """Return groups that have capacity in the window; none if there is no capacity yet."""
        window = lane.window
        wanted = sum(map(request_count, islice(lane.waiting, STARTED_GROUPS)))
        if self._in_flight.count:
            capacity = window.try_acquire(wanted)
        elif self._is_single:
            # A single delivery does not wait, so that it never queues behind a batch.
            window.adjust(wanted)
            capacity = wanted
        else:
            ends_at = min(
                delivery.claimed.lease_until for group in lane.waiting for delivery in group
            )
            time_left = (ends_at - MIN_LEASE_LEFT - self._clock()).total_seconds()
            longest = WAIT_SECONDS if is_alone else REFILL_SECONDS
            capacity = window.acquire(wanted, timeout=max(min(time_left, longest), 0))
            if not capacity and time_left <= longest:
                self._release_waiting(lane)
        if process.is_shutting_down():
            window.adjust(-capacity)
            return []
        groups: list[list[PreparedDelivery]] = []
        while capacity > 0:
            groups.append(lane.waiting.popleft())
            capacity -= request_count(groups[-1])
        # The last one, to many devices, may have needed more.
        window.adjust(-capacity)
        return groups

    def _send_groups(self, lane: _Lane, groups: Sequence[Sequence[PreparedDelivery]]) -> None:
        """Route the groups, record the start of each attempt, and hand them to the event loop."""
        if not groups:
            return
        now, names = self._clock(), [provider.name for provider in lane.providers]
        began = time.monotonic()
        unused = sum(map(request_count, groups))
        ended: list[NotSent] = []
        try:
            by_reference = {
                delivery.claimed.reference: delivery for group in groups for delivery in group
            }
            routes, not_sent = routing.choose_routes(
                self._runtime,
                [delivery.claimed for delivery in by_reference.values()],
                providers=lane.providers,
                targets={
                    reference: delivery.targets for reference, delivery in by_reference.items()
                },
                paused=provider_pauses.paused_until(names, now=now),
                units={
                    reference: units
                    for reference, delivery in by_reference.items()
                    if (units := delivery.message.units)
                },
                now=now,
            )
            if began - self._prepared_at > RECHECK_SECONDS:
                ended = _recheck(routes, now)
                for unsent in ended:
                    del by_reference[unsent.claimed.reference]
            for route in routes:
                sending = group_by_request(route.provider, self._record_start(route, by_reference))
                count = sum(map(request_count, sending))
                is_failover = route.provider is not lane.provider
                if is_failover:
                    self._runtime.windows.of(route.provider).adjust(count)
                else:
                    unused -= count
                if sending:
                    at_once = self._is_single or is_failover
                    self._in_flight.submit(route, sending, at_once=at_once)
                else:
                    # All were taken over, cancelled, or ended: a probe goes back.
                    settlement.record_answers(self._runtime, route, [], self._clock(), self._report)
        finally:
            lane.window.adjust(-unused)
        held = self._keep_rate_limited(lane, not_sent, by_reference, now, began)
        settlement.hold_or_end([*ended, *held], self._clock(), self._report)

    def _await_rate(self, lanes: Sequence[_Lane]) -> list[_Lane]:
        """Return the lanes whose next token is due. If none is, wait, and settle answers."""
        now = time.monotonic()
        due = [lane for lane in lanes if lane.next_start <= now]
        if not due:
            wait = min(min(lane.next_start for lane in lanes) - now, WAIT_SECONDS)
            if self._in_flight.count:
                self._collect_answers(wait)
            else:
                time.sleep(wait)
        return due

    def _keep_rate_limited(
        self,
        origin: _Lane,
        not_sent: Sequence[NotSent],
        by_reference: Mapping[str, PreparedDelivery],
        now: datetime,
        began: float,
    ) -> list[NotSent]:
        """Let deliveries wait in the batch if they soon get a token; return the others.

        With a backlog, each would otherwise be claimed, rendered, and held many times. They wait in
        the lane of the provider whose token they need. After a failover that isn't the lane that
        they come from, and they queue behind those that came before. What a full room or a country
        holds isn't worth the wait of others.
        """
        until = now + timedelta(seconds=self._rate_wait_end - began)
        kept: dict[str, list[tuple[datetime, PreparedDelivery]]] = {}
        held = []
        for unsent in not_sent:
            at = unsent.next_attempt_at
            if unsent.rate_of and at is not None and at <= until:
                delivery = by_reference[unsent.claimed.reference]
                kept.setdefault(unsent.rate_of, []).append((at, delivery))
            else:
                held.append(unsent)
        for account, some in kept.items():
            lane = self._lane_of(account, origin.providers)
            groups = group_by_request(lane.provider, [delivery for _, delivery in some])
            if lane is origin:
                lane.waiting.extendleft(reversed(groups))
            else:
                lane.waiting.extend(groups)
            wait = (min(at for at, _ in some) - now).total_seconds()
            lane.next_start = began + max(wait, RATE_CHECK_SECONDS)
            self._runtime.rate_waits.setdefault(account, set()).add(self)
        return held

    def _lane_of(self, account: str, providers: tuple[Provider, ...]) -> _Lane:
        for lane in self._lanes:
            if lane.provider.account == account and lane.providers is providers:
                return lane
        provider = next(p for p in providers if p.account == account)
        lane = _Lane(provider, providers, self._runtime.windows.of(provider), time.monotonic())
        self._lanes.append(lane)
        return lane

    def _end_rate_wait(self) -> None:
        for lane in self._lanes:
            self._runtime.rate_waits.get(lane.provider.account, set()).discard(self)

    def _record_start(
        self, route: Route, by_reference: Mapping[str, PreparedDelivery]
    ) -> list[PreparedDelivery]:
        """Record the start of each attempt by compare-and-set; return those still leased.

        ``by_reference`` lacks those that may no longer be sent.
        """
        provider = route.provider
        now = self._clock()
        deliveries = [
            _for_route(route, by_reference[claim.reference], now)
            for claim in route.claims
            if claim.reference in by_reference
        ]
        if not deliveries:
            return []
        claims = [
            replace(delivery.claimed, series_first=delivery.repeats.series.first)
            if delivery.repeats
            else delivery.claimed
            for delivery in deliveries
        ]
        started = leases.start(claims, provider=provider.name, worker=worker_name(), now=now)
        if len(started) < len(claims):
            kept = {claimed.notification_id for claimed in started}
            lost = [claimed for claimed in claims if claimed.notification_id not in kept]
            log.info("deliveries_taken_over", provider=provider.name, lost=len(lost))
            # Whoever took them over has reserved the parts again. Limits know a use by delivery.
            daily_units.give_back_units(lost)
        # A started delivery is no poison candidate: another may be claimed during the send.
        self._on_started()
        crash_points.reach(Boundary.STARTED)
        by_id = {delivery.claimed.notification_id: delivery for delivery in deliveries}
        return [replace(by_id[claimed.notification_id], claimed=claimed) for claimed in started]

    def _collect_answers(self, timeout: float) -> None:
        """Wait up to ``timeout`` seconds for answers, and settle their deliveries."""
        finished = self._in_flight.collect(timeout=timeout)
        if not finished:
            if self._in_flight.count and not self._waiting_lanes():
                raise RuntimeError(f"no answer within {timeout} seconds")
            return
        crash_points.reach(Boundary.BATCH_SENT)
        by_route: dict[int, tuple[Route, list[Results]]] = {}
        for route, group in finished:
            by_route.setdefault(id(route), (route, []))[1].extend(group)
        for route, sent in by_route.values():
            settlement.record_answers(self._runtime, route, sent, self._clock(), self._report)

    def _release_waiting(self, lane: _Lane) -> None:
        now = self._clock()
        left = [delivery.claimed for group in lane.waiting for delivery in group]
        lane.waiting.clear()
        settlement.put_back(left, now, self._report)


def _recheck(routes: Sequence[Route], now: datetime) -> list[NotSent]:
    """Return the deliveries of routes that may no longer be sent, and why."""
    claims = [claimed for route in routes for claimed in route.claims]
    if not claims:
        return []
    _, ended = eligibility.filter_eligible(claims, now=now, has_provider=True)
    return ended


def _for_route(route: Route, delivery: PreparedDelivery, now: datetime) -> PreparedDelivery:
    """Return a delivery with the targets that the route's provider takes now."""
    targets = route.targets[delivery.claimed.reference]
    if (
        not route.blocked_scopes
        and len(delivery.targets) == 1
        and delivery.targets[0].device_id is None
        and targets is delivery.targets
    ):
        # One address that is not a device: the copy below would be equal, and in a batch of
        # mails such copies cost measurable time.
        return delivery
    open_targets = tuple(t for t in targets if t.scope not in route.blocked_scopes)
    blocked = [route.blocked_scopes[t.scope] for t in targets if t.scope in route.blocked_scopes]
    platforms = {t.device_id: t.platform for t in open_targets if t.device_id is not None}
    return replace(
        delivery,
        claimed=replace(delivery.claimed, device_ids=tuple(platforms), platforms=platforms),
        targets=open_targets,
        others_at=_others_at(delivery, targets, now),
        blocked_until=min(blocked, default=None),
    )


def _others_at(
    delivery: PreparedDelivery, targets: Sequence[SendTarget], now: datetime
) -> datetime | None:
    """Return when the targets follow that only another provider accepts: at once, or as a retry."""
    if len(targets) == len(delivery.targets):
        return None
    own, claimed = {target.address for target in targets}, delivery.claimed
    others = [target for target in delivery.targets if target.address not in own]
    if not all(target.last_attempt for target in others):
        return now
    counted = max(claimed.retry_state.counted_attempts, 1)
    return now + retry.delay(priority=claimed.priority, counted_attempts=counted, jitter=0)
