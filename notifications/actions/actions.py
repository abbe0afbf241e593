"""What clients and staff do to notifications after acceptance. Staff's actions are audit-logged."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from bson import ObjectId
from django.contrib.admin.models import DELETION

from domain import content, time
from domain.channels import ADDRESS_CHANNELS, Channel
from domain.content import SensitiveContent
from domain.states import BulkAction, Category, NotificationStatus, Priority
from domain.time import InvalidTimeError
from notifications.documents.notification import NotificationDocument
from notifications.store import acceptance, actions, encrypted_content, removal
from notifications.store.acceptance import DuplicateEntity
from notifications.store.new_notifications import NewDelivery, NewNotification
from notifications.store.reading import content_of, recipient_of
from notifyproject.platform import audit, crash_points, tracing
from notifyproject.platform.crash_points import Boundary
from notifyproject.platform.encryption import DecryptionError
from recipients import registration, suppressions
from recipients.masking import mask_address
from recipients.models import Recipient as RegisteredRecipient
from recipients.models import Suppression

from .. import callback_events, queries
from ..catalog import retention, types
from ..inbox import wakeups as inbox_wakeups
from ..models import Notification
from ..queueing import fair_queue
from .retries import LIFTABLE_STATUSES, liftable_channels, retry_choices


class InvalidStateError(Exception):
    """The object's state doesn't allow the action. The message says why."""

    code = "invalid_state"


class SensitiveDataDestroyedError(InvalidStateError):
    """The sensitive content can't be sent again: it was destroyed when every channel had ended."""

    code = "sensitive_data_destroyed"

    def __init__(self) -> None:
        super().__init__("Its sensitive data was destroyed. Send a new notification.")


class ContentRemovedError(InvalidStateError):
    """The content can't be sent again, since retention has removed it."""

    code = "content_removed"

    def __init__(self, at: datetime) -> None:
        super().__init__(
            f"Content was removed on {at:%Y-%m-%d} by retention. Send a new notification."
        )


class RecipientSuppressedError(InvalidStateError):
    """The address is suppressed or bounced, or the recipient opted out. The message says which."""

    code = "recipient_suppressed"


def retry(
    *,
    notification_id: ObjectId,
    channels: Sequence[Channel] | None,
    failed_until: datetime | None = None,
    now: datetime,
) -> NotificationDocument:
    """Reopen the failed deliveries of a notification, on these channels or on all.

    A delivery that was suppressed is reopened too if the recipient can be reached by now, at the
    registered address if the notification has none. A delivery that waits for another attempt is
    sent now, with its remaining attempts.
    ``failed_until`` selects only failures up to that time, which makes repeated calls idempotent.

    Raises LookupError for an unknown notification, InvalidStateError if it has expired, no delivery
    has failed or waits, or the recipient can't be reached, RecipientSuppressedError,
    SensitiveDataDestroyedError, and ContentRemovedError.
    """
    document = _load_document(notification_id)
    choice = retry_choices([document], now=now)[notification_id]
    if (refusal := choice.refusal(channels)) is not None:
        raise RecipientSuppressedError(refusal)
    if (obstacle := choice.obstacle(channels)) is not None:
        raise InvalidStateError(obstacle)
    wanted = [Channel(d["channel"]) for d in document["delivery"]] if channels is None else channels
    chosen = [channel for channel in choice.channels if channel in wanted]
    changed = None
    if chosen:
        changed = actions.reopen(
            notification_id=notification_id,
            channels=chosen,
            addresses={
                channel: at for channel, at in choice.addresses.items() if channel in chosen
            },
            failed_until=failed_until,
            now=now,
        )
    # Chosen from the document as loaded, so that a delivery reopened meanwhile isn't retried twice.
    waiting = [channel for channel in choice.waiting if channel in wanted]
    if waiting and failed_until is None:
        due = actions.make_due_now(notification_id=notification_id, retries_of=waiting, now=now)
        changed = due or changed
    if changed is None:
        # Read again, since the notification may have changed.
        raise _reopen_error(_load_document(notification_id), wanted, now)
    crash_points.reach(Boundary.REOPENED)
    fair_queue.enqueue_wakeups([changed], now=now)
    return changed


def resend(
    *,
    notification_id: ObjectId,
    channels: Sequence[Channel] | None,
    new_id: ObjectId | None = None,
    now: datetime,
) -> NotificationDocument:
    """Send the content as a new, linked notification, on these channels or on all.

    Repeated calls with the same ``new_id`` send only once.

    Raises LookupError for an unknown notification, InvalidStateError if it never had one of these
    channels, SensitiveDataDestroyedError, and ContentRemovedError.
    """
    document = _load_document(notification_id)
    new = _copy(document, channels, new_id or ObjectId(), now)
    return _store_resend(notification_id, new, now=now)


