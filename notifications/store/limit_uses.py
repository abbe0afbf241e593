"""Counters of limits: one document for each limit and recipient, with the times of its uses.

A delivery reserves a use right before it is sent. The use stays if a provider has or may have
accepted the message; otherwise it is given back. A worker that is lost in between leaves the use,
which the delivery's next claim takes over. A retry moves the use to its own time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from pymongo import UpdateOne

from domain.limits import MAX_PERIOD, MAX_USES, MAX_WAITING, Limit, Overflow, Stricter

from .collections import limit_uses, retry_transient
from .documents import Document, LimitUse
from .pipelines import MILLISECOND

WAITING_GRACE = timedelta(minutes=5)
"""A delivery that isn't claimed for this long after its time loses its place in the line."""
Expression = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class UseRequest:
    """A delivery that asks to be sent now, under one limit."""

    limit: Limit
    person: str
    user_id: str | None
    delivery_id: str
    is_exempt: bool = False
    """It counts, and is sent beyond the limit."""
    may_have_arrived: bool = False
    """An earlier attempt may have been accepted: its use stays if the limit refuses a retry."""

    @property
    def counter_id(self) -> str:
        """The ID of the counter."""
        return counter_id(self.limit.name, self.person)


@dataclass(frozen=True, slots=True, kw_only=True)
class UseResult:
    """The answer to a request for a use, with the state of its counter."""

    request: UseRequest
    use: LimitUse | None
    """The use, None if the limit refuses it."""
    uses: tuple[datetime, ...]
    position: int | None
    """Deliveries that wait before it. None: it doesn't wait."""
    limit: Limit
    """The limit as it is for this recipient."""


def counter_id(limit_name: str, person: str) -> str:
    """Return the ID of a limit's counter for a person."""
    return f"{limit_name}/{person}"


def reserve_uses(requests: Sequence[UseRequest], *, now: datetime) -> list[UseResult]:
    """Reserve a use for each request, in order. Idempotent. Raises PyMongoError."""
    operations = [
        UpdateOne({"_id": one.counter_id}, _reservation(one, now), upsert=True) for one in requests
    ]
    # Ordered, so that deliveries of one batch to one recipient stand in line as requested.
    retry_transient(limit_uses().bulk_write, operations, ordered=True)
    ids = {one.counter_id for one in requests}
    found = {one["_id"]: one for one in limit_uses().find({"_id": {"$in": sorted(ids)}})}
    return [_result(one, found.get(one.counter_id, {}), now) for one in requests]


def _result(request: UseRequest, counter: Document, now: datetime) -> UseResult:
    uses, waiting = counter.get("uses", ()), [one["d"] for one in counter.get("waiting", ())]
    is_granted = any(one["d"] == request.delivery_id and one["at"] == now for one in uses)
    waits = not is_granted and request.delivery_id in waiting
    return UseResult(
        request=request,
        use=LimitUse(request.counter_id, request.delivery_id, now) if is_granted else None,
        uses=tuple(one["at"] for one in uses if is_granted or one["d"] != request.delivery_id),
        position=waiting.index(request.delivery_id) if waits else None,
        limit=stricter_of(counter).applied_to(request.limit),
    )


def record_waits(waits: Iterable[tuple[UseRequest, datetime]]) -> None:
    """Record until when deliveries wait, so that they keep their places until then."""
    operations = [
        UpdateOne(
            {"_id": one.counter_id, "waiting.d": one.delivery_id},
            {"$set": {"waiting.$.until": until}},
        )
        for one, until in waits
    ]
    if operations:
        limit_uses().bulk_write(operations, ordered=False)


def give_back(uses: Sequence[LimitUse]) -> None:
    """Give back uses of deliveries that were certainly not sent. Raises PyMongoError."""
    operations = [
        UpdateOne(
            {"_id": one.counter_id}, {"$pull": {"uses": {"d": one.delivery_id, "at": one.at}}}
        )
        for one in uses
    ]
    if operations:
        limit_uses().bulk_write(operations, ordered=False)


