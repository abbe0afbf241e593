"""Counters of limits: one document for each limit and recipient, with the times of its uses.

A delivery reserves a use of each of its limits right before it is sent. The uses stay if a provider
has or may have accepted the message; otherwise they are given back. A worker that is lost in
between leaves the uses, which the delivery's next claim takes over. A retry moves the use to its
own time. A delivery that one limit refuses has a place in the lines of all its limits.

Decisions are pure, in ``domain/limits.py``. They are written by compare-and-set on what was read.
"""

import random
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.errors import BulkWriteError

from domain.channels import Channel
from domain.errors import FailureCode
from domain.limits import (
    MAX_PERIOD,
    MAX_USES,
    Counter,
    Limit,
    LineEntry,
    Overflow,
    Plan,
    Stricter,
    describe_plan,
    plan,
)
from domain.states import DeliveryStatus, Priority
from notifications.documents.policies import CountedUse, LimitPlace, LimitUsesDocument, OwnLimit
from notifyproject.db.collections import is_duplicate

from .claims import LimitUse
from .collections import limit_uses, notifications, retry_transient
from .pipelines import transition

TRIES_TOGETHER, TRIES_APART = 20, 80
"""Decisions about all counters of a batch at once, and then about those of one delivery after the
other, while other workers change them. A delivery whose counters still change waits."""
MAX_PLACES = 100
"""Deliveries in a line, with those that only keep their place, such as in an outage."""
PAUSE_SECONDS = 0.002
UNCOUNTED = (FailureCode.CHANNEL_UNAVAILABLE, FailureCode.OVER_DAILY_UNITS)
"""Codes of deliveries that wait for something else, and leave their slot to those after them."""
KEPT_AFTER = timedelta(minutes=5)
"""A counter without its own settings is kept this long after its period."""
S = DeliveryStatus
_random = random.SystemRandom()