def _copy(
    document: NotificationDocument,
    channels: Sequence[Channel] | None,
    new_id: ObjectId,
    now: datetime,
) -> NewNotification:
    """Return the resend of a notification. Raises as :func:`resend` does."""
    if removal.is_content_removed(document):
        raise ContentRemovedError(document["content_removed_at"])
    original_channels = [Channel(d["channel"]) for d in document["delivery"]]
    chosen = list(channels or original_channels)
    if unknown := [c for c in chosen if c not in original_channels]:
        raise InvalidStateError(f"The original has no delivery on {', '.join(unknown)}.")
    try:
        secret = encrypted_content.secret_in(document)
    except content.SecretExpiredError:
        raise SensitiveDataDestroyedError from None
    except DecryptionError as problem:
        raise InvalidStateError(f"Its sensitive data can't be decrypted: {problem}.") from None
    return _new_notification(document, chosen, secret, now, new_id)


def _store_resend(
    original_id: ObjectId, new: NewNotification, *, now: datetime
) -> NotificationDocument:
    (result,) = acceptance.accept(callback_events.mark_for_callbacks([new]), now=now)
    if isinstance(result, DuplicateEntity):
        raise InvalidStateError("A notification for this entity already exists.")
    actions.link_resend(original_id=original_id, resend_id=new.id, now=now)
    fair_queue.enqueue_wakeups([result.document], now=now)
    inbox_wakeups.send_inbox_wakeups([result.document])
    callback_events.enqueue_publisher(now=now)
    return result.document


def cancel(
    *, notification_id: ObjectId, channels: Sequence[Channel] | None, reason: str, now: datetime
) -> NotificationDocument:
    """Cancel pending deliveries on these or all channels. Raises LookupError, InvalidStateError."""
    document = _load_document(notification_id)
    chosen = channels or [Channel(d["channel"]) for d in document["delivery"]]
    cancelled = actions.cancel(
        notification_id=notification_id, channels=chosen, reason=reason, now=now
    )
    if cancelled is None:
        raise InvalidStateError("Nothing is pending.")
    callback_events.enqueue_publisher(now=now)
    return cancelled


def cancel_entity(
    *,
    client_id: ObjectId,
    entity_id: str,
    type_name: str | None,
    user_id: str | None,
    reason: str,
    now: datetime,
) -> int:
    """Cancel the pending deliveries of a client's notifications of an entity. Return how many.

    The type and ``user_id`` select some of them. Idempotent. Raises UnknownTypeError and
    PyMongoError.
    """
    type_slug = None if type_name is None else types.stored_slug(type_name)
    count = 0
    while ids := queries.pending_of_entity(
        client_id=client_id, entity_id=entity_id, type_slug=type_slug, user_id=user_id
    ):
        changed = actions.cancel_pending(ids=ids, reason=reason, now=now)
        count += changed
        if not changed:
            # Workers have started the rest.
            break
    callback_events.enqueue_publisher(now=now)
    return count


def reschedule(
    *, notification_id: ObjectId, requested_time: datetime, now: datetime
) -> NotificationDocument:
    """Change the send time of a notification that has not been attempted.

    A time to live counts from the new send time; an absolute expiry stays. Raises LookupError for
    an unknown notification, InvalidTimeError, and InvalidStateError after an attempt.
    """
    document = _load_document(notification_id)
    send_at = time.resolve_send_at(requested=requested_time, now=now)
    instant = None if "ttl_seconds" in document else document.get("expires_at")
    time.resolve_expiry(send_at=send_at, ttl_seconds=None, expires_at=instant)
    rescheduled = actions.reschedule(notification_id=notification_id, send_at=send_at, now=now)
    if rescheduled is None:
        raise InvalidStateError("Already sent or attempted.")
    fair_queue.enqueue_wakeups([rescheduled], now=now)
    return rescheduled


def follow_time_zone(*, user_id: str, zone: str, now: datetime) -> int:
    """Move notifications that follow the recipient's local time to a new zone. Return how many."""
    # Notifications with an explicit zone and attempted ones stay. A time that has passed in the new
    # zone becomes now. Idempotent. Raises InvalidTimeError for an unknown zone.
    current_zone = time.parse_zone(zone)
    rescheduled = []
    for document in queries.scheduled_local_of(user_id):
        local = time.parse_local(document["scheduled_local"])
        send_at = max(time.resolve_local(local, current_zone).at, now)
        if send_at == max(document["scheduled_at"], now):
            continue
        moved = actions.reschedule(
            notification_id=document["_id"], send_at=send_at, is_same_local_time=True, now=now
        )
        if moved is not None:
            rescheduled.append(moved)
    fair_queue.enqueue_wakeups(rescheduled, now=now)
    return len(rescheduled)


