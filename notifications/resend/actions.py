"""Retry, resend, cancel, reschedule, and run now."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bson import ObjectId

from domain import content, time
from domain.content import SensitiveContent
from domain.retry import DEFAULT_MAX_RETRIES
from domain.states import Category, Channel, DeliveryStatus, NotificationStatus, Priority
from notifyproject.platform import crash_points, tracing
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.encryption import DecryptionError

from .. import callback_events, queries, store
from ..catalog import retention, types
from ..inbox import wakeups as inbox_wakeups
from ..queueing import fair_queue
from ..store import Document, NewDelivery, NewNotification


class InvalidStateError(Exception):
    """The notification is not in a state in which this can be done; the message says why."""

    code = "invalid_state"


class SensitiveDataDestroyedError(InvalidStateError):
    """It had a code or the like, which is destroyed once every channel has ended."""

    code = "sensitive_data_destroyed"

    def __init__(self) -> None:
        super().__init__("Its sensitive data was destroyed. Send a new notification.")


class ContentRemovedError(InvalidStateError):
    """It is so old that what it said is not kept any more."""

    code = "content_removed"

    def __init__(self, at: datetime) -> None:
        super().__init__(
            f"Content was removed on {at:%Y-%m-%d} by retention. Send a new notification."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Resent:
    """A new notification that says the same again."""

    original_id: ObjectId
    document: Document


def retry(
    *,
    notification_id: ObjectId,
    channels: Sequence[Channel] | None,
    failed_until: datetime | None = None,
    now: datetime,
) -> Document:
    """Re-open the failed deliveries of a notification, of these channels or of all.

    ``failed_until``: only those that failed by then, so that asking twice opens them once.
    Raises LookupError if there is none, InvalidStateError if nothing has failed or its time is over,
    SecretExpiredError if it would say nothing but dots, ContentRemovedError if nothing at all.
    """
    document = _load_document(notification_id)
    chosen = channels or [Channel(d["channel"]) for d in document["delivery"]]
    reopened = store.reopen(
        notification_id=notification_id,
        channels=chosen,
        extra_attempts=1 + DEFAULT_MAX_RETRIES,
        failed_until=failed_until,
        now=now,
    )
    if reopened is None:
        # Read anew: it may have changed since, and be too old by now.
        raise _reopen_error(_load_document(notification_id), chosen, now)
    crash_points.reach(Boundary.REOPENED)
    fair_queue.enqueue_wakeups([reopened], now=now)
    return reopened


def resend(
    *,
    notification_id: ObjectId,
    channels: Sequence[Channel] | None,
    new_id: ObjectId | None = None,
    now: datetime,
) -> Resent:
    """Send the same again, on these channels or on all, as a new notification linked to the old.

    Asked twice for the same ``new_id``, it is sent once.
    Raises LookupError if there is none, InvalidStateError if it was never on one of these channels,
    SecretExpiredError if it would say nothing but dots, ContentRemovedError if nothing at all.
    """
    document = _load_document(notification_id)
    if store.is_content_removed(document):
        raise ContentRemovedError(document["content_removed_at"])
    original_channels = [Channel(d["channel"]) for d in document["delivery"]]
    chosen = list(channels or original_channels)
    if unknown := [c for c in chosen if c not in original_channels]:
        raise InvalidStateError(f"The original has no delivery on {', '.join(unknown)}.")
    new = replace(
        _copy(document, chosen, now, new_id or ObjectId()), secret=_load_sensitive_content(document)
    )
    (result,) = store.accept(callback_events.mark_for_callbacks([new]), now=now)
    if isinstance(result, store.DuplicateEntity):
        raise InvalidStateError("A notification for this entity already exists.")
    store.link_resend(original_id=notification_id, resend_id=new.id, now=now)
    fair_queue.enqueue_wakeups([result.document], now=now)
    inbox_wakeups.wake_accepted([result.document])
    callback_events.enqueue_publisher(now=now)
    return Resent(original_id=notification_id, document=result.document)


def cancel(
    *, notification_id: ObjectId, channels: Sequence[Channel] | None, reason: str, now: datetime
) -> Document:
    """Withdraw what has not been sent; raises LookupError, or InvalidStateError if nothing is pending."""
    document = _load_document(notification_id)
    chosen = channels or [Channel(d["channel"]) for d in document["delivery"]]
    cancelled = store.cancel(
        notification_id=notification_id, channels=chosen, reason=reason, now=now
    )
    if cancelled is None:
        raise InvalidStateError("Nothing is pending.")
    callback_events.enqueue_publisher(now=now)
    return cancelled


def reschedule(*, notification_id: ObjectId, requested_time: datetime, now: datetime) -> Document:
    """Send at another time what has not been sent.

    What expires so long after its send time still does; an expiry at an instant stays. Raises
    LookupError if there is none, InvalidTimeError for a time that cannot be, InvalidStateError once
    something was tried.
    """
    document = _load_document(notification_id)
    send_at = time.resolve_send_at(requested=requested_time, now=now)
    instant = None if "ttl_seconds" in document else document.get("expires_at")
    time.resolve_expiry(send_at=send_at, ttl_seconds=None, expires_at=instant)
    rescheduled = store.reschedule(notification_id=notification_id, send_at=send_at, now=now)
    if rescheduled is None:
        raise InvalidStateError("Already sent or attempted.")
    fair_queue.enqueue_wakeups([rescheduled], now=now)
    return rescheduled


def follow_time_zone(*, user_id: str, zone: str, now: datetime) -> int:
    """Move what waits for a time on a person's own clock to that time in the zone they are in now.

    What names a zone itself stays, and so does what has been tried. A time that is over there is
    now. Returns how many were moved; may be repeated. Raises InvalidTimeError for what is no zone.
    """
    current_zone = time.parse_zone(zone)
    results = []
    for document in queries.scheduled_local_of(user_id):
        local = time.parse_local(document["scheduled_local"])
        send_at = max(time.resolve_local(local, current_zone).at, now)
        if send_at == max(document["scheduled_at"], now):
            continue
        results.append(
            store.reschedule(
                notification_id=document["_id"], send_at=send_at, is_same_local_time=True, now=now
            )
        )
    rescheduled = [document for document in results if document is not None]
    fair_queue.enqueue_wakeups(rescheduled, now=now)
    return len(rescheduled)


def _load_document(notification_id: ObjectId) -> Document:
    """Return a notification that still says something; raises LookupError, InvalidStateError."""
    document = queries.get(notification_id=notification_id)
    if document is None:
        raise LookupError("no such notification")
    if document.get("erased_at") is not None:
        raise InvalidStateError("The recipient was erased, with the content.")
    return document


def _reopen_error(
    document: Document, channels: Sequence[Channel], now: datetime
) -> InvalidStateError:
    """Return why nothing of these channels was re-opened."""
    if store.is_content_removed(document):
        return ContentRemovedError(document["content_removed_at"])
    if store.is_secret_expired(document) and _has_failed(document, channels):
        return SensitiveDataDestroyedError()
    expires_at = document.get("expires_at")
    if expires_at is not None and expires_at <= now:
        return InvalidStateError("The notification has expired.")
    return InvalidStateError("No failed channel to retry.")


def _has_failed(document: Document, channels: Sequence[Channel]) -> bool:
    failed = DeliveryStatus.FAILED
    return any(d["channel"] in channels and d["status"] == failed for d in document["delivery"])


def _load_sensitive_content(document: Document) -> SensitiveContent | None:
    """Return the sensitive content.

    Raises SecretExpiredError, and InvalidStateError if it cannot be decrypted.
    """
    try:
        return store.secret_in(document)
    except content.SecretExpiredError:
        raise SensitiveDataDestroyedError from None
    except DecryptionError as problem:
        raise InvalidStateError(f"Its sensitive data can't be decrypted: {problem}.") from None


def _copy(
    document: Document, channels: Sequence[Channel], now: datetime, new_id: ObjectId
) -> NewNotification:
    """Return a notification that says what ``document`` said, to be sent now."""
    max_attempts = max(d["max_attempts"] for d in document["delivery"])
    return NewNotification(
        id=new_id,
        client_id=document["client_id"],
        user_id=document.get("user_id"),
        recipient=store.recipient_of(document),
        type=document["type"],
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        content=store.content_of(document),
        data=document["data"],
        deliveries=tuple(NewDelivery(channel=channel) for channel in channels),
        max_attempts=min(max_attempts, 1 + DEFAULT_MAX_RETRIES),
        send_at=now,
        expires_at=_resend_expiry(document["type"], now),
        purge_at=retention.purge_at(Category(document["category"]), send_at=now),
        entity_id=document.get("entity_id"),
        external_id=document.get("external_id"),
        traceparent=tracing.traceparent(),
        is_test=document.get("is_test", False),
        resent_from=document["_id"],
        created_at=now,
    )


def _resend_expiry(type_name: str, now: datetime) -> datetime | None:
    """Return when a resend expires: its time to live begins anew."""
    try:
        ttl = types.get_type(type_name).ttl_seconds
    except types.UnknownTypeError:
        return now + timedelta(days=1)
    return time.resolve_expiry(send_at=now, ttl_seconds=ttl, expires_at=None)


class NothingScheduledError(Exception):
    """Nothing of the notification waits for another time; the message says so."""


def run_now(*, notification_id: ObjectId, now: datetime) -> Document:
    """Make due now what waits: a scheduled notification whole, of another the channels that wait.

    Quiet hours, suppressions and an expiry hold all the same. Raises LookupError if there is none,
    NothingScheduledError, PyMongoError.
    """
    document = queries.get(notification_id=notification_id)
    if document is None:
        raise LookupError("no such notification")
    changed = None
    scheduled_at = document.get("scheduled_at")
    if (
        document["status"] == NotificationStatus.CREATED
        and scheduled_at is not None
        and scheduled_at > now
    ):
        # All of its times move, an expiry that counts from the send time included.
        changed = store.reschedule(notification_id=notification_id, send_at=now, now=now)
    changed = changed or store.make_due_now(notification_id=notification_id, now=now)
    if changed is None:
        raise NothingScheduledError("Nothing is scheduled or held.")
    fair_queue.enqueue_wakeups([changed], now=now)
    return changed
