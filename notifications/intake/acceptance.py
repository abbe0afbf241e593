"""Accepting: idempotency, one write, a hint."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from notifyproject.db.collections import collection
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from .. import callback_events, queries, store
from ..inbox import wakeups as inbox_wakeups
from ..queueing import fair_queue
from ..store import Document
from ..validation import InvalidRequestError
from .idempotency import KEY_LIFETIME, record_id
from .preparation import Prepared, load_recipients, prepare
from .requests import AlreadyNotifiedError, Caller, KeyReusedError, NotificationRequest
from .times import is_adjusted


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A notification that is stored and will be delivered."""

    document: Document
    is_replayed: bool
    """The idempotency key had been used for it before."""
    is_time_adjusted: bool
    """Its local time did not exist and became the first instant after it."""


def accept(request: NotificationRequest, *, caller: Caller, now: datetime) -> Acceptance:
    """Check, store and hint at one notification.

    Raises InvalidRequestError, AlreadyNotifiedError, KeyReusedError; PyMongoError when nothing can be promised.
    Two calls with one idempotency key, at once or after a lost answer, make one notification.
    """
    snapshot = load_recipients([request], now=now)
    try:
        prepared = prepare(
            request, notification_id=ObjectId(), caller=caller, snapshot=snapshot, now=now
        )
    except InvalidRequestError:
        # Accepted once, it stays accepted: only its send time may have passed since.
        previous = _find_previous(request, caller)
        if previous is None:
            raise
        return previous
    if caller.idempotency_key is not None:
        reserved = _reserve(prepared, request, caller, now)
        if isinstance(reserved, Acceptance):
            return reserved
        prepared = reserved
    crash_points.reach(Boundary.KEY_RESERVED)
    (result,) = store.accept(callback_events.mark_for_callbacks([prepared.notification]), now=now)
    crash_points.reach(Boundary.ACCEPT_STORED)
    if isinstance(result, store.DuplicateEntity):
        is_own = result.client_id == caller.client_id
        raise AlreadyNotifiedError(result.notification_id if is_own else None)
    fair_queue.enqueue_wakeups([result.document], now=now)
    inbox_wakeups.wake_accepted([result.document])
    callback_events.enqueue_publisher(now=now)
    crash_points.reach(Boundary.ACCEPT_ENQUEUED)
    return Acceptance(
        document=result.document,
        is_replayed=result.repeated,
        is_time_adjusted=prepared.is_time_adjusted,
    )


def _reserve(
    prepared: Prepared, request: NotificationRequest, caller: Caller, now: datetime
) -> Prepared | Acceptance:
    """Take the idempotency key, or return what it was taken for.

    The key is stored first, with the id the notification will have: whoever comes second, or comes
    again after a crash between the two writes, stores the same notification.
    """
    keys, key = collection("idempotency_keys"), record_id(caller)
    fingerprint = _fingerprint(request)
    try:
        keys.insert_one(
            {
                "_id": key,
                "fingerprint": fingerprint,
                "notification_ids": [prepared.notification.id],
                "created_at": now,
                "expires_at": now + KEY_LIFETIME,
            }
        )
    except DuplicateKeyError:
        existing = keys.find_one({"_id": key})
        if existing is None:
            # It ran out between the two calls.
            return _reserve(prepared, request, caller, now)
        if existing["fingerprint"] != fingerprint:
            raise KeyReusedError from None
        first_id = existing["notification_ids"][0]
        document = queries.get(notification_id=first_id)
        if document is not None:
            return Acceptance(
                document=document, is_replayed=True, is_time_adjusted=prepared.is_time_adjusted
            )
        notification = replace(prepared.notification, id=first_id)
        return Prepared(notification=notification, is_time_adjusted=prepared.is_time_adjusted)
    return prepared


def _find_previous(request: NotificationRequest, caller: Caller) -> Acceptance | None:
    """Return what the same request was answered with, if its key has been used for it."""
    if caller.idempotency_key is None:
        return None
    existing = collection("idempotency_keys").find_one({"_id": record_id(caller)})
    if existing is None or existing["fingerprint"] != _fingerprint(request):
        return None
    document = queries.get(notification_id=existing["notification_ids"][0])
    if document is None:
        return None
    is_time_adjusted = is_adjusted(request, default_zone=document["recipient"].get("timezone"))
    return Acceptance(document=document, is_replayed=True, is_time_adjusted=is_time_adjusted)


def _fingerprint(request: NotificationRequest) -> str:
    return hashlib.sha256(msgspec.json.encode(request, order="sorted")).hexdigest()
