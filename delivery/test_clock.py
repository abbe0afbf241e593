"""Moves the clock of a test client: what is due by it happens in order, at once.

The clock stands at one instant after the other at which something is due. What is done there has
the clock's time, as a worker's has real time. Ordinary workers and sweepers leave it alone: it is
due later than now. One process at a time moves a clock, by a lease in real time. The leases of
deliveries are in the time of whoever takes them, so that those of a lost process end by the clock.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import structlog
from bson import ObjectId

from domain.channels import Channel
from domain.plans import FIRST_STEP
from domain.states import OPEN, DeliveryStatus, Priority
from domain.time import Clock, InvalidTimeError, resolve_send_at, utc_now
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.documents.records import TestClockDocument
from notifications.inbox import actions as inbox_actions
from notifications.queueing.wakeups import WAKEUP_SIZE
from notifications.store import digests as stored_digests
from notifications.store import test_clocks
from notifyproject.db.leases import Claim
from notifyproject.platform import process

from . import digests, pipeline, sweeper
from .rate_limiter import Grant, RateLimiter
from .runtime import SendingRuntime

log = structlog.get_logger(__name__)
S = DeliveryStatus
BUDGET_SECONDS = 11.0
"""Longest move of one call, so that a request is answered in time."""
LEASE_WAIT_SECONDS = 8.0
"""Longest part of it that is spent waiting for another process that moves the same clock."""
RENEWAL_SECONDS = 20.0
"""Time after which the lease is renewed within an instant."""
RECEIPT_SECONDS = 3.0
"""Longest wait for receipts after a send, before a later step of a plan begins or an unknown
outcome is decided. The sandbox's come within half a second."""
POLL_SECONDS = 0.05
STILL_SECONDS = 10.0
"""How long the clock stands still while work is done. Then it goes on as real time does, so that
the leases of a process that was stopped end before it sends."""
RETRY_DELAY = timedelta(seconds=1)
MAX_HAPPENED = 1_000
MAX_DUE = 500
"""Notifications that are read at a time."""
MAX_TRIES = 3
"""Times that a delivery is tried at one instant without any change."""


class Happened(StrEnum):
    """What happened by a clock: a state that a delivery has now, or something else."""

    SENT = S.SENT.value
    DELIVERED = S.DELIVERED.value
    READ = S.READ.value
    FAILED = S.FAILED.value
    UNKNOWN = S.UNKNOWN.value
    SUPPRESSED = S.SUPPRESSED.value
    EXPIRED = S.EXPIRED.value
    CANCELLED = S.CANCELLED.value
    MERGED = S.MERGED.value
    WAITS = "waits"
    RESURFACED = "resurfaced"
    DIGEST_CLOSED = "digest_closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened while a clock was moved."""

    at: datetime
    event: Happened
    notification_id: ObjectId | None = None
    type: str
    user_id: str | None = None
    channel: str | None = None
    failure_code: str | None = None
    next_attempt_at: datetime | None = None
    digest_id: ObjectId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Where a clock stands, and what happened on its way."""

    now: datetime
    target: datetime | None
    """The time that it hasn't reached yet."""
    happened: Sequence[Event]


class ClockMovingError(Exception):
    """Another process moves the same clock."""


def move(
    client_id: ObjectId,
    *,
    by: timedelta | None = None,
    to: datetime | None = None,
    real: Clock = utc_now,
) -> Moved:
    """Move a test client's clock by a duration, or to a time, as far as it gets in BUDGET_SECONDS.

    What an earlier call has left undone is done first. Raises InvalidTimeError for a time that
    lies before the clock's or too far ahead, ClockMovingError, and PyMongoError.
    """
    begun = time.monotonic()
    claim = _acquire(client_id, real)
    now = max(claim.document["stands_at"], real())
    earlier = max(claim.document.get("target", now), now)
    try:
        wanted = earlier + by if by is not None else resolve_send_at(requested=to, now=now)
        resolve_send_at(requested=wanted, now=real())
    except InvalidTimeError:
        claim.give_back()
        raise
    return _run(claim, now=now, until=max(wanted, earlier), real=real, begun=begun)


