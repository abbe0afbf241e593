"""Writes what became of the deliveries of a batch, and what follows from it.

That is, through the store: settlements, deferrals, and returned claims. Then come the uses of
limits, the next steps of plans, events, and the reports to circuits, rates, and addresses.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import structlog

from domain.plans import ENDED_UNREACHED
from domain.states import DeliveryStatus
from notifications import callback_events
from notifications.inbox import wakeups as inbox_wakeups
from notifications.queueing.wakeups import Wakeup
from notifications.store import leases, steps
from notifications.store.claims import ClaimedDelivery, NotSent, Settlement
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from . import daily_units, feedback, limits, sent_tests, texts
from .results import combine_results
from .routing import Route
from .runtime import Lanes, SendingRuntime
from .sending import Results

log = structlog.get_logger(__name__)
S = DeliveryStatus


@dataclass(slots=True)
class BatchReport:
    """Result of a batch: deliveries by status, and the wake-ups to enqueue."""

    claimed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wakeups: list[Wakeup] = field(default_factory=list)
    """Of deliveries of the batch."""
    account_waits: list[tuple[datetime, Collection[str]]] = field(default_factory=list)
    """When deliveries of the batch are due again, and the accounts that send nothing until then."""
    lanes: Lanes = ()
    """What sends the batch, as far as it is known."""
    moved_up: list[Wakeup] = field(default_factory=list)
    """Of other deliveries, for which a limit has room now: also other clients' and priorities'."""

    def add_wakeup(
        self, claimed: ClaimedDelivery, *, at: datetime, with_others: bool = False
    ) -> None:
        """Add a wake-up for a delivery at a time.

        ``with_others``: many others may be due then, so that a pull takes it.
        """
        self.wakeups.append(
            Wakeup(
                claimed.notification_id,
                claimed.channel,
                claimed.priority,
                at,
                pulled_for=claimed.client_id if with_others else None,
            )
        )


def record_answers(
    runtime: SendingRuntime,
    route: Route,
    sent: Sequence[Results],
    now: datetime,
    report: BatchReport,
) -> None:
    """Settle the deliveries of a route by their results, and report these.

    Deliveries without a result return to the queue: their lease or lifetime ended before their
    request.
    """
    provider = route.provider
    attempted = [(delivery, results) for delivery, results in sent if results]
    if route.claims[0].is_test:
        # Before the settlement: who sees a message as sent finds it in the outbox.
        sent_tests.keep(attempted, now=now)
    settlements = [
        combine_results(
            delivery.claimed,
            results,
            provider=provider.name,
            now=now,
            jitter=runtime.jitter.uniform(-1, 1),
            has_failover=route.has_failover,
            others_at=delivery.others_at,
            blocked_until=delivery.blocked_until,
            quiet_hours_end=delivery.quiet_hours_end,
            is_doubted=bool(route.probes),
        )
        for delivery, results in attempted
    ]
    _store_settlements(settlements, now, report)
    unsent = [delivery.claimed for delivery, results in sent if not results]
    leases.return_unsent(unsent, now=now)
    _give_back_uses((claimed, now) for claimed in unsent)
    _requeue(unsent, now, report)
    flat = [(delivery, result) for delivery, results in attempted for result in results]
    feedback.report_provider_health(runtime, provider, flat, probes=route.probes, now=now)
    crash_points.reach(Boundary.REPORTED)
    if route.claims[0].channel.pays_by_part:
        texts.count_sent(settlements, now=now)
    feedback.apply_reputation(flat, provider=provider, now=now, is_doubted=bool(route.probes))
    feedback.record_attempts(settlements, [results for _, results in attempted], now=now)


def _store_settlements(
    settlements: Sequence[Settlement], now: datetime, report: BatchReport
) -> None:
    settled_count = leases.settle(settlements, now=now)
    crash_points.reach(Boundary.SETTLED)
    if settled_count < len(settlements):
        log.info("settlements_superseded", count=len(settlements) - settled_count)
    _give_back_uses(
        (s.claimed, s.next_attempt_at) for s in settlements if limits.is_certainly_unsent(s)
    )
    inbox_wakeups.send_settled_wakeups(settlements)
    callback_events.enqueue_publisher(now=now)
    for settlement in settlements:
        report.counts[settlement.status.value] += 1
        if settlement.status is S.PENDING and settlement.next_attempt_at is not None:
            report.add_wakeup(settlement.claimed, at=settlement.next_attempt_at)
    _wake_next_steps([s.claimed for s in settlements if s.status is S.FAILED], now, report)


def hold_or_end(not_sent: Sequence[NotSent], now: datetime, report: BatchReport) -> None:
    """Defer deliveries that can't be sent now, and end those that never can."""
    # A delivery that ends here counts as sent if an earlier attempt reached one of its devices.
    not_sent = [
        replace(unsent, status=S.SENT)
        if unsent.status is not S.PENDING and unsent.claimed.accepted_targets
        else unsent
        for unsent in not_sent
    ]
    leases.settle_not_sent(not_sent, now=now)
    _give_back_uses(
        (unsent.claimed, unsent.next_attempt_at)
        for unsent in not_sent
        if unsent.status is not S.SENT
    )
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.DEFERRED)
    for unsent in not_sent:
        report.counts[unsent.status.value] += 1
        if unsent.next_attempt_at is not None:
            report.add_wakeup(unsent.claimed, at=unsent.next_attempt_at, with_others=True)
            if unsent.blocked_accounts:
                report.account_waits.append((unsent.next_attempt_at, unsent.blocked_accounts))
    # A delivery may end as expired before its expiry: the next step still has that time.
    ended = [unsent.claimed for unsent in not_sent if unsent.status in ENDED_UNREACHED]
    _wake_next_steps(ended, now, report)
    feedback.record_not_sent(not_sent, now=now)


def put_back(claims: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    """Give up claims that were not started, so that any worker can take them at once."""
    leases.release(claims, now=now)
    _give_back_uses((claimed, now) for claimed in claims)
    crash_points.reach(Boundary.RELEASED)
    _requeue(claims, now, report)


def _requeue(claims: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    for claimed in claims:
        report.counts[S.PENDING.value] += 1
        report.add_wakeup(claimed, at=now)


def _give_back_uses(unsent: Iterable[tuple[ClaimedDelivery, datetime | None]]) -> None:
    """Give back what deliveries have reserved; with each, its next attempt if it has one."""
    counted = [
        (claimed, next_at)
        for claimed, next_at in unsent
        if claimed.limit_uses or claimed.unit_use is not None
    ]
    if counted:
        limits.give_back_uses(counted)
        daily_units.give_back_units([claimed for claimed, _ in counted])


def _wake_next_steps(ended: Sequence[ClaimedDelivery], now: datetime, report: BatchReport) -> None:
    waiting = [claimed for claimed in ended if claimed.later_channels]
    steps.open_next_steps(ids=[claimed.notification_id for claimed in waiting], now=now)
    report.wakeups += [
        Wakeup(claimed.notification_id, channel, claimed.priority, now)
        for claimed in waiting
        for channel in claimed.later_channels
    ]
