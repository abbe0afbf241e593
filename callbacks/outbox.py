"""Outbox of callback messages: stores, claims, settles, and replays them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

import structlog
from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import BulkWriteError

from domain.queues import CALLBACKS
from notifyproject.db import paging
from notifyproject.db.collections import is_duplicate
from notifyproject.db.leases import Leases, held_with, unclaimed
from notifyproject.db.paging import Cursor, Page
from notifyproject.platform import broker
from notifyproject.platform.endpoints import EndpointResponse
from notifyproject.platform.process import worker_name

from . import subscriptions
from .documents import CALLBACK_MESSAGES, CallbackDocument, CallbackMessageDocument
from .events import CallbackState, CallbackStatus, Event, EventType, encode_event
from .models import MAX_HISTORY
from .retry import AttemptOutcome, Decision

log = structlog.get_logger(__name__)
CALL_TASK = "notifications.call_back"


def send_wakeup(client_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Wake a worker for a client's callbacks. Return whether the broker accepted the message."""
    return broker.publish(CALL_TASK, args=[str(client_id)], queue=CALLBACKS, at=at, now=now)


LEASE = timedelta(seconds=90)
"""Lease of a message or endpoint, longer than the slowest round."""
LEASES = Leases(collection=CALLBACK_MESSAGES, length=LEASE, max_claims=3)
"""After three claims without a result, a message counts as one that ends its worker."""
MESSAGE_RETENTION = timedelta(days=30)
NEWEST_FIRST = (("created_at", -1), ("_id", -1))
DISABLED_REASON = "The callback endpoint is disabled."
REMOVED_REASON = "The callback endpoint was removed."
QUARANTINED_REASON = "Three workers in a row ended while they sent it."
S = CallbackStatus


class StillPendingError(Exception):
    """A message that is still pending can't be replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedMessage:
    """A message leased to this worker."""

    id: str
    token: str
    body: bytes
    tries: int


def store_messages(events: Sequence[Event], *, now: datetime) -> list[ObjectId]:
    """Store a message for each event whose client subscribes to it. Return the clients to wake.

    Idempotent by event ID. A message for a disabled endpoint fails at once. Raises PyMongoError.
    """
    callbacks = subscriptions.get_many(sorted({event.client_id for event in events}))
    documents = [
        _message_document(event, callbacks[event.client_id], now)
        for event in events
        if event.client_id in callbacks
        and (event.type is EventType.TEST or event.type in callbacks[event.client_id]["events"])
    ]
    if documents:
        try:
            CALLBACK_MESSAGES().insert_many(documents, ordered=False)
        except BulkWriteError as error:
            if not is_duplicate(error):
                raise
    return list({d["client_id"]: None for d in documents if d["status"] == S.PENDING})


def claim(*, client_id: ObjectId, limit: int, now: datetime) -> list[ClaimedMessage]:
    """Claim a client's due messages, oldest first. Concurrent callers get different messages.

    One whose last claim had no result may have ended its worker, so it is claimed alone. After too
    many such claims, it fails.
    """
    due = {"client_id": client_id, "next_try_at": {"$lte": now}}
    wanted = {**due, **unclaimed(now=now)}
    found = CALLBACK_MESSAGES().find(wanted, {"claim_count": 1})
    oldest = found.hint("cbm_due").sort("next_try_at", 1).limit(limit)
    counts = {document["_id"]: document.get("claim_count", 0) for document in oldest}
    if exhausted := [
        message_id for message_id, count in counts.items() if LEASES.is_exhausted(count + 1)
    ]:
        _quarantine(exhausted, wanted)
    claimable = [message_id for message_id in counts if message_id not in exhausted]
    ids = list(takewhile(lambda message_id: counts[message_id] == 0, claimable)) or claimable[:1]
    if not ids:
        return []
    token, claimed = LEASES.claim_many(ids, due, worker=worker_name(), now=now)
    return [
        ClaimedMessage(id=d["_id"], token=token, body=d["body"].encode(), tries=d["tries"])
        for d in sorted(claimed, key=lambda d: d["next_try_at"])
    ]


def _quarantine(ids: Sequence[str], wanted: Mapping[str, Any]) -> None:
    CALLBACK_MESSAGES().update_many(
        {"_id": {"$in": list(ids)}, **wanted, "claim_count": {"$gte": LEASES.max_claims}},
        _failing(QUARANTINED_REASON),
    )
    for message_id in ids:
        log.error("callback_quarantined", message_id=message_id)


def _failing(reason: str) -> dict[str, Any]:
    return {
        "$set": {"status": S.FAILED.value, "error": reason, "claim_count": 0},
        "$unset": {"next_try_at": "", "claim": ""},
    }


def settle(
    message: ClaimedMessage, response: EndpointResponse, decision: Decision, *, at: datetime
) -> bool:
    """Record an attempt that began at ``at``. Return False if the lease was lost."""
    attempt = {
        "at": at,
        "duration_ms": response.duration_ms,
        "status_code": response.status,
        "error": response.error,
        "excerpt": response.excerpt,
    }
    history = {
        "history": {
            "$each": [{name: value for name, value in attempt.items() if value is not None}],
            "$slice": -MAX_HISTORY,
        }
    }
    changes: dict[str, Any] = {"tries": message.tries + 1}
    removed_fields = {}
    if response.error is not None:
        changes["error"] = response.error
    else:
        removed_fields["error"] = ""
    if decision.outcome is AttemptOutcome.RETRY:
        changes["next_try_at"] = decision.at
    else:
        is_delivered = decision.outcome is AttemptOutcome.DELIVERED
        changes["status"] = (S.DELIVERED if is_delivered else S.FAILED).value
        changes |= {"delivered_at": at} if is_delivered else {}
        removed_fields["next_try_at"] = ""
    result = CALLBACK_MESSAGES().update_one(
        {"_id": message.id, **held_with(message.token)},
        LEASES.releasing({"$set": changes, "$unset": removed_fields, "$push": history}),
    )
    return result.matched_count == 1


def give_back(messages: Sequence[ClaimedMessage]) -> None:
    """Release messages that weren't attempted, as if they hadn't been claimed."""
    for token in {message.token for message in messages}:
        LEASES.give_back(token, [message.id for message in messages if message.token == token])


def next_due_at(client_id: ObjectId) -> datetime | None:
    """Return when a client's next message is due, or None if no message is pending."""
    match = {"client_id": client_id, "next_try_at": {"$exists": True}}
    documents = CALLBACK_MESSAGES().find(match, {"next_try_at": 1}).hint("cbm_due")
    for document in documents.sort("next_try_at", 1).limit(1):
        return document["next_try_at"]
    return None