def _load_document(notification_id: ObjectId) -> NotificationDocument:
    document = queries.get(notification_id=notification_id)
    if document is None:
        raise LookupError("no such notification")
    if document.get("erased_at") is not None:
        raise InvalidStateError("The recipient was erased, with the content.")
    if document.get("deleted_at") is not None:
        raise InvalidStateError("Its client deleted it. Staff can restore it.")
    return document


def _reopen_error(
    document: NotificationDocument, channels: Sequence[Channel], now: datetime
) -> InvalidStateError:
    if removal.is_content_removed(document):
        return ContentRemovedError(document["content_removed_at"])
    has_ended = any(
        d["channel"] in channels and d["status"] in LIFTABLE_STATUSES for d in document["delivery"]
    )
    if has_ended and encrypted_content.is_secret_expired(document):
        return SensitiveDataDestroyedError()
    expires_at = document.get("expires_at")
    if expires_at is not None and expires_at <= now:
        return InvalidStateError("The notification has expired.")
    return InvalidStateError("No failed channel to retry.")


def _new_notification(
    document: NotificationDocument,
    channels: Sequence[Channel],
    secret: SensitiveContent | None,
    now: datetime,
    new_id: ObjectId,
) -> NewNotification:
    # As many attempts as were granted at first: each retry by a client or staff raises the maximum.
    max_attempts = max(
        d["max_attempts"] - (d.get("earlier_attempts") or 0) for d in document["delivery"]
    )
    type_config = types.find_type(document["type"])
    expires_at: datetime | None = now + timedelta(days=1)
    if type_config is not None:
        # The type's time to live starts again.
        ttl = type_config.ttl_seconds
        expires_at = time.resolve_expiry(send_at=now, ttl_seconds=ttl, expires_at=None)
    return NewNotification(
        id=new_id,
        client_id=document["client_id"],
        user_id=document.get("user_id"),
        recipient=recipient_of(document),
        type=document["type"],
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        content=content_of(document),
        data=document["data"],
        secret=secret,
        deliveries=tuple(NewDelivery(channel=channel) for channel in channels),
        max_attempts=max_attempts,
        send_at=now,
        expires_at=expires_at,
        purge_at=retention.purge_at(Category(document["category"]), send_at=now),
        entity_id=document.get("entity_id"),
        external_id=document.get("external_id"),
        source=document.get("source"),
        traceparent=tracing.traceparent(),
        is_test=document.get("is_test", False),
        resent_from=document["_id"],
        created_at=now,
    )


def run_now(*, notification_id: ObjectId, now: datetime) -> NotificationDocument:
    """Make scheduled or held deliveries due now. Raises LookupError or InvalidStateError."""
    # Quiet hours, suppressions, and the expiry still apply.
    document = queries.get(notification_id=notification_id)
    if document is None:
        raise LookupError("no such notification")
    changed = None
    scheduled_at = document.get("scheduled_at") or now
    if document["status"] == NotificationStatus.CREATED and scheduled_at > now:
        # A reschedule also moves an expiry that counts from the send time.
        changed = actions.reschedule(notification_id=notification_id, send_at=now, now=now)
    changed = changed or actions.make_due_now(notification_id=notification_id, now=now)
    if changed is None:
        raise InvalidStateError("Nothing is scheduled or held.")
    fair_queue.enqueue_wakeups([changed], now=now)
    return changed


def delete(*, notification_id: ObjectId, client_id: ObjectId, now: datetime) -> None:
    """Delete a client's notification and cancel its pending deliveries. Idempotent.

    Raises LookupError if the client has no such notification, and PyMongoError.
    """
    deleted = removal.delete(notification_id=notification_id, client_id=client_id, now=now)
    if deleted is not None:
        inbox_wakeups.send_inbox_wakeups([deleted])
        callback_events.enqueue_publisher(now=now)
    elif queries.get(notification_id=notification_id, client_id=client_id) is None:
        raise LookupError("no such notification")


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """A member of staff, as stored in the audit log and in bulk operations."""

    id: ObjectId
    username: str