def leave_lines(requests: Sequence[UseRequest]) -> None:
    """Remove deliveries that don't wait any longer from the lines of their counters."""
    operations = [
        UpdateOne({"_id": one.counter_id}, {"$pull": {"waiting": {"d": one.delivery_id}}})
        for one in requests
    ]
    if operations:
        limit_uses().bulk_write(operations, ordered=False)


def read_counters(wanted: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Document]:
    """Return the counters of limits and persons that have one. Raises PyMongoError."""
    ids = {counter_id(name, person): (name, person) for name, person in wanted}
    return {ids[one["_id"]]: one for one in limit_uses().find({"_id": {"$in": list(ids)}})}


def stricter_of(counter: Document) -> Stricter:
    """Return a recipient's own maximum and gap in a counter."""
    own = counter.get("own") or {}
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


def _reservation(request: UseRequest, now: datetime) -> list[dict[str, Any]]:
    """Return the pipeline that counts one delivery, or puts it in the line if it must wait."""
    limit, own = request.limit, {"$literal": request.delivery_id}
    since = now - limit.period
    is_recent, is_other = {"$gt": ["$$one.at", since]}, {"$ne": ["$$one.d", own]}
    uses: Expression = {"$ifNull": ["$uses", []]}
    is_current = {"$gt": ["$$one.until", now - WAITING_GRACE]}
    line: Expression = {"$ifNull": ["$waiting", []]}
    position = {"$indexOfArray": ["$waiting.d", own]}
    before = {"$cond": [{"$lt": ["$__place", 0]}, {"$size": "$waiting"}, "$__place"]}
    maximum = {"$min": [limit.maximum, "$own.max"]}
    has_capacity = {"$lt": [{"$add": [{"$size": "$__others"}, before]}, maximum]}
    # $max and $min leave missing values out. Null sorts before all times.
    gap = {"$max": [limit.min_gap // MILLISECOND, {"$multiply": ["$own.min_gap_seconds", 1000]}]}
    is_first = {"$eq": [before, 0]}
    is_past_gap = {"$lte": [{"$add": [{"$max": "$__others.at"}, gap]}, now]}
    conditions = [has_capacity, {"$or": [{"$eq": [gap, 0]}, {"$and": [is_first, is_past_gap]}]}]
    granted: Expression = {"$literal": True} if request.is_exempt else {"$and": conditions}
    may_wait: Expression = {"$literal": False}
    if limit.overflow is not Overflow.DROP:
        has_place = {"$lt": [{"$size": "$waiting"}, MAX_WAITING]}
        may_wait = {"$and": [{"$lt": ["$__place", 0]}, has_place]}
    use = {"d": own, "at": now}
    with_use = {"$slice": [{"$concatArrays": ["$__others", [use]]}, -MAX_USES]}
    kept = "$uses" if request.may_have_arrived else "$__others"
    place = {"d": own, "until": now}
    extended = {"$cond": [may_wait, {"$concatArrays": ["$waiting", [place]]}, "$waiting"]}
    purge_at = {"$max": ["$purge_at", now + limit.period + WAITING_GRACE]}
    return [
        {
            "$set": {
                "limit": limit.name,
                "user_id": {"$literal": request.user_id} if request.user_id else "$$REMOVE",
                "uses": _filtered(uses, is_recent),
                "__others": _filtered(uses, {"$and": [is_recent, is_other]}),
                "waiting": _filtered(line, is_current),
            }
        },
        {"$set": {"__place": position}},
        {"$set": {"__granted": granted}},
        {
            "$set": {
                "uses": {"$cond": ["$__granted", with_use, kept]},
                "waiting": {
                    "$cond": [
                        "$__granted",
                        _filtered("$waiting", {"$ne": ["$$one.d", own]}),
                        extended,
                    ]
                },
                "purge_at": {"$cond": [{"$gt": ["$own", None]}, "$$REMOVE", purge_at]},
            }
        },
        {"$unset": ["__place", "__granted", "__others"]},
    ]


def _filtered(array: Expression, condition: Expression) -> Expression:
    return {"$filter": {"input": array, "as": "one", "cond": condition}}