def catch_up(client_id: ObjectId, *, real: Clock = utc_now) -> bool:
    """Do what is due by a client's clock, up to the time to which it is moved.

    Return False if another process moves it, or something is left. Raises PyMongoError.
    """
    found = test_clocks.find(client_id)
    if found is None:
        return True
    claim = test_clocks.acquire(client_id, worker=process.worker_name(), now=real(), is_new=False)
    if claim is None:
        return test_clocks.find(client_id) is None
    now = max(claim.document["stands_at"], real())
    until = max(claim.document.get("target", now), now)
    begun = time.monotonic()
    return _run(claim, now=now, until=until, real=real, begun=begun).target is None


def _acquire(client_id: ObjectId, real: Clock) -> Claim[TestClockDocument]:
    ends_at = time.monotonic() + LEASE_WAIT_SECONDS
    worker = process.worker_name()
    while True:
        claim = test_clocks.acquire(client_id, worker=worker, now=real(), is_new=True)
        if claim is not None:
            return claim
        if time.monotonic() >= ends_at:
            raise ClockMovingError
        time.sleep(POLL_SECONDS)


def _run(
    claim: Claim[TestClockDocument],
    *,
    now: datetime,
    until: datetime,
    real: Clock,
    begun: float,
) -> Moved:
    ends_at = begun + BUDGET_SECONDS
    mover = _Mover(claim=claim, now=now, until=until, real=real, ends_at=ends_at)
    is_there = False
    try:
        is_there = mover.run()
    finally:
        mover.release()
        log.info("test_clock_moved", client_id=str(claim.id), events=len(mover.happened))
    target = None if is_there else until
    return Moved(now=max(mover.now, real()), target=target, happened=mover.happened)


class _Unlimited(RateLimiter):
    """Grants everything: rates are in real time, and the sandbox takes what it gets."""

    def take(self, account: str, count: int, **_: object) -> Grant:
        return Grant(count, timedelta(0))

    def throttle(self, account: str, **_: object) -> None:
        pass


class _LostError(Exception):
    """The clock was removed, or another process moves it."""


def _new_runtime() -> SendingRuntime:
    return SendingRuntime(rates=_Unlimited(), has_circuits=False)


