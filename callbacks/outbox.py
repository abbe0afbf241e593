"""Outbox: messages recorded once, claimed, settled, and replayed."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import BulkWriteError

from domain.queues import CALLBACKS
from notifyproject.db import paging
from notifyproject.db.collections import collection, is_duplicate, unclaimed
from notifyproject.db.paging import Cursor, Page
from notifyproject.platform import broker

from . import subscriptions
from .events import CallbackState, CallbackStatus, Event, EventType, encode_event
from .models import MAX_HISTORY
from .retry import Decision, TryOutcome

CALL_TASK = "notifications.call_back"


def send_wakeup(client_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Tell a worker to call an app back, now or at an instant less than a minute ahead.

    Returns whether the broker took it.
    """
    return broker.publish(CALL_TASK, args=[str(client_id)], queue=CALLBACKS, at=at, now=now)


Document = Mapping[str, Any]
MESSAGE_LEASE = timedelta(seconds=90)
"""Longer than the slowest round of tries."""
MESSAGE_RETENTION = timedelta(days=30)
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
DISABLED_REASON = "The callback was switched off."
REMOVED_REASON = "The callback was removed."
S = CallbackStatus


class StillPendingError(Exception):
    """A message that is to be sent again has not ended yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedMessage:
    """A message that this worker, and no other, may send until the lease ends."""

    id: str
    token: str
    body: bytes
    tries: int
    """Before the one that comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TryRecord:
    """What became of one request."""

    at: datetime
    duration_ms: int
    status_code: int | None = None
    error: str | None = None
    excerpt: str | None = None


def store_messages(events: Sequence[Event], *, now: datetime) -> list[ObjectId]:
    """Store what the apps want to be told of these events; return who has something new waiting.

    What was recorded before is left as it is. Of a callback that is switched off, a message has
    failed from the start: it can be sent again later. Raises PyMongoError.
    """
    callbacks = subscriptions.get_many(sorted({event.client_id for event in events}))
    documents = [
        _message_document(event, callbacks[event.client_id], now)
        for event in events
        if event.client_id in callbacks and _is_subscribed(event, callbacks[event.client_id])
    ]
    if documents:
        try:
            collection("callback_messages").insert_many(documents, ordered=False)
        except BulkWriteError as error:
            if not is_duplicate(error):
                raise
    return list({d["client_id"]: None for d in documents if d["status"] == S.PENDING})


def claim(*, client_id: ObjectId, limit: int, now: datetime) -> list[ClaimedMessage]:
    """Claim what is due of an app, the oldest first; of several callers one gets each."""
    token = secrets.token_hex(16)
    due = {
        "client_id": client_id,
        "next_try_at": {"$lte": now},
        **unclaimed(now=now),
    }
    found = collection("callback_messages").find(due, {"_id": 1}).hint("cbm_due")
    ids = [document["_id"] for document in found.sort("next_try_at", 1).limit(limit)]
    if not ids:
        return []
    lease = {"token": token, "lease_until": now + MESSAGE_LEASE}
    unclaimed_due = {"_id": {"$in": ids}, **due}
    collection("callback_messages").update_many(unclaimed_due, {"$set": {"claim": lease}})
    claimed = collection("callback_messages").find({"_id": {"$in": ids}, "claim.token": token})
    return [
        ClaimedMessage(id=d["_id"], token=token, body=d["body"].encode(), tries=d["tries"])
        for d in claimed.sort("next_try_at", 1)
    ]


def settle(message: ClaimedMessage, attempt: TryRecord, decision: Decision) -> bool:
    """Write what became of a try; return whether the message was still ours."""
    fields = {
        "at": attempt.at,
        "duration_ms": attempt.duration_ms,
        "status_code": attempt.status_code,
        "error": attempt.error,
        "excerpt": attempt.excerpt,
    }
    history = {"$each": [_without_none(fields)], "$slice": -MAX_HISTORY}
    changes: dict[str, Any] = {"tries": message.tries + 1}
    removed_fields = {"claim": ""}
    if attempt.error is not None:
        changes["error"] = attempt.error
    else:
        removed_fields["error"] = ""
    if decision.outcome is TryOutcome.RETRY:
        changes["next_try_at"] = decision.at
    else:
        is_delivered = decision.outcome is TryOutcome.DELIVERED
        changes["status"] = (S.DELIVERED if is_delivered else S.FAILED).value
        changes |= {"delivered_at": attempt.at} if is_delivered else {}
        removed_fields["next_try_at"] = ""
    result = collection("callback_messages").update_one(
        {"_id": message.id, "claim.token": message.token},
        {"$set": changes, "$unset": removed_fields, "$push": {"history": history}},
    )
    return result.matched_count == 1


