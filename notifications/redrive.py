"""What operators and apps do with a notification that did not arrive: retry, resend, cancel."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bson import ObjectId

from notifyproject import crash
from notifyproject.crash import Boundary

from . import inbox_hints, lanes, queries, store, timing, types
from .retry import DEFAULT_MAX_RETRIES
from .states import Category, Channel, Priority
from .store import Document, NewDelivery, NewNotification


class NotPossible(Exception):
    """The notification is not in a state in which this can be done; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resent:
    """A new notification that says the same again."""

    original_id: ObjectId
    document: Document


def retry(
    *, notification_id: ObjectId, channels: Sequence[Channel] | None, now: datetime
) -> Document:
    """Re-open the failed deliveries of a notification, of these channels or of all.

    Raises LookupError if there is none, NotPossible if nothing has failed or its time is over.
    """
    document = _document(notification_id)
    chosen = channels or [Channel(d["channel"]) for d in document["delivery"]]
    reopened = store.requeue(
        notification_id=notification_id,
        channels=chosen,
        extra_attempts=1 + DEFAULT_MAX_RETRIES,
        now=now,
    )
    if reopened is None:
        expires_at = document.get("expires_at")
        if expires_at is not None and expires_at <= now:
            raise NotPossible("Its time is over: it has expired.")
        raise NotPossible("None of these channels has failed.")
    crash.at(Boundary.REOPENED)
    lanes.announce([reopened], now=now)
    return reopened


def resend(
    *, notification_id: ObjectId, channels: Sequence[Channel] | None, now: datetime
) -> Resent:
    """Send the same again, on these channels or on all, as a new notification linked to the old.

    Raises LookupError if there is none, NotPossible if it was never on one of these channels.
    """
    document = _document(notification_id)
    had = [Channel(d["channel"]) for d in document["delivery"]]
    chosen = list(channels or had)
    if unknown := [c for c in chosen if c not in had]:
        raise NotPossible(f"The original was not for {', '.join(unknown)}.")
    new = _copy(document, chosen, now)
    (result,) = store.accept([new], now=now)
    if isinstance(result, store.DuplicateEntity):
        raise NotPossible("A notification about this entity exists already.")
    store.link_resend(original_id=notification_id, resend_id=new.id, now=now)
    lanes.announce([result.document], now=now)
    inbox_hints.accepted([result.document])
    return Resent(original_id=notification_id, document=result.document)


def cancel(
    *, notification_id: ObjectId, channels: Sequence[Channel] | None, reason: str, now: datetime
) -> Document:
    """Withdraw what has not been sent; raises LookupError, or NotPossible if nothing is pending."""
    document = _document(notification_id)
    chosen = channels or [Channel(d["channel"]) for d in document["delivery"]]
    cancelled = store.cancel(
        notification_id=notification_id, channels=chosen, reason=reason, now=now
    )
    if cancelled is None:
        raise NotPossible("Nothing of it is pending any more.")
    return cancelled


def reschedule(*, notification_id: ObjectId, asked: datetime, now: datetime) -> Document:
    """Send at another time what has not been sent.

    What expires so long after its send time still does; an expiry at an instant stays. Raises
    LookupError if there is none, TimeProblem for a time that cannot be, NotPossible once something
    was tried.
    """
    document = _document(notification_id)
    send_at = timing.resolve_send_at(asked=asked, now=now)
    instant = None if "ttl_seconds" in document else document.get("expires_at")
    timing.resolve_expiry(send_at=send_at, ttl_seconds=None, expires_at=instant)
    rescheduled = store.reschedule(notification_id=notification_id, send_at=send_at, now=now)
    if rescheduled is None:
        raise NotPossible("It is too late: something of it was sent or tried, or it has ended.")
    lanes.announce([rescheduled], now=now)
    return rescheduled


def _document(notification_id: ObjectId) -> Document:
    """Return a notification that still says something; raises LookupError, NotPossible."""
    document = queries.one(notification_id=notification_id)
    if document is None:
        raise LookupError("no such notification")
    if document.get("erased_at") is not None:
        raise NotPossible("The person was erased, and what it said with them.")
    return document


def _copy(document: Document, channels: Sequence[Channel], now: datetime) -> NewNotification:
    """Return a notification that says what ``document`` said, to be sent now."""
    most = max(d["max_attempts"] for d in document["delivery"])
    return NewNotification(
        id=ObjectId(),
        client_id=document["client_id"],
        user_id=document.get("user_id"),
        recipient=store.recipient_of(document),
        type=document["type"],
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        content=store.content_of(document),
        data=document["data"],
        deliveries=tuple(NewDelivery(channel=channel) for channel in channels),
        max_attempts=min(most, 1 + DEFAULT_MAX_RETRIES),
        send_at=now,
        expires_at=_expiry(document["type"], now),
        purge_at=now + (document["purge_at"] - document["created_at"]),
        entity_id=document.get("entity_id"),
        external_id=document.get("external_id"),
        is_test=document.get("is_test", False),
        resent_from=document["_id"],
        created_at=now,
    )


def _expiry(type_name: str, now: datetime) -> datetime | None:
    """Return when a resend expires: its time to live begins anew."""
    try:
        ttl = types.get(type_name).ttl_seconds
    except types.UnknownType:
        return now + timedelta(days=1)
    return timing.resolve_expiry(send_at=now, ttl_seconds=ttl, expires_at=None)
