"""Which minutes' figures a change belongs to, and the events that changes tell of."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings

from notifyproject.db.collections import collection

from .counting import minute_of

INDEX = "ntf_updated"
HAPPENINGS = ("sent", "delivered", "read", "failed")
"""Each is an event ``delivery.<it>``, at the delivery's ``<it>_at``."""
Stages = list[dict[str, Any]]


def minutes(since: datetime, until: datetime) -> set[datetime]:
    """Return the minutes whose figures changed, by the changes of a time.

    A notification belongs to the minute in which it was accepted and to those of its attempts.
    """
    spans = {
        "$setUnion": [
            [minute_of("$created_at")],
            {"$map": {"input": "$delivery.last_attempt_at", "as": "at", "in": minute_of("$$at")}},
        ]
    }
    found = collection("notifications").aggregate(
        [
            *_changed(since, until),
            {"$project": {"minute": spans}},
            {"$unwind": "$minute"},
            {"$group": {"_id": "$minute"}},
        ],
        hint=INDEX,
    )
    return {row["_id"] for row in [*found, *_of_earlier_attempts(since, until)] if row["_id"]}


def _of_earlier_attempts(since: datetime, until: datetime) -> Iterable[dict[str, Any]]:
    """Return the minutes of all attempts of what was tried more than once.

    What was the last attempt may be so no more.
    """
    return collection("notifications").aggregate(
        [
            *_changed(since, until, narrowed={"delivery.attempt_count": {"$gt": 1}}),
            {"$project": {"_id": 1}},
            {
                "$lookup": {
                    "from": "delivery_attempts",
                    "localField": "_id",
                    "foreignField": "notification_id",
                    "as": "attempt",
                    "pipeline": [{"$project": {"attempted_at": 1}}],
                }
            },
            {"$unwind": "$attempt"},
            {"$group": {"_id": minute_of("$attempt.attempted_at")}},
        ],
        hint=INDEX,
    )


def write_events(since: datetime, until: datetime, *, now: datetime) -> None:
    """Write what the changes of a time tell into ``analytics_events``, in one command.

    The server reads and writes; nothing of it comes here. What was written before stays as it was.
    """
    days = settings.ANALYTICS_EVENTS_DAYS
    if not days:
        return
    kept = timedelta(days=days)
    events = [_event(name) for name in HAPPENINGS]
    collection("notifications").aggregate(
        [
            *_changed(since, until),
            {"$project": {"user_id": 1, "type": 1, "delivery": 1}},
            {"$unwind": "$delivery"},
            {"$project": {"event": events, "user_id": 1, "type": 1, "delivery": 1}},
            {"$unwind": "$event"},
            {"$match": {"event.at": {"$gt": now - kept}}},
            {"$replaceWith": _as_stored(kept)},
            {
                "$merge": {
                    "into": "analytics_events",
                    "on": "_id",
                    "whenMatched": "keepExisting",
                    "whenNotMatched": "insert",
                }
            },
        ],
        hint=INDEX,
    )


def _changed(since: datetime, until: datetime, *, narrowed: dict[str, Any] | None = None) -> Stages:
    """Return the stage that finds what was changed, without tests."""
    changed = {"updated_at": {"$gte": since, "$lt": until}, "is_test": {"$ne": True}}
    return [{"$match": changed | (narrowed or {})}]


def _event(name: str) -> dict[str, Any]:
    return {"name": name, "at": f"$delivery.{name}_at"}


def _as_stored(kept: timedelta) -> dict[str, Any]:
    milliseconds = kept // timedelta(milliseconds=1)
    is_failure = {"$eq": ["$event.name", "failed"]}
    return {
        "_id": {
            "$concat": [{"$toString": "$_id"}, ".", "$delivery.channel", ".", "$event.name"],
        },
        "event_type": {"$concat": ["delivery.", "$event.name"]},
        "entity_id": {"$toString": "$_id"},
        "user_id": {"$ifNull": ["$user_id", "$$REMOVE"]},
        "data": {
            "channel": "$delivery.channel",
            "type": "$type",
            "provider": {"$ifNull": ["$delivery.provider", "$$REMOVE"]},
            "code": {
                "$cond": [
                    is_failure,
                    {"$ifNull": ["$delivery.failure_code", "$$REMOVE"]},
                    "$$REMOVE",
                ]
            },
        },
        "created_at": "$event.at",
        "purge_at": {"$add": ["$event.at", milliseconds]},
    }