class SingleAction(StrEnum):
    """What staff do to one notification only. Bulk operations have the actions of BulkAction."""

    LIFT_AND_RESEND = "lift_and_resend"
    CORRECT_AND_RESEND = "correct_and_resend"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The address to which a notification is resent instead of the one that failed."""

    channel: Channel
    address: str = field(repr=False)
    updates_profile: bool = False
    """Also replaces the failed address in the recipient's profile, if that contains it."""


ChannelSelection = Mapping[ObjectId, Sequence[Channel] | None]
"""Notifications, each with the channels to act on; None for all of its channels."""
NOT_FOUND = "Not found."


@dataclass(slots=True)
class ActionResult:
    """The result of one action on several notifications."""

    done: list[ObjectId] = field(default_factory=list)
    """The notifications acted on; for a resend, the new notifications."""
    refused: dict[ObjectId, str] = field(default_factory=dict)

    @property
    def reasons(self) -> list[str]:
        """Each refusal reason once, with its count if there are several refusals."""
        counts = Counter(self.refused.values())
        if len(self.refused) == 1:
            return list(counts)
        return [f"{reason} ({count})" for reason, count in counts.items()]


def act_on_each(
    action: BulkAction | SingleAction,
    selection: ChannelSelection,
    *,
    by: Staff,
    now: datetime,
    send_at: datetime | None = None,
    reason: str = "",
    correction: Correction | None = None,
) -> ActionResult:
    """Apply a staff action to several notifications. A refusal doesn't stop the others."""
    result = ActionResult()
    for notification_id, channels in selection.items():
        if channels is not None and not channels:
            result.refused[notification_id] = "It has none of these channels."
            continue
        try:
            sent_id = act_as_staff(
                action,
                notification_id=notification_id,
                channels=channels,
                by=by,
                now=now,
                send_at=send_at,
                reason=reason,
                correction=correction,
            )
        except (InvalidStateError, InvalidTimeError) as problem:
            result.refused[notification_id] = str(problem)
        except LookupError:
            result.refused[notification_id] = NOT_FOUND
        else:
            result.done.append(sent_id)
    return result


def act_as_staff(
    action: BulkAction | SingleAction,
    *,
    notification_id: ObjectId,
    channels: Sequence[Channel] | None,
    by: Staff,
    now: datetime,
    send_at: datetime | None = None,
    failed_until: datetime | None = None,
    new_id: ObjectId | None = None,
    part_of: ObjectId | None = None,
    reason: str = "",
    correction: Correction | None = None,
) -> ObjectId:
    """Apply a staff action to one notification and record it in the audit log.

    ``send_at`` is for a reschedule, ``failed_until`` for a retry, ``new_id`` for a resend,
    ``reason`` for lifting a suppression, and ``correction`` for correcting an address. ``part_of``
    is the bulk operation, which the audit entry names. Returns the notification's ID, or the new
    notification's for a resend.

    Raises LookupError, InvalidStateError, InvalidTimeError, and PyMongoError.
    """
    on_channels = f"on {', '.join(channels) if channels else 'all channels'}"
    match action:
        case BulkAction.RETRY:
            document = retry(
                notification_id=notification_id,
                channels=channels,
                failed_until=failed_until,
                now=now,
            )
            done = f"Retried {on_channels}"
        case BulkAction.RESEND:
            document = resend(
                notification_id=notification_id, channels=channels, new_id=new_id, now=now
            )
            done = f"Resent {on_channels} as {document['_id']}"
        case BulkAction.CANCEL:
            reason = f"Cancelled by {by.username}."
            document = cancel(
                notification_id=notification_id, channels=channels, reason=reason, now=now
            )
            done = f"Cancelled {on_channels}"
        case BulkAction.RESCHEDULE:
            document = reschedule(
                notification_id=notification_id, requested_time=send_at or now, now=now
            )
            done = f"Rescheduled to {send_at or now:%Y-%m-%d %H:%M} UTC"
        case BulkAction.RUN_NOW:
            document = run_now(notification_id=notification_id, now=now)
            done = "Made due now"
        case SingleAction():
            document, done = _act_on_single(
                action, notification_id, reason=reason, correction=correction, by=by, now=now
            )
    if document["_id"] != notification_id:
        _audit(document, f"Resent from {notification_id}", by, part_of=part_of)
    _audit({**document, "_id": notification_id}, done, by, part_of=part_of)
    return ObjectId(document["_id"])