def fail_pending(*, client_id: ObjectId, reason: str) -> int:
    """Fail a client's pending messages and return their number."""
    result = CALLBACK_MESSAGES().update_many(
        {"client_id": client_id, "next_try_at": {"$exists": True}}, _failing(reason)
    )
    return result.modified_count


def waiting_clients() -> list[ObjectId]:
    """Return the clients with pending messages, in order."""
    # One index lookup per client, each after the previous client, however many messages wait.
    clients: list[ObjectId] = []
    wanted: dict[str, Any] = {"next_try_at": {"$exists": True}}
    while found := CALLBACK_MESSAGES().find_one(
        wanted, {"client_id": 1}, sort=[("client_id", 1)], hint="cbm_due"
    ):
        clients.append(found["client_id"])
        wanted["client_id"] = {"$gt": clients[-1]}
    return clients


def replay(
    *, message_id: str, client_id: ObjectId | None, now: datetime
) -> CallbackMessageDocument:
    """Send a message of one client, or of any client for None, again with the same ID.

    Raises LookupError for an unknown message, NoCallbackError without an endpoint, and
    StillPendingError.
    """
    match = {"_id": message_id, **({} if client_id is None else {"client_id": client_id})}
    document = CALLBACK_MESSAGES().find_one(match)
    if document is None:
        raise LookupError("unknown message")
    subscriptions.get(document["client_id"])
    reopened = CALLBACK_MESSAGES().find_one_and_update(
        {**match, "status": {"$ne": S.PENDING.value}},
        {
            "$set": {"status": S.PENDING.value, "tries": 0, "next_try_at": now, "replayed_at": now},
            "$unset": {"delivered_at": "", "error": ""},
        },
        return_document=ReturnDocument.AFTER,
    )
    if reopened is None:
        raise StillPendingError
    send_wakeup(reopened["client_id"], now=now)
    return reopened


def page(
    *, client_id: ObjectId, status: CallbackStatus | None, limit: int, cursor: Cursor | None
) -> Page[CallbackMessageDocument]:
    """Return a page of a client's messages, newest first. Raises PyMongoError."""
    match = {"client_id": client_id} | ({} if status is None else {"status": status.value})
    return paging.page(CALLBACK_MESSAGES, match, order=NEWEST_FIRST, limit=limit, cursor=cursor)


def of_notification(notification_id: ObjectId, *, limit: int) -> list[CallbackMessageDocument]:
    """Return the newest messages about a notification, oldest first. Raises PyMongoError."""
    found = CALLBACK_MESSAGES().find({"notification_id": notification_id}, hint="cbm_notification")
    newest_first = {"created_at": -1, "_id": -1}
    return list(found.sort(newest_first).limit(limit))[::-1]


def _message_document(
    event: Event, callback: CallbackDocument, now: datetime
) -> CallbackMessageDocument:
    is_on = callback["state"] == CallbackState.ACTIVE
    document: CallbackMessageDocument = {
        "_id": event.id,
        "client_id": event.client_id,
        "type": event.type.value,
        "body": encode_event(event),
        "status": (S.PENDING if is_on else S.FAILED).value,
        "tries": 0,
        "created_at": now,
        "purge_at": now + MESSAGE_RETENTION,
    }
    if event.notification_id is not None:
        document["notification_id"] = event.notification_id
    if is_on:
        document["next_try_at"] = now
    else:
        document["error"] = DISABLED_REASON
    return document


def record_events(events: Sequence[Event], *, now: datetime) -> None:
    """Store events and wake workers to send them. Idempotent by event ID. Raises PyMongoError."""
    for client_id in store_messages(events, now=now):
        send_wakeup(client_id, now=now)


def send_test(client_id: ObjectId, *, now: datetime) -> CallbackMessageDocument:
    """Send a test event to a client's endpoint. Raises NoCallbackError."""
    subscriptions.get(client_id)
    event = Event(
        id=f"evt_test_{ObjectId()}",
        client_id=client_id,
        type=EventType.TEST,
        at=now,
        data={"message": "This is a test."},
    )
    record_events([event], now=now)
    document = CALLBACK_MESSAGES().find_one({"_id": event.id})
    if document is None:
        # Removed concurrently.
        raise subscriptions.NoCallbackError
    return document
