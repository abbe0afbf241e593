"""Fan-out of one broadcast page: accepts a notification for each recipient, exactly once.

A notification's id is derived from the broadcast's and the user's, so a page that is repeated,
after a crash or by a concurrent worker, stores nothing twice.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from bson import ObjectId

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary
from recipients.queries import RecipientSnapshot, RegisteredRecipient

from .. import callback_events, queries, store
from ..content.engine import RenderCache
from ..intake.acceptance import enqueue_accepted
from ..intake.preparation import load_recipients, prepare
from ..intake.requests import Caller, NotificationRequest
from ..store import NewDelivery, NewNotification
from ..validation import ALL, InvalidRequestError, ProblemCollector, parse_channels

NO_ADDRESS = "no_address"
_TIME_BYTES, _DIGEST_BYTES = 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutResult:
    """The result of a page. User ids by reason, in the order of the page."""

    accepted: int
    skipped: Mapping[str, Sequence[str]]
    """Recipients that opted out or can't be reached: nothing is stored for them."""
    rejected: Mapping[str, Sequence[str]]
    """Recipients whose notifications failed validation."""


def notification_id(broadcast_id: ObjectId, user_id: str) -> ObjectId:
    """Return the id of a recipient's notification of a broadcast.

    It begins with the broadcast's time, so that a broadcast's ids are adjacent in their index. The
    rest is 64 bits of a digest: with a million recipients, a collision occurs in one of 37 million
    broadcasts.
    """
    digest = hashlib.sha256(f"broadcast:{broadcast_id}:{user_id}".encode()).digest()
    return ObjectId(broadcast_id.binary[:_TIME_BYTES] + digest[:_DIGEST_BYTES])


def fan_out(
    user_ids: Sequence[str],
    *,
    request: NotificationRequest,
    broadcast_id: ObjectId,
    caller: Caller,
    now: datetime,
) -> FanOutResult:
    """Validate, store, and enqueue the notifications of these recipients; idempotent.

    ``request`` sets neither a user nor an entity. Of the channels that it names, each recipient
    gets those that reach them. Raises PyMongoError if the page must be repeated.
    """
    ids = {user_id: notification_id(broadcast_id, user_id) for user_id in user_ids}
    stored = queries.existing_ids(list(ids.values()))
    missing = {user_id: one for user_id, one in ids.items() if one not in stored}
    page = _PageReport()
    new = _prepare(missing, request, caller=caller, page=page, now=now)
    marked = [
        replace(one, broadcast_id=broadcast_id) for one in callback_events.mark_for_callbacks(new)
    ]
    results = store.accept(marked, now=now)
    crash_points.reach(Boundary.BROADCAST_STORED)
    accepted = [result.document for result in results if isinstance(result, store.Accepted)]
    enqueue_accepted(accepted, now=now)
    return FanOutResult(
        accepted=len(stored) + len(accepted), skipped=page.skipped, rejected=page.rejected
    )


def validate_for_everyone(
    request: NotificationRequest, *, caller: Caller, now: datetime
) -> NewNotification:
    """Return the notification of an example recipient who is reachable on every channel.

    Raises InvalidRequestError with every problem that concerns all recipients.
    """
    reachable = msgspec.structs.replace(
        request,
        user_id="example",
        recipient=msgspec.structs.replace(
            request.recipient, email="ada@example.com", phone="+351912345678", name="Ada"
        ),
    )
    snapshot = RecipientSnapshot(registered={}, suppressed={})
    prepared = prepare(
        reachable, notification_id=ObjectId(), caller=caller, snapshot=snapshot, now=now
    )
    return prepared.notification


class _PageReport:
    """Collects the recipients of a page that get no notification, by reason."""

    def __init__(self) -> None:
        self.skipped: dict[str, list[str]] = {}
        self.rejected: dict[str, list[str]] = {}

    def skip(self, user_id: str, code: str) -> None:
        """Record a recipient that opted out or can't be reached."""
        self.skipped.setdefault(code, []).append(user_id)

    def reject(self, user_id: str, refusal: InvalidRequestError) -> None:
        """Record a recipient whose notification is invalid; one without any address is skipped."""
        codes = [problem.code for problem in refusal.problems]
        if set(codes) == {NO_ADDRESS}:
            self.skip(user_id, NO_ADDRESS)
        else:
            self.rejected.setdefault(codes[0], []).append(user_id)


def _prepare(
    ids: Mapping[str, ObjectId],
    request: NotificationRequest,
    *,
    caller: Caller,
    page: _PageReport,
    now: datetime,
) -> list[NewNotification]:
    """Return the notifications to store; record the other recipients on the page."""
    requests = {one: msgspec.structs.replace(request, user_id=one) for one in ids}
    snapshot = load_recipients(list(requests.values()), now=now)
    render_cache = RenderCache()
    named_channels = _named_channels(request)
    found: list[NewNotification] = []
    for user_id, own_request in requests.items():
        reachable = _reachable_channels(named_channels, snapshot.registered.get(user_id))
        if reachable == []:
            page.skip(user_id, NO_ADDRESS)
            continue
        try:
            new = prepare(
                own_request
                if reachable is None
                else msgspec.structs.replace(own_request, channels=reachable),
                notification_id=ids[user_id],
                caller=caller,
                snapshot=snapshot,
                now=now,
                render_cache=render_cache,
            ).notification
        except InvalidRequestError as refusal:
            page.reject(user_id, refusal)
            continue
        if (skip_reason := _skip_reason(new.deliveries)) is None:
            found.append(new)
        else:
            page.skip(user_id, skip_reason)
    return found


def _named_channels(request: NotificationRequest) -> list[Channel] | None:
    """Return the channels that a broadcast names; None if it names none."""
    if request.channels is None or request.channels == [ALL]:
        return None
    return parse_channels(request.channels, problems=ProblemCollector())


def _reachable_channels(
    named_channels: Sequence[Channel] | None, registered: RegisteredRecipient | None
) -> list[str] | None:
    """Return the named channels that reach a recipient, by their registered addresses."""
    if named_channels is None:
        return None
    missing = set()
    if registered is None or registered.email is None:
        missing.add(Channel.EMAIL)
    if registered is None or registered.phone is None:
        missing.add(Channel.WHATSAPP)
    return [channel.value for channel in named_channels if channel not in missing]


def _skip_reason(deliveries: Sequence[NewDelivery]) -> str | None:
    """Return why no channel would send; None if one would.

    An opt-out takes precedence over a missing address.
    """
    if any(one.status is DeliveryStatus.PENDING for one in deliveries):
        return None
    codes = [one.failure_code for one in deliveries if one.failure_code is not None]
    specific = [code for code in codes if code is not FailureCode.NO_ADDRESS]
    return (specific or codes)[0].value
