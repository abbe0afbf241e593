"""Accepts a notification for each recipient of a broadcast page, exactly once."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec
from bson import ObjectId

from domain.pacing import Pacing
from notifications.store import acceptance
from notifications.store.acceptance import Accepted
from notifications.store.new_notifications import NewNotification
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from recipients.queries import RecipientSnapshot

from .. import callback_events, queries
from ..intake.acceptance import enqueue_accepted
from ..intake.addressees import Addressee, notification_id
from ..intake.page_result import ALREADY_NOTIFIED, PageResult
from ..intake.pages import prepare_page
from ..intake.preparation import prepare
from ..intake.requests import Caller, NotificationRequest


def fan_out(
    addressees: Sequence[Addressee],
    *,
    request: NotificationRequest,
    broadcast_id: ObjectId,
    caller: Caller,
    before_storing: Callable[[], None],
    now: datetime,
    pacing: Pacing | None = None,
) -> PageResult:
    """Validate, store, and enqueue the notifications of these recipients. Idempotent.

    Stores nothing if ``before_storing`` raises an error.
    """
    # ``request`` names no user. Each recipient gets the named channels that reach them.
    ids = {each.key: notification_id(broadcast_id, each.key) for each in addressees}
    stored = queries.existing_ids(list(ids.values()))
    missing = [each for each in addressees if ids[each.key] not in stored]
    page = PageResult()
    new = prepare_page(missing, request, ids=ids, caller=caller, page=page, now=now, pacing=pacing)
    keys = {own_id: key for key, own_id in ids.items()}
    marked = [
        replace(notification, broadcast_id=broadcast_id)
        for notification in callback_events.mark_for_callbacks(new)
    ]
    before_storing()
    results = acceptance.accept(marked, now=now)
    crash_points.reach(Boundary.BROADCAST_STORED)
    accepted = []
    for notification, result in zip(marked, results, strict=True):
        if isinstance(result, Accepted):
            accepted.append(result.document)
        else:
            page.skip(keys[notification.id], ALREADY_NOTIFIED)
    enqueue_accepted(accepted, now=now)
    page.accepted = len(stored) + len(accepted)
    return page


def validate_for_everyone(
    request: NotificationRequest, *, caller: Caller, now: datetime
) -> NewNotification:
    """Return the notification for an example recipient. Raises InvalidRequestError."""
    snapshot = RecipientSnapshot(registered={}, suppressed={})
    prepared = prepare(
        for_example(request), notification_id=ObjectId(), caller=caller, snapshot=snapshot, now=now
    )
    return prepared.notification


def for_example(request: NotificationRequest) -> NotificationRequest:
    """Return the request for an example recipient, whom each channel reaches."""
    return msgspec.structs.replace(
        request,
        user_id="example",
        recipient=msgspec.structs.replace(
            request.recipient, email="ada@example.com", phone="+351912345678", name="Ada"
        ),
    )
