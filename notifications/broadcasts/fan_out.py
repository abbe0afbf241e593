"""Accepts a notification for each recipient of a broadcast page, exactly once."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import msgspec
from bson import ObjectId

from devices import queries as devices
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.store import acceptance
from notifications.store.acceptance import Accepted
from notifications.store.new_notifications import NewDelivery, NewNotification
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from recipients.queries import RecipientSnapshot

from .. import callback_events, queries
from ..content.engine import RenderCache
from ..intake.acceptance import enqueue_accepted
from ..intake.preparation import load_recipients, prepare
from ..intake.requests import Caller, NotificationRequest
from ..validation import InvalidRequestError, ProblemCollector, is_all, parse_channels
from .page_result import ALREADY_NOTIFIED, NO_ADDRESS, PageResult

_TIME_BYTES, _DIGEST_BYTES = 4, 8


def notification_id(broadcast_id: ObjectId, user_id: str) -> ObjectId:
    """Return the ID of a recipient's notification, which is the same at each call."""
    # It begins with the broadcast's time, so that a broadcast's IDs are adjacent in their index.
    # The rest is 64 bits of a digest: with a million recipients, a collision occurs in one of 37
    # million broadcasts.
    digest = hashlib.sha256(f"broadcast:{broadcast_id}:{user_id}".encode()).digest()
    return ObjectId(broadcast_id.binary[:_TIME_BYTES] + digest[:_DIGEST_BYTES])


def fan_out(
    user_ids: Sequence[str],
    *,
    request: NotificationRequest,
    broadcast_id: ObjectId,
    caller: Caller,
    now: datetime,
) -> PageResult:
    """Validate, store, and enqueue the notifications of these recipients. Idempotent."""
    # ``request`` names no user. Each recipient gets the named channels that reach them.
    ids = {user_id: notification_id(broadcast_id, user_id) for user_id in user_ids}
    stored = queries.existing_ids(list(ids.values()))
    missing = {
        user_id: notification_id
        for user_id, notification_id in ids.items()
        if notification_id not in stored
    }
    page = PageResult()
    new = prepare_page(missing, request, caller=caller, page=page, now=now)
    marked = [
        replace(notification, broadcast_id=broadcast_id)
        for notification in callback_events.mark_for_callbacks(new)
    ]
    results = acceptance.accept(marked, now=now)
    crash_points.reach(Boundary.BROADCAST_STORED)
    accepted = []
    for notification, result in zip(marked, results, strict=True):
        if isinstance(result, Accepted):
            accepted.append(result.document)
        elif notification.user_id is not None:
            page.skip(notification.user_id, ALREADY_NOTIFIED)
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


def prepare_page(
    ids: Mapping[str, ObjectId],
    request: NotificationRequest,
    *,
    caller: Caller,
    page: PageResult,
    now: datetime,
) -> list[NewNotification]:
    """Return the notifications of these recipients. Those without one are recorded in ``page``."""
    requests = {user_id: msgspec.structs.replace(request, user_id=user_id) for user_id in ids}
    snapshot = load_recipients(list(requests.values()), now=now)
    device_owners = devices.find_owners(ids)
    render_cache = RenderCache()
    named_channels = None
    if request.channels is not None and not is_all(request.channels):
        named_channels = parse_channels(request.channels, problems=ProblemCollector())
    found: list[NewNotification] = []
    for user_id in ids:
        own_request = requests[user_id]
        if named_channels is not None:
            known = snapshot.registered.get(user_id)
            reachable = [
                channel.value
                for channel in named_channels
                if channel.can_reach(
                    address=known.address(channel) if known is not None else None,
                    user_id=user_id,
                    has_device=user_id in device_owners,
                )
            ]
            if not reachable:
                page.skip(user_id, NO_ADDRESS)
                continue
            own_request = msgspec.structs.replace(own_request, channels=reachable)
        try:
            new = prepare(
                own_request,
                notification_id=ids[user_id],
                caller=caller,
                snapshot=snapshot,
                now=now,
                render_cache=render_cache,
                has_device=user_id in device_owners,
                is_data_checked=True,
            ).notification
        except InvalidRequestError as refusal:
            page.reject(user_id, refusal)
            continue
        if any(delivery.status is DeliveryStatus.PENDING for delivery in new.deliveries):
            found.append(new)
        else:
            page.skip(user_id, _skip_reason(new.deliveries))
    return found


def _skip_reason(deliveries: Sequence[NewDelivery]) -> str:
    codes = [delivery.failure_code for delivery in deliveries if delivery.failure_code is not None]
    specific = [code for code in codes if code is not FailureCode.NO_ADDRESS]
    return (specific or codes)[0].value
