"""Accepts one notification: validates the request, stores the notification, and enqueues it."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from bson import ObjectId

from notifications.documents.notification import NotificationDocument
from notifications.store import acceptance
from notifications.store.acceptance import DuplicateEntity
from notifyproject.platform import cache, crash_points
from notifyproject.platform.crash_points import Boundary

from .. import callback_events, queries
from ..inbox import wakeups as inbox_wakeups
from ..queueing import fair_queue
from ..validation import InvalidRequestError
from . import idempotency, mismatches
from .preparation import Prepared, load_recipients, names_channels, prepare
from .requests import (
    AlreadyNotifiedError,
    Caller,
    KeyReusedError,
    NotificationRequest,
    ScopeRequiredError,
)
from .times import is_adjusted
from .warnings import AcceptanceWarning, find_warnings, mismatch_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A notification that is stored and will be delivered."""

    document: NotificationDocument
    is_replayed: bool  # The idempotency key was already used for this notification
    is_time_adjusted: bool  # The local time does not exist; the first instant after it is used
    warnings: tuple[AcceptanceWarning, ...] = ()  # Channels that are about to fail or be suppressed


def accept(request: NotificationRequest, *, caller: Caller, now: datetime) -> Acceptance:
    """Validate, store, and enqueue one notification, once per idempotency key.

    Raises InvalidRequestError, ScopeRequiredError, AlreadyNotifiedError, or KeyReusedError. After a
    PyMongoError or a ChangedError, nothing was accepted.
    """
    snapshot = load_recipients([request], now=now)
    # From here on, types and templates are those of this request.
    cache.confirm_copies()
    try:
        prepared = prepare(
            request, notification_id=ObjectId(), caller=caller, snapshot=snapshot, now=now
        )
    except InvalidRequestError:
        # An accepted request stays accepted, even if only its send time has passed since.
        previous = _find_previous(request, caller)
        if previous is None:
            raise
        return previous
    warnings = warnings_of(prepared, request, now=now)
    if caller.idempotency_key is not None:
        existing = idempotency.reserve(
            caller=caller,
            notification_ids=[prepared.notification.id],
            fingerprint=idempotency.fingerprint_of(request),
            now=now,
        )
        if existing is not None:
            first_id = existing["notification_ids"][0]
            if (document := queries.get(notification_id=first_id)) is not None:
                return Acceptance(
                    document=document,
                    is_replayed=True,
                    is_time_adjusted=prepared.is_time_adjusted,
                    warnings=warnings,
                )
            prepared = replace(prepared, notification=replace(prepared.notification, id=first_id))
    crash_points.reach(Boundary.KEY_RESERVED)
    (result,) = acceptance.accept(
        callback_events.mark_for_callbacks([prepared.notification]), now=now
    )
    crash_points.reach(Boundary.ACCEPT_STORED)
    if isinstance(result, DuplicateEntity):
        raise AlreadyNotifiedError(result.notification_id)
    enqueue_accepted([result.document], now=now)
    crash_points.reach(Boundary.ACCEPT_ENQUEUED)
    if not result.repeated:
        count_mismatches(prepared, request)
    return Acceptance(
        document=result.document,
        is_replayed=result.repeated,
        is_time_adjusted=prepared.is_time_adjusted,
        warnings=warnings,
    )


def check(request: NotificationRequest, *, caller: Caller, now: datetime) -> None:
    """Validate a request that isn't accepted. Raises InvalidRequestError."""
    snapshot = load_recipients([request], now=now)
    cache.confirm_copies()
    with suppress(ScopeRequiredError):
        prepare(request, notification_id=ObjectId(), caller=caller, snapshot=snapshot, now=now)


def warnings_of(
    prepared: Prepared, request: NotificationRequest, *, now: datetime
) -> tuple[AcceptanceWarning, ...]:
    """Return what is likely to go wrong with a valid request."""
    return (
        *mismatch_warnings(prepared.mismatches),
        *find_warnings(prepared.notification, are_channels_named=names_channels(request), now=now),
    )


def count_mismatches(prepared: Prepared, request: NotificationRequest) -> None:
    """Count where the data of a stored notification differs from its schema."""
    if prepared.mismatches:
        slug = request.content.template_id or prepared.notification.type
        mismatches.count(slug, [prepared.mismatches])


def enqueue_accepted(documents: Iterable[NotificationDocument], *, now: datetime) -> None:
    """Wake workers, open inboxes, and the callback publisher for stored notifications."""
    accepted = list(documents)
    fair_queue.enqueue_wakeups(accepted, now=now)
    inbox_wakeups.send_inbox_wakeups(accepted)
    callback_events.enqueue_publisher(now=now)


def _find_previous(request: NotificationRequest, caller: Caller) -> Acceptance | None:
    if caller.idempotency_key is None:
        return None
    try:
        existing = idempotency.find(caller=caller, fingerprint=idempotency.fingerprint_of(request))
    except KeyReusedError:
        return None
    document = existing and queries.get(notification_id=existing["notification_ids"][0])
    if document is None:
        return None
    is_time_adjusted = is_adjusted(request, default_zone=document["recipient"].get("timezone"))
    return Acceptance(document=document, is_replayed=True, is_time_adjusted=is_time_adjusted)