@dataclass(slots=True, kw_only=True)
class _Mover:
    """One move of a clock."""

    claim: Claim[TestClockDocument]
    now: datetime
    """Where the clock stands."""
    until: datetime
    real: Clock
    ends_at: float
    """On the monotonic clock, as the others."""
    happened: list[Event] = field(default_factory=list)
    runtime: SendingRuntime = field(default_factory=_new_runtime)
    stands_since: float = field(default_factory=time.monotonic)
    renewed_at: float = field(default_factory=time.monotonic)
    sent_at: float = field(default_factory=time.monotonic)
    """When the last message may have been sent."""
    tries: Counter[tuple[object, ...]] = field(default_factory=Counter)
    """How often deliveries were tried, by all that a try changes."""

    @property
    def client_id(self) -> ObjectId:
        client_id: ObjectId = self.claim.id
        return client_id

    def clock(self) -> datetime:
        """Return the time of what is done now."""
        elapsed = time.monotonic() - self.stands_since
        return self.now if elapsed < STILL_SECONDS else self.now + timedelta(seconds=elapsed)

    def run(self) -> bool:
        """Move the clock. Return whether it is where it was to be moved."""
        try:
            while not self._is_over():
                instant, due = self._next()
                if test_clocks.is_worked_on(due, now=self.real()):
                    time.sleep(POLL_SECONDS)
                elif instant is None:
                    self._stand(max(self.until, self.now), target=None)
                    return True
                else:
                    self._stand(max(instant, self.clock()), target=self.until)
                    self._do_what_is_due(due)
        except _LostError:
            log.warning("test_clock_taken_over", client_id=str(self.client_id))
        return False

    def release(self) -> None:
        """Let others move the clock."""
        self.claim.release()

    def _is_over(self) -> bool:
        is_late = time.monotonic() >= self.ends_at
        return is_late or process.is_shutting_down() or len(self.happened) >= MAX_HAPPENED

    def _stand(self, at: datetime, *, target: datetime | None) -> None:
        """Move the clock to an instant, before anything happens at it."""
        self._renew(test_clocks.standing(at, target=target))
        self.now, self.stands_since = at, time.monotonic()

    def _next(self) -> tuple[datetime | None, Sequence[NotificationDocument]]:
        """Return when something happens next, and the notifications that are due until then."""
        # What a worker is sending is due when its lease ends.
        latest = max(self.until, self.real() + test_clocks.LONGEST_LEASE)
        due = test_clocks.due_notifications(self.client_id, until=latest, limit=MAX_DUE)
        digest = test_clocks.due_digests(self.client_id, until=self.until, limit=1)
        snoozed = test_clocks.due_snoozes(self.client_id, until=self.until, limit=1)
        instants = [
            *(at for document in due for _, at in self._open(document)),
            *(one["due_at"] for one in digest if "due_at" in one),
            *(one["snoozed_until"] for one in snoozed if "snoozed_until" in one),
        ]
        return min((at for at in instants if at <= self.until), default=None), due

    def _open(self, document: NotificationDocument) -> Iterator[tuple[DeliveryDocument, datetime]]:
        """Yield the open deliveries of a notification that may change, and when they are due."""
        for delivery in document["delivery"]:
            at = test_clocks.due_time(delivery)
            is_open = DeliveryStatus(delivery["status"]) in OPEN
            may_change = self.tries[_state(document, delivery)] < MAX_TRIES
            if is_open and may_change and at is not None and Channel(delivery["channel"]).is_known:
                yield delivery, at

    def _do_what_is_due(self, found: Sequence[NotificationDocument]) -> None:
        due = [
            (document, delivery)
            for document in found
            for delivery, at in self._open(document)
            if at <= self.now
        ]
        if self._have_receipts_come(due):
            return
        self._resurface()
        self.tries.update(_state(document, delivery) for document, delivery in due)
        statuses = {delivery["status"] for _, delivery in due}
        before = {document["_id"]: document for document, _ in due}
        if S.SENDING in statuses:
            sweeper.recover_expired_leases(now=self.now, client_id=self.client_id)
        if S.UNKNOWN in statuses:
            sweeper.resolve_unknown_outcomes(now=self.now, client_id=self.client_id)
        if statuses & {S.SENDING, S.UNKNOWN}:
            self._note(before)
        self._close_digests()
        self._send(due)

    def _send(self, due: Sequence[tuple[NotificationDocument, DeliveryDocument]]) -> None:
        """Send the pending deliveries, the most urgent first."""
        groups: dict[tuple[int, str], dict[ObjectId, NotificationDocument]] = {}
        order = list(Priority)
        for document, delivery in due:
            if delivery["status"] == S.PENDING:
                urgency = order.index(Priority(document["priority"]))
                group = groups.setdefault((urgency, delivery["channel"]), {})
                group[document["_id"]] = document
        for (_, channel), documents in sorted(groups.items(), key=lambda group: group[0]):
            for start in range(0, len(documents), WAKEUP_SIZE):
                if self._is_over():
                    return
                ids = list(documents)[start : start + WAKEUP_SIZE]
                before = test_clocks.read(ids)
                if time.monotonic() - self.renewed_at > RENEWAL_SECONDS:
                    self._renew({})
                pipeline.dispatch(self.runtime, ids, channel=Channel(channel), clock=self.clock)
                self.sent_at = time.monotonic()
                self._note(before)

    def _renew(self, change: Mapping[str, Any]) -> None:
        renewed = self.claim.renew(change, now=self.real())
        if renewed is None:
            raise _LostError
        self.claim, _ = renewed
        self.renewed_at = time.monotonic()

    def _resurface(self) -> None:
        while due := test_clocks.due_snoozes(self.client_id, until=self.now, limit=MAX_DUE):
            inbox_actions.resurface(due, now=self.now)
            self.happened += [_event_of(one, self.now, Happened.RESURFACED) for one in due]

    def _close_digests(self) -> None:
        due = test_clocks.due_digests(self.client_id, until=self.now, limit=MAX_DUE)
        if not due:
            return
        digests.close_due(clock=self.clock, client_id=self.client_id)
        closed = stored_digests.find_digests(one["_id"] for one in due)
        self.happened += [
            Event(
                at=self.now,
                event=Happened.DIGEST_CLOSED,
                notification_id=digest.get("carrier_id"),
                type=digest["type"],
                user_id=digest.get("user_id"),
                channel=digest["channel"],
                digest_id=digest["_id"],
            )
            for digest in closed.values()
            if "closed_at" in digest
        ]

    def _have_receipts_come(
        self, due: Sequence[tuple[NotificationDocument, DeliveryDocument]]
    ) -> bool:
        """Wait for the receipts that decide what happens next. Return whether any came."""
        awaited = [document for document, delivery in due if _awaits_receipt(document, delivery)]
        ends_at = min(self.sent_at + RECEIPT_SECONDS, self.ends_at)
        known = {one["_id"]: [d["status"] for d in one["delivery"]] for one in awaited}
        while awaited and time.monotonic() < ends_at:
            time.sleep(POLL_SECONDS)
            for document in test_clocks.read(list(known)).values():
                if [d["status"] for d in document["delivery"]] != known[document["_id"]]:
                    return True
        return False

    def _note(self, before: Mapping[ObjectId, NotificationDocument]) -> None:
        """Note what has happened to notifications."""
        for notification_id, document in test_clocks.read(list(before)).items():
            earlier = {one["channel"]: one for one in before[notification_id]["delivery"]}
            for delivery in document["delivery"]:
                event = self._change(earlier[delivery["channel"]], delivery)
                if event is not None:
                    self.happened.append(
                        replace(
                            _event_of(document, self.now, event),
                            channel=delivery["channel"],
                            failure_code=delivery.get("failure_code"),
                            next_attempt_at=delivery.get("next_attempt_at"),
                            digest_id=delivery.get("digest_id"),
                        )
                    )

    def _change(self, before: DeliveryDocument, after: DeliveryDocument) -> Happened | None:
        status = after["status"]
        if status != before["status"] and status not in (S.PENDING, S.SENDING):
            return Happened(status)
        at = after.get("next_attempt_at")
        is_later = at is not None and at > self.now and at != before.get("next_attempt_at")
        return Happened.WAITS if is_later else None


def _state(document: NotificationDocument, delivery: DeliveryDocument) -> tuple[object, ...]:
    names = ("channel", "status", "attempt_count", "claim_count", "next_attempt_at", "digest_id")
    return (document["_id"], *(delivery.get(name) for name in names))


def _awaits_receipt(document: NotificationDocument, delivery: DeliveryDocument) -> bool:
    """Return whether a receipt that is on its way may change what happens to a delivery."""
    if delivery["status"] == S.UNKNOWN:
        return True
    step = delivery.get("step") or FIRST_STEP
    return delivery["attempt_count"] == 0 and any(
        other["status"] == S.SENT and (other.get("step") or FIRST_STEP) < step
        for other in document["delivery"]
    )


def _event_of(document: NotificationDocument, at: datetime, event: Happened) -> Event:
    return Event(
        at=at,
        event=event,
        notification_id=document["_id"],
        type=document["type"],
        user_id=document.get("user_id"),
    )