def release(messages: Sequence[ClaimedMessage]) -> None:
    """Give back what was not tried."""
    for token in {message.token for message in messages}:
        ids = [one.id for one in messages if one.token == token]
        collection("callback_messages").update_many(
            {"_id": {"$in": ids}, "claim.token": token}, {"$unset": {"claim": ""}}
        )


def next_due_at(client_id: ObjectId) -> datetime | None:
    """Return when the next message of an app is due; None if none is."""
    match = {"client_id": client_id, "next_try_at": {"$exists": True}}
    documents = collection("callback_messages").find(match, {"next_try_at": 1}).hint("cbm_due")
    for document in documents.sort("next_try_at", 1).limit(1):
        return document["next_try_at"]
    return None


def fail_pending(*, client_id: ObjectId, reason: str) -> int:
    """End what waits for a callback that is switched off or gone; return how much that was."""
    result = collection("callback_messages").update_many(
        {"client_id": client_id, "next_try_at": {"$exists": True}},
        {
            "$set": {"status": S.FAILED.value, "error": reason},
            "$unset": {"next_try_at": "", "claim": ""},
        },
    )
    return result.modified_count


def waiting_clients() -> list[ObjectId]:
    """Return the apps that have a message waiting."""
    stages: list[dict[str, Any]] = [
        {"$match": {"next_try_at": {"$exists": True}}},
        {"$group": {"_id": "$client_id"}},
    ]
    found = collection("callback_messages").aggregate(stages, hint="cbm_due")
    return sorted(document["_id"] for document in found)


def reopen(*, message_id: str, client_id: ObjectId | None, now: datetime) -> Document:
    """Send a message again, under its own id; ``client_id`` None: whosever it is.

    Raises LookupError if there is none, NoCallbackError if there is nowhere to send it, StillPendingError.
    """
    match = {"_id": message_id, **({} if client_id is None else {"client_id": client_id})}
    document = collection("callback_messages").find_one(match)
    if document is None:
        raise LookupError("no such message")
    subscriptions.get(document["client_id"])
    reopened = collection("callback_messages").find_one_and_update(
        {**match, "status": {"$ne": S.PENDING.value}},
        {
            "$set": {
                "status": S.PENDING.value,
                "tries": 0,
                "next_try_at": now,
                "replayed_at": now,
            },
            "$unset": {"delivered_at": "", "error": ""},
        },
        return_document=ReturnDocument.AFTER,
    )
    if reopened is None:
        raise StillPendingError
    return reopened


def page(
    *, client_id: ObjectId, status: CallbackStatus | None, limit: int, cursor: Cursor | None
) -> Page:
    """Return part of an app's messages, newest first. Raises PyMongoError."""
    match = {"client_id": client_id} | ({} if status is None else {"status": status.value})
    return paging.page("callback_messages", match, order=NEWEST_FIRST, limit=limit, cursor=cursor)


def _is_subscribed(event: Event, callback: Document) -> bool:
    return event.type is EventType.TEST or event.type.value in callback["events"]


def _message_document(event: Event, callback: Document, now: datetime) -> dict[str, Any]:
    is_on = callback["state"] == CallbackState.ACTIVE
    return _without_none(
        {
            "_id": event.id,
            "client_id": event.client_id,
            "type": event.type.value,
            "notification_id": event.notification_id,
            "body": encode_event(event),
            "status": (S.PENDING if is_on else S.FAILED).value,
            "tries": 0,
            "next_try_at": now if is_on else None,
            "error": None if is_on else DISABLED_REASON,
            "created_at": now,
            "purge_at": now + MESSAGE_RETENTION,
        }
    )


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def record_events(events: Sequence[Event], *, now: datetime) -> None:
    """Tell apps of events, those that want to be; an event that was told before is not told again.

    When it returns, all of it is recorded. Raises PyMongoError.
    """
    for client_id in store_messages(events, now=now):
        send_wakeup(client_id, now=now)


def send_test(client_id: ObjectId, *, now: datetime) -> Document:
    """Tell an app of nothing, to see whether it hears; raises NoCallbackError."""
    subscriptions.get(client_id)
    event = Event(
        id=f"evt_test_{ObjectId()}",
        client_id=client_id,
        type=EventType.TEST,
        at=now,
        data={"message": "This is a test."},
    )
    record_events([event], now=now)
    document = collection("callback_messages").find_one({"_id": event.id})
    if document is None:
        # The callback was removed meanwhile.
        raise subscriptions.NoCallbackError
    return document


def replay(*, message_id: str, client_id: ObjectId | None, now: datetime) -> Document:
    """Send a message again; see :func:`callbacks.outbox.reopen`."""
    document = reopen(message_id=message_id, client_id=client_id, now=now)
    send_wakeup(document["client_id"], now=now)
    return document