class RefusalKind(StrEnum):
    """What happens to a delivery that a limit refuses."""

    WAITS = "waits"
    DIGEST = "digest"  # It goes into its type's digest
    DROPPED = "dropped"
    LINE_FULL = "line_full"
    EXPIRES = "expires"  # Before its limits allow it


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRequest:
    """A delivery that asks to be sent now, under all limits that apply to it."""

    limits: Sequence[Limit]
    person: str
    user_id: str | None
    delivery_id: str
    due_at: datetime
    """When it was first due. Deliveries are served in this order."""
    expires_at: datetime | None = None
    is_exempt: bool = False
    """It counts, and is sent beyond the limits."""
    may_have_arrived: bool = False
    """An earlier attempt may have been accepted: its use stays if a limit refuses a retry."""
    has_digest: bool = False
    """Its type has a digest that it may join."""

    @property
    def counter_ids(self) -> tuple[str, ...]:
        """The IDs of its counters, in the order of the limits."""
        return tuple(counter_id(limit.name, self.person) for limit in self.limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why limits refuse a delivery, and until when."""

    kind: RefusalKind
    until: datetime
    """When all limits allow it, by plan."""
    reason: str
    """The limit that decides, and how much of it is used."""


@dataclass(frozen=True, slots=True)
class MovedUp:
    """A waiting delivery that is due at once, since one before it in the line ended unsent."""

    notification_id: ObjectId
    channel: Channel
    priority: Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Decisions about deliveries, by their keys, and the deliveries that have moved up."""

    decisions: dict[str, tuple[LimitUse, ...] | Refusal]
    moved_up: list[MovedUp]


def counter_id(limit_name: str, person: str) -> str:
    """Return the ID of a limit's counter for a person."""
    return f"{limit_name}/{person}"


def delivery_key(notification_id: ObjectId, channel: str) -> str:
    """Return the name of a delivery in counters."""
    return f"{notification_id}.{channel}"


def reserve_uses(requests: Sequence[UseRequest], *, now: datetime) -> Reservation:
    """Reserve a use of each limit for each request, or refuse it.

    A delivery is left out if other workers change its counters all the time. The caller wakes a
    worker for those that have moved up. Idempotent. Raises PyMongoError.
    """
    ordered = sorted(requests, key=lambda request: (request.due_at, request.delivery_id))
    reserved, _ = _reserve_together(ordered, tries=TRIES_TOGETHER, now=now)
    if reserved is not None:
        return reserved
    # A contested counter is no reason for the deliveries of others to wait.
    found = Reservation(decisions={}, moved_up=[])
    contested: set[str] = set()
    left = TRIES_APART
    for request in ordered:
        if contested.isdisjoint(request.counter_ids):
            reserved, tries = _reserve_together([request], tries=max(left, 1), now=now)
            left -= tries
            if reserved is None:
                contested |= {*request.counter_ids}
                continue
            found.decisions.update(reserved.decisions)
            found.moved_up.extend(reserved.moved_up)
    return found


def _reserve_together(
    ordered: Sequence[UseRequest], *, tries: int, now: datetime
) -> tuple[Reservation | None, int]:
    """Decide about requests at once. Return the result, or None, and how many tries failed."""
    ids = sorted({counter_id for request in ordered for counter_id in request.counter_ids})
    for failed in range(tries):
        if failed:
            time.sleep(_random.uniform(0, PAUSE_SECONDS * min(failed, 20)))
        found = {document["_id"]: document for document in limit_uses().find({"_id": {"$in": ids}})}
        counters = _read(ordered, found)
        early = _refresh_lines(counters, now)
        decisions = {request.delivery_id: _decide(request, counters, now) for request in ordered}
        if _write(ordered, counters, found, now):
            _make_due(early.values(), now)
            return Reservation(decisions=decisions, moved_up=list(early.values())), failed
    return None, tries


def _read(
    requests: Sequence[UseRequest], found: Mapping[str, LimitUsesDocument]
) -> dict[str, Counter]:
    counters: dict[str, Counter] = {}
    for request in requests:
        for name, limit in zip(request.counter_ids, request.limits, strict=True):
            document = found.get(name)
            if document is None:
                counters[name] = Counter(limit=limit, uses=[], line=[])
                continue
            counters[name] = Counter(
                limit=stricter_of(document).applied_to(limit),
                uses=[(use["d"], use["at"]) for use in document.get("uses") or ()],
                line=sorted(
                    map(_entry, document.get("waiting") or ()), key=lambda entry: entry.order
                ),
            )
    return counters


def _entry(stored: LimitPlace) -> LineEntry:
    return LineEntry(
        delivery_id=stored["d"],
        due_at=stored["due"],
        until=stored["until"],
        is_refused=stored.get("refused", True),
    )


def _refresh_lines(counters: dict[str, Counter], now: datetime) -> dict[str, MovedUp]:
    """Give those in the lines their actual times, and remove those that no longer wait.

    Return those that may be sent earlier than planned, since one before them ended unsent.
    """
    waiting = {place.delivery_id for counter in counters.values() for place in counter.line}
    if not waiting:
        return {}
    ids = {ObjectId(delivery_id.partition(".")[0]) for delivery_id in waiting}
    names = ("channel", "status", "next_attempt_at", "failure_code")
    documents = notifications().find(
        {"_id": {"$in": sorted(ids)}}, {"priority": 1, **{f"delivery.{name}": 1 for name in names}}
    )
    actual = {
        delivery_key(document["_id"], delivery["channel"]): (document, delivery)
        for document in documents
        for delivery in document["delivery"]
    }
    early: dict[str, MovedUp] = {}
    for key, counter in counters.items():
        line: list[LineEntry] = []
        has_gap = False
        for entry in counter.line:
            document, delivery = actual.get(entry.delivery_id, (None, None))
            if document is None or delivery is None or delivery["status"] != S.PENDING:
                is_unused = entry.delivery_id not in {use for use, _ in counter.uses}
                has_gap = has_gap or (is_unused and entry.until > now)
                continue
            code, until = delivery.get("failure_code"), delivery.get("next_attempt_at") or now
            if has_gap and code == FailureCode.OVER_LIMIT and until > now:
                early[entry.delivery_id] = MovedUp(
                    document["_id"], Channel(delivery["channel"]), Priority(document["priority"])
                )
                until = now
            is_counted = code not in UNCOUNTED
            line.append(replace(entry, until=until, is_counted=is_counted))
        counters[key] = replace(counter, line=line)
    return early


def _decide(
    request: UseRequest, counters: dict[str, Counter], now: datetime
) -> tuple[LimitUse, ...] | Refusal:
    """Decide about one delivery, and change its counters accordingly."""
    own, key = [counters[name] for name in request.counter_ids], request.delivery_id
    places = [place.due_at for counter in own for place in counter.line if place.delivery_id == key]
    due_at = min(places, default=request.due_at)
    planned = plan(own, delivery_id=key, due_at=due_at, now=now)
    refusal = None
    if planned.refusing and not request.is_exempt:
        reason = describe_plan(planned, delivery_id=key, due_at=due_at, now=now)
        kind = _kind_of(request, planned)
        refusal = Refusal(kind=kind, until=planned.at, reason=reason)
    keeps_use = refusal is None or request.may_have_arrived
    for name, counter in zip(request.counter_ids, own, strict=True):
        uses = [(use, at) for use, at in counter.uses if at > now - counter.limit.period]
        if refusal is None or not keeps_use:
            uses = [(use, at) for use, at in uses if use != key]
        if refusal is None:
            uses.append((key, now))
        line = [entry for entry in counter.line if entry.delivery_id != key]
        if refusal is not None and refusal.kind is RefusalKind.WAITS:
            is_refused = any(counter is refusing for refusing in planned.refusing)
            line.append(
                LineEntry(delivery_id=key, due_at=due_at, until=planned.at, is_refused=is_refused)
            )
        line.sort(key=lambda entry: entry.order)
        counters[name] = replace(counter, uses=uses[-MAX_USES:], line=line)
    if refusal is not None:
        return refusal
    return tuple(LimitUse(name, key, now) for name in request.counter_ids)


def _kind_of(request: UseRequest, planned: Plan) -> RefusalKind:
    is_full = planned.is_line_full(request.delivery_id)
    if request.has_digest and (
        is_full or any(refusal.limit.overflow is Overflow.DIGEST for refusal in planned.refusing)
    ):
        return RefusalKind.DIGEST
    if planned.is_dropped:
        return RefusalKind.DROPPED
    if is_full:
        return RefusalKind.LINE_FULL
    if request.expires_at is not None and planned.at >= request.expires_at:
        return RefusalKind.EXPIRES
    return RefusalKind.WAITS


def _write(
    requests: Sequence[UseRequest],
    counters: Mapping[str, Counter],
    found: Mapping[str, LimitUsesDocument],
    now: datetime,
) -> bool:
    """Write the counters that changed. Return False if any was changed since it was read."""
    users = {name: request.user_id for request in requests for name in request.counter_ids}
    operations = []
    for name, counter in counters.items():
        was = found.get(name)
        read_uses, read_line = (
            (None, None) if was is None else (was.get("uses"), was.get("waiting"))
        )
        uses: list[CountedUse] = [{"d": use, "at": at} for use, at in counter.uses]
        line = [_stored(entry) for entry in counter.line]
        if (read_uses, read_line) == (uses, line):
            continue
        read = {"_id": name, "uses": read_uses, "waiting": read_line}
        user_id = users[name]
        purge_at = {"$max": ["$purge_at", now + counter.limit.period + KEPT_AFTER]}
        change = {
            "limit": counter.limit.name,
            "user_id": {"$literal": user_id} if user_id else "$$REMOVE",
            "uses": {"$literal": uses},
            "waiting": {"$literal": line},
            "purge_at": {"$cond": [{"$gt": ["$own", None]}, "$$REMOVE", purge_at]},
        }
        operations.append(UpdateOne(read, [{"$set": change}], upsert=True))
    if not operations:
        return True
    try:
        result = retry_transient(limit_uses().bulk_write, operations, ordered=False)
    except BulkWriteError as error:
        # The counter has changed: the upsert tries to add it once more.
        if not is_duplicate(error):
            raise
        return False
    return result.matched_count + result.upserted_count == len(operations)


def _stored(entry: LineEntry) -> LimitPlace:
    stored: LimitPlace = {"d": entry.delivery_id, "until": entry.until, "due": entry.due_at}
    if not entry.is_refused:
        stored["refused"] = False
    return stored


def _make_due(moved_up: Iterable[MovedUp], now: datetime) -> None:
    """Let waiting deliveries be claimed again."""
    for moved in moved_up:
        conditions = {
            "$and": [
                {"$eq": ["$$d.channel", moved.channel.value]},
                {"$eq": ["$$d.status", S.PENDING.value]},
                {"$eq": ["$$d.failure_code", FailureCode.OVER_LIMIT.value]},
            ]
        }
        notifications().update_one(
            {"_id": moved.notification_id},
            transition(condition=conditions, changes={"next_attempt_at": now}, now=now),
        )


def give_back(uses: Sequence[tuple[LimitUse, datetime, datetime | None]]) -> None:
    """Give back uses of deliveries that were certainly not sent. Raises PyMongoError.

    Each comes with the time at which the delivery was first due, and that of its next attempt, if
    it has one: until then it keeps its place in the line.
    """
    operations = []
    for use, due_at, until in uses:
        own = {"$literal": use.delivery_id}
        is_own = {"$and": [{"$eq": ["$$one.d", own]}, {"$eq": ["$$one.at", use.at]}]}
        is_other = {"$ne": ["$$one.d", own]}
        line: Any = _filtered({"$ifNull": ["$waiting", []]}, is_other)
        if until is not None:
            entry = LineEntry(
                delivery_id=use.delivery_id, due_at=due_at, until=until, is_refused=False
            )
            line = {"$concatArrays": [{"$slice": [line, MAX_PLACES - 1]}, [_literal(entry)]]}
        change = {
            "uses": _filtered({"$ifNull": ["$uses", []]}, {"$not": is_own}),
            "waiting": line,
        }
        wanted = {"_id": use.counter_id, "uses": {"$elemMatch": {"d": use.delivery_id}}}
        operations.append(UpdateOne(wanted, [{"$set": change}]))
    if operations:
        limit_uses().bulk_write(operations, ordered=False)


def read_counters(wanted: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], LimitUsesDocument]:
    """Return the counters of limits and persons that have one. Raises PyMongoError."""
    ids = {counter_id(name, person): (name, person) for name, person in wanted}
    return {
        ids[document["_id"]]: document
        for document in limit_uses().find({"_id": {"$in": list(ids)}})
    }