def _act_on_single(
    action: SingleAction,
    notification_id: ObjectId,
    *,
    reason: str,
    correction: Correction | None,
    by: Staff,
    now: datetime,
) -> tuple[NotificationDocument, str]:
    """Return the changed or new notification, and what was done."""
    if action is SingleAction.LIFT_AND_RESEND:
        document = _lift_and_resend(notification_id, reason=reason, by=by, now=now)
        return document, f"Lifted the suppression and resent as {document['_id']}"
    if action is SingleAction.RESTORE:
        return _restore(notification_id, now=now), "Restored what its client had deleted"
    if correction is None:
        raise ValueError("a correction needs an address")
    document = _correct_and_resend(notification_id, correction, by=by, now=now)
    name = correction.channel.address_kind.name
    return document, f"Corrected the {name} and resent as {document['_id']}"


def _lift_and_resend(
    notification_id: ObjectId, *, reason: str, by: Staff, now: datetime
) -> NotificationDocument:
    document = _load_document(notification_id)
    channels = liftable_channels(document, now=now)
    if not channels:
        raise InvalidStateError("Staff can't lift a suppression of its addresses.")
    if not reason.strip():
        raise InvalidStateError("Enter the reason for lifting the suppression.")
    # Before the suppression is lifted, since some notifications can't be resent.
    new = _copy(document, channels, ObjectId(), now)
    for channel in channels:
        address = new.recipient.address(channel) or ""
        for lifted in suppressions.lift(
            channel=channel.value, address=address, reasons=sorted(suppressions.OPERATOR_REASONS)
        ):
            audit.record(
                by=by.id,
                model=Suppression,
                object_id=suppressions.suppression_id(channel.value, address, lifted),
                name=f"{channel.value} {mask_address(address)}",
                message=f"Lifted to resend {notification_id}: {reason.strip()}",
                flag=DELETION,
            )
    return _store_resend(notification_id, new, now=now)


def correctable_channels(document: NotificationDocument) -> list[Channel]:
    """Return the channels that failed or were suppressed, and whose address staff can correct."""
    # A code or a link for one person must not be sent to another address.
    is_sensitive = "encrypted_content" in document or document["content"].get("is_masked", False)
    if is_sensitive or not document["is_active"] or removal.is_content_removed(document):
        return []
    return [
        Channel(delivery["channel"])
        for delivery in document["delivery"]
        if delivery["channel"] in ADDRESS_CHANNELS and delivery["status"] in LIFTABLE_STATUSES
    ]


def corrected_recipient(
    document: NotificationDocument, correction: Correction
) -> content.Recipient:
    """Return the recipient of a notification with the corrected address.

    Raises InvalidStateError if the channel can't be corrected, or already has this address.
    """
    recipient = recipient_of(document)
    if correction.channel not in correctable_channels(document):
        raise InvalidStateError(
            "Its address can't be corrected: the channel hasn't failed, the content was removed, "
            "or it is sensitive."
        )
    if recipient.address(correction.channel) == correction.address:
        raise InvalidStateError("This is the address that failed. Enter another one.")
    fields: Any = {correction.channel.address_kind.field: correction.address}
    return replace(recipient, **fields)


def _correct_and_resend(
    notification_id: ObjectId, correction: Correction, *, by: Staff, now: datetime
) -> NotificationDocument:
    document = _load_document(notification_id)
    recipient = corrected_recipient(document, correction)
    new = _copy(document, [correction.channel], ObjectId(), now)
    user_id, field_name = document.get("user_id"), correction.channel.address_kind.field
    if correction.updates_profile and user_id:
        is_replaced = registration.replace_address(
            user_id=user_id,
            field_name=field_name,
            old=recipient_of(document).address(correction.channel),
            new=correction.address,
            now=now,
        )
        if is_replaced:
            name = correction.channel.address_kind.name
            audit.record(
                by=by.id,
                model=RegisteredRecipient,
                object_id=user_id,
                name=user_id,
                message=f"Corrected the {name} to resend {notification_id}.",
            )
    return _store_resend(notification_id, replace(new, recipient=recipient), now=now)


def _restore(notification_id: ObjectId, *, now: datetime) -> NotificationDocument:
    # Deliveries that the deletion cancelled stay cancelled.
    restored = removal.restore(notification_id=notification_id, now=now)
    if restored is None:
        raise InvalidStateError("It isn't deleted, or its recipient was erased.")
    inbox_wakeups.send_inbox_wakeups([restored])
    return restored


def _audit(
    document: NotificationDocument, message: str, by: Staff, *, part_of: ObjectId | None = None
) -> None:
    source = "" if part_of is None else f" by bulk operation {part_of}"
    audit.record(
        by=by.id,
        model=Notification,
        object_id=str(document["_id"]),
        name=f"{document['type']} {document['_id']}",
        message=f"{message}{source}.",
        part_of=None if part_of is None else str(part_of),
    )
