"""The test clock: time of a test key's notifications, which it can move."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from bson import ObjectId
from msgspec import Meta

from access.clients.authentication import SafeWrite
from access.models import Scope
from delivery import test_clock
from delivery.test_clock import ClockMovingError, Event, Happened
from domain import time
from domain.channels import Channel
from domain.time import InvalidTimeError, utc_now
from notifications.store import test_clocks
from notifications.validation import FieldProblem, ProblemCollector
from notifyproject.platform.audit import Unaudited

from ..http.body import read_request
from ..http.fields import EXAMPLE_ID, EXAMPLE_TIME, TypeSlug, UserId
from ..http.problems import CLOCK_MOVING, LIVE_KEY, validation_failed
from ..http.rendering import Response
from ..http.requests import ClientRequest
from ..openapi.operations import operation
from .outbox import require_test_key

RETRY_SECONDS = 1


class TestClockRequest(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """By how much, or to which time, the clock is moved: one of both."""

    advance: Annotated[str, Meta(max_length=40, examples=["2h"])] | None = None
    """Whole weeks, days, hours, minutes, and seconds: `90s`, `20m`, `3d`, or `1d12h`."""
    to: Annotated[str, Meta(max_length=40, examples=[EXAMPLE_TIME])] | None = None
    """Not before the clock, and at most 365 days after real time."""


class ClockEventView(msgspec.Struct, kw_only=True, frozen=True):
    """Something that happened while the clock was moved."""

    at: datetime
    event: Annotated[Happened, Meta(examples=["sent"])]
    """The state that a delivery has now. `waits`: it is pending until `next_attempt_at`, for the
    reason in `failure_code`. `resurfaced`: a snooze is over. `digest_closed`: `notification_id` is
    what carries the digest, if there is one."""
    notification_id: Annotated[str | None, Meta(examples=[EXAMPLE_ID])] = None
    type: TypeSlug
    user_id: UserId | None = None
    channel: Annotated[Channel | None, Meta(examples=["email"])] = None
    failure_code: str | None = None
    next_attempt_at: datetime | None = None
    digest_id: str | None = None


class TestClockView(msgspec.Struct, kw_only=True, frozen=True):
    """The time of a test client, and what happened when it was moved."""

    now: datetime
    is_ahead: bool
    """False: it is real time."""
    is_complete: bool = True
    """False: 11 seconds or 1,000 events were over before the clock was at `target`. Workers move it
    on, and so does a request with this time as `to`."""
    target: datetime | None = None
    """The time that the clock hasn't reached yet."""
    happened: list[ClockEventView] = []
    """In the order in which it happened."""


@operation(scope=Scope.NOTIFICATIONS_READ, response=TestClockView, problems=(LIVE_KEY,))
def get_test_clock(request: ClientRequest) -> Response:
    """Get the time of the test key's client. Only for test keys."""
    require_test_key(request)
    found, now = test_clocks.find(request.client.id), utc_now()
    if found is None:
        return Response(TestClockView(now=now, is_ahead=False))
    target = found.get("target")
    return Response(_view(max(found["stands_at"], now), target, ()))


@operation(
    scope=Scope.NOTIFICATIONS_WRITE,
    request=TestClockRequest,
    response=TestClockView,
    problems=(LIVE_KEY, CLOCK_MOVING),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def move_test_clock(request: ClientRequest) -> Response:
    """Move the clock of the test key's client. Only for test keys.

    What is due by then happens at once, in order: schedules, retries, steps of plans, digests,
    the end of quiet hours, expiries, and snoozes of the client's test notifications. The clock then
    stands there, and what the client does has its time. Once real time has caught up with it, it is
    real time again. Of several requests at once, one waits for the other, for up to 8 seconds.

    `advance` moves it again if the request is repeated, `to` doesn't.
    """
    by, to = _read(request)
    require_test_key(request)
    try:
        moved = test_clock.move(request.client.id, by=by, to=to)
    except InvalidTimeError as error:
        pointer = "/to" if by is None else "/advance"
        raise validation_failed([FieldProblem(pointer, error.code, str(error))]) from None
    except ClockMovingError:
        raise CLOCK_MOVING.error(retry_after=RETRY_SECONDS) from None
    return Response(_view(moved.now, moved.target, moved.happened))


@operation(
    scope=Scope.NOTIFICATIONS_WRITE,
    response=None,
    status=204,
    problems=(LIVE_KEY,),
    test_mode=SafeWrite.OWN,
    unaudited=Unaudited.MARKS,
)
def reset_test_clock(request: ClientRequest) -> Response:
    """Make the clock show real time again; idempotent. Only for test keys.

    What isn't due by then waits for its time.
    """
    require_test_key(request)
    test_clocks.remove(request.client.id)
    return Response(status=204)


def _read(request: ClientRequest) -> tuple[timedelta | None, datetime | None]:
    body, problems = read_request(request, TestClockRequest), ProblemCollector()
    if body.advance is None and body.to is None:
        problems.add("/advance", "required", "Name either `advance` or `to`.")
    if body.advance is not None and body.to is not None:
        problems.add("/to", "conflict", "Not with `advance`.")
    by, to = None, None
    try:
        by = time.parse_duration(body.advance) if body.advance is not None else None
    except InvalidTimeError as error:
        problems.add("/advance", error.code, str(error))
    try:
        to = time.parse_timestamp(body.to) if body.to is not None else None
    except InvalidTimeError as error:
        problems.add("/to", error.code, str(error))
    problems.raise_if_any()
    return by, to


def _view(now: datetime, target: datetime | None, happened: Sequence[Event]) -> TestClockView:
    return TestClockView(
        now=now,
        is_ahead=now > utc_now(),
        is_complete=target is None,
        target=target,
        happened=[_event_view(event) for event in happened],
    )


def _event_view(event: Event) -> ClockEventView:
    return ClockEventView(
        at=event.at,
        event=event.event,
        notification_id=_text(event.notification_id),
        type=event.type,
        user_id=event.user_id,
        channel=None if event.channel is None else Channel(event.channel),
        failure_code=event.failure_code,
        next_attempt_at=event.next_attempt_at,
        digest_id=_text(event.digest_id),
    )


def _text(found: ObjectId | None) -> str | None:
    return None if found is None else str(found)
