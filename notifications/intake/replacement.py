"""Puts a request in the place of the notification that its client created with the same key.

:mod:`notifications.store.replacement` decides in one write whether that is still possible. What is
read before only chooses the answer.
"""

from dataclasses import replace
from datetime import datetime

from bson import ObjectId

from domain.states import OPEN, SUCCEEDED, DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.store import actions, replacement
from notifications.store.acceptance import DuplicateEntity
from notifyproject.platform import cache, encryption

from .. import callback_events, queries
from . import acceptance, idempotency
from .acceptance import Acceptance
from .preparation import load_recipients, prepare
from .requests import AlreadyNotifiedError, Caller, KeyReusedError, NotificationRequest
from .times import is_adjusted

S = DeliveryStatus
MAX_ATTEMPTS = 100
"""Of a write that others precede each time."""
SEVERAL = "This key is of a bulk create or a broadcast, which can't be replaced."


class NotReplaceableError(Exception):
    """The notification can't be replaced any more. The message says why."""

    code = "invalid_state"

    def __init__(self, reason: str, notification_id: ObjectId | None = None) -> None:
        super().__init__(reason)
        self.notification_id = notification_id


class AlreadySendingError(NotReplaceableError):
    """An attempt has begun, on one channel at least, and not all have ended."""

    code = "already_sending"


class AlreadySentError(NotReplaceableError):
    """It was sent on one channel at least, and all have ended."""

    code = "already_sent"


class AlreadyCancelledError(NotReplaceableError):
    """It was cancelled or deleted."""

    code = "already_cancelled"


def put(request: NotificationRequest, *, key: str, caller: Caller, now: datetime) -> Acceptance:
    """Accept a notification in the place of the one that has the client's key, or as a new one.

    Repeated calls with the same request have one effect. Raises NotReplaceableError, and what
    :func:`acceptance.accept` raises.
    """
    caller = replace(caller, idempotency_key=key)
    fingerprint = idempotency.fingerprint_of(request)
    for _ in range(MAX_ATTEMPTS):
        current = _current(caller.client_id, key)
        if current is None:
            try:
                return acceptance.accept(request, caller=caller, now=now)
            except KeyReusedError:
                # Another request has just reserved the key. Its process may have ended since.
                notification_id = _reserved_id(caller)
            if notification_id is None:
                continue
        else:
            notification_id = current["_id"]
            if _has_accepted(current, fingerprint, caller=caller):
                return _repeated(current, request)
            if (obstacle := _obstacle(current)) is not None:
                raise obstacle
        accepted = _store(
            request,
            current=current,
            notification_id=notification_id,
            caller=caller,
            fingerprint=fingerprint,
            now=now,
        )
        if accepted is not None:
            return accepted
    raise NotReplaceableError("Others replaced it at the same time, again and again. Retry.")


def _current(client_id: ObjectId, key: str) -> NotificationDocument | None:
    """Return the client's notification with a key. Raises NotReplaceableError for several."""
    found = queries.newest_of_key(client_id=client_id, idempotency_key=key)
    if len(found) > 1 and found[0]["created_at"] == found[1]["created_at"]:
        # Those of a bulk create have its key and its time.
        raise NotReplaceableError(SEVERAL)
    return found[0] if found else None


def _reserved_id(caller: Caller) -> ObjectId | None:
    """Return the ID that has the key, if nothing is stored under it yet."""
    record = idempotency.find_any(caller=caller)
    if record is None:
        return None
    ids = record["notification_ids"]
    if len(ids) != 1:
        raise NotReplaceableError(SEVERAL)
    return ids[0] if queries.get(notification_id=ids[0]) is None else None


def _obstacle(document: NotificationDocument) -> NotReplaceableError | None:
    """Return why a notification can't be replaced; None if it can."""
    id_ = document["_id"]
    statuses = {S(delivery["status"]) for delivery in document["delivery"]}
    is_open = not statuses.isdisjoint(OPEN)
    if is_open and not actions.is_unsent(document):
        reason = "Its sending has begun. What is still pending can be cancelled."
        return AlreadySendingError(reason, id_)
    if not statuses.isdisjoint({*SUCCEEDED, S.MERGED}):
        return AlreadySentError("It was sent. Use another key for another message.", id_)
    if document.get("erased_at") is not None:
        return NotReplaceableError("Its recipient was erased. Use another key.", id_)
    if document.get("deleted_at") is not None or (not is_open and S.CANCELLED in statuses):
        return AlreadyCancelledError("It was cancelled or deleted. Use another key.", id_)
    if is_open:
        return None
    return NotReplaceableError(f"It has ended: {document['status']}. Use another key.", id_)


def _has_accepted(document: NotificationDocument, fingerprint: str, *, caller: Caller) -> bool:
    """Return whether a notification is what this request made, and wasn't withdrawn since."""
    if isinstance(_obstacle(document), AlreadyCancelledError) or not document["is_active"]:
        return False
    if (replaced := document.get("replaced")) is not None:
        return encryption.is_digest_of(
            replaced["request"], fingerprint.encode(), associated_data=str(document["_id"])
        )
    try:
        record = idempotency.find(caller=caller, fingerprint=fingerprint)
    except KeyReusedError:
        return False
    return record is not None and document["_id"] in record["notification_ids"]


def _repeated(document: NotificationDocument, request: NotificationRequest) -> Acceptance:
    zone = document["recipient"].get("timezone")
    is_time_adjusted = is_adjusted(request, default_zone=zone)
    return Acceptance(document=document, is_replayed=True, is_time_adjusted=is_time_adjusted)


def _store(
    request: NotificationRequest,
    *,
    current: NotificationDocument | None,
    notification_id: ObjectId,
    caller: Caller,
    fingerprint: str,
    now: datetime,
) -> Acceptance | None:
    """Store a notification in the place of the current one. Return None if that has changed."""
    snapshot = load_recipients([request], now=now)
    cache.confirm_copies()
    prepared = prepare(
        request, notification_id=notification_id, caller=caller, snapshot=snapshot, now=now
    )
    (new,) = callback_events.mark_for_callbacks([prepared.notification])
    digest = encryption.keyed_digest(fingerprint.encode(), associated_data=str(new.id))
    if current is None:
        stored = replacement.insert(new, request=digest, now=now)
    else:
        stored = replacement.replace(new, current=current, request=digest, now=now)
    if stored is None:
        return None
    if isinstance(stored, DuplicateEntity):
        raise AlreadyNotifiedError(stored.notification_id)
    acceptance.enqueue_accepted([stored], now=now)
    acceptance.count_mismatches(prepared, request)
    return Acceptance(
        document=stored,
        is_replayed=False,
        is_time_adjusted=prepared.is_time_adjusted,
        warnings=acceptance.warnings_of(prepared, request, now=now),
    )