def stricter_of(counter: LimitUsesDocument) -> Stricter:
    """Return a recipient's own maximum and gap in a counter."""
    own: OwnLimit = counter.get("own") or {}
    gap = timedelta(seconds=own.get("min_gap_seconds", 0))
    return Stricter(maximum=own.get("max"), min_gap=gap)


def set_stricter(
    limit_name: str, *, person: str, user_id: str, own: Mapping[str, int] | None, now: datetime
) -> bool:
    """Set a recipient's stricter ``max`` and ``min_gap_seconds`` of a limit.

    None for ``own`` removes them. Return whether anything changed. Raises PyMongoError.
    """
    wanted = {"_id": counter_id(limit_name, person)}
    if own is None:
        # The uses still count. Without a time, MongoDB would never remove the counter.
        change = {"$unset": {"own": ""}, "$set": {"purge_at": now + MAX_PERIOD}}
        return (
            limit_uses().update_one({**wanted, "own": {"$exists": True}}, change).matched_count > 0
        )
    result = limit_uses().update_one(
        wanted,
        {
            "$set": {"limit": limit_name, "user_id": user_id, "own": dict(own)},
            "$setOnInsert": {"uses": [], "waiting": []},
            "$unset": {"purge_at": ""},
        },
        upsert=True,
    )
    return bool(result.modified_count or result.upserted_id)


def erase_counters(*, user_id: str) -> int:
    """Remove all counters of a recipient. Return how many. Raises PyMongoError."""
    return limit_uses().delete_many({"user_id": user_id}).deleted_count


def _literal(entry: LineEntry) -> dict[str, Any]:
    return {"$literal": _stored(entry)}


def _filtered(array: Any, condition: Any) -> dict[str, Any]:
    return {"$filter": {"input": array, "as": "one", "cond": condition}}
