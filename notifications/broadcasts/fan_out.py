"""Accepting one message for many people, each once however often it is tried.

Everybody's notification has an id that follows from the broadcast's and the user's. So a page that
is done again, after a crash or by a second worker at the same time, stores nothing twice.
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
from ..inbox import wakeups as inbox_wakeups
from ..intake.preparation import load_recipients, prepare
from ..intake.requests import Caller, NotificationRequest
from ..queueing import fair_queue
from ..store import NewDelivery, NewNotification
from ..validation import ALL, InvalidRequestError, ProblemCollector, parse_channels

NO_ADDRESS = "no_address"
_TIME_BYTES, _DIGEST_BYTES = 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutResult:
    """What became of a page of people. User ids by reason, in the order of the page."""

    accepted: int
    skipped: Mapping[str, Sequence[str]]
    """They want nothing of it, or there is no way to reach them: nothing is stored for them."""
    rejected: Mapping[str, Sequence[str]]
    """Their notifications could not be made."""


def notification_id(broadcast_id: ObjectId, user_id: str) -> ObjectId:
    """Return the id of a person's notification of a broadcast.

    It begins with the broadcast's time, so that a broadcast's ids lie together in their index. The
    rest is 64 bits of a digest: of a million people two have the same one in 37 million broadcasts.
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
    """Check, store and hint at what each of these people is told; again changes nothing.

    ``request`` is for everybody: it names neither a user nor an entity. Of the channels it names,
    each person gets those that reach them. Raises PyMongoError when nothing can be promised: it is
    to be done again.
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
    fair_queue.enqueue_wakeups(accepted, now=now)
    inbox_wakeups.wake_accepted(accepted)
    callback_events.enqueue_publisher(now=now)
    return FanOutResult(
        accepted=len(stored) + len(accepted), skipped=page.skipped, rejected=page.rejected
    )


def validate_for_everyone(
    request: NotificationRequest, *, caller: Caller, now: datetime
) -> NewNotification:
    """Return what somebody who can be reached on every channel would be told.

    Raises InvalidRequestError with all that is wrong with it for everybody.
    """
    reachable = msgspec.structs.replace(
        request,
        user_id="somebody",
        recipient=msgspec.structs.replace(
            request.recipient, email="somebody@example.com", phone="+351912345678", name="Somebody"
        ),
    )
    snapshot = RecipientSnapshot(registered={}, suppressed={})
    prepared = prepare(
        reachable, notification_id=ObjectId(), caller=caller, snapshot=snapshot, now=now
    )
    return prepared.notification


class _PageReport:
    """Gathers who of a page is told nothing, and why."""

    def __init__(self) -> None:
        self.skipped: dict[str, list[str]] = {}
        self.rejected: dict[str, list[str]] = {}

    def skip(self, user_id: str, code: str) -> None:
        """Note somebody who wants nothing of it, or whom nothing reaches."""
        self.skipped.setdefault(code, []).append(user_id)

    def reject(self, user_id: str, refusal: InvalidRequestError) -> None:
        """Note somebody whose notification cannot be made; without any address there is none."""
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
    """Return the notifications of those who are told; note the others on the page."""
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
    """Return the channels a broadcast names; None if they are each person's or the type's."""
    if request.channels is None or request.channels == [ALL]:
        return None
    return parse_channels(request.channels, problems=ProblemCollector())


def _reachable_channels(
    named_channels: Sequence[Channel] | None, person: RegisteredRecipient | None
) -> list[str] | None:
    """Return those of the named channels that reach a person, as far as their addresses say."""
    if named_channels is None:
        return None
    missing = set()
    if person is None or person.email is None:
        missing.add(Channel.EMAIL)
    if person is None or person.phone is None:
        missing.add(Channel.WHATSAPP)
    return [channel.value for channel in named_channels if channel not in missing]


def _skip_reason(deliveries: Sequence[NewDelivery]) -> str | None:
    """Return why nothing would be sent on any channel; None if something would.

    What a person wants says more than that an address is missing besides.
    """
    if any(one.status is DeliveryStatus.PENDING for one in deliveries):
        return None
    codes = [one.failure_code for one in deliveries if one.failure_code is not None]
    specific = [code for code in codes if code is not FailureCode.NO_ADDRESS]
    return (specific or codes)[0].value
