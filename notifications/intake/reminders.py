"""Reminders: sent before an event, as long before as the person wishes, or else the type says."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from domain import time
from domain.time import MAX_REMINDER, MIN_REMINDER
from recipients.queries import KnownRecipient

from ..types import NotificationKind
from .channels import wish_of
from .problems import Collector
from .requests import NotificationRequest

HOUR = timedelta(hours=1)


AT = "/event_at"


def scheduled(
    request: NotificationRequest,
    *,
    kind: NotificationKind | None,
    person: KnownRecipient | None,
    now: datetime,
    problems: Collector,
) -> NotificationRequest:
    """Return a request that names an event as one that names the time of sending.

    Unless the caller says otherwise, it expires when the event begins. Notes problems, and then
    returns the request as it is.
    """
    if request.event_at is None or kind is None:
        return request
    try:
        event_at, send_at = _times(request.event_at, request, kind, person, now)
    except time.InvalidTimeError as problem:
        problems.add(AT, problem.code, str(problem))
        # That nothing can be said of the event is no second problem.
        return msgspec.structs.replace(request, data={**_variables(now, now), **request.data})
    return _filled(request, event_at=event_at, send_at=send_at, ttl_seconds=kind.ttl_seconds)


def _times(
    event: str,
    request: NotificationRequest,
    kind: NotificationKind,
    person: KnownRecipient | None,
    now: datetime,
) -> tuple[datetime, datetime]:
    """Return when the event begins and when to remind of it; raises InvalidTimeError."""
    if request.scheduled_at is not None or request.scheduled_local is not None:
        raise time.InvalidTimeError(
            "conflict", "Give the time of the event or of sending, not both."
        )
    if kind.notify_before is None:
        raise time.InvalidTimeError(
            "not_a_reminder", "This type is no reminder: give scheduled_at."
        )
    event_at = time.parse_timestamp(event)
    before = wish_of(person, kind).notify_before or kind.notify_before
    return event_at, time.resolve_reminder(event_at=event_at, before=_sane(before), now=now)


def _filled(
    request: NotificationRequest,
    *,
    event_at: datetime,
    send_at: datetime,
    ttl_seconds: int | None,
) -> NotificationRequest:
    expires_at = event_at
    if ttl_seconds is not None:
        expires_at = min(event_at, send_at + timedelta(seconds=ttl_seconds))
    is_limited = request.ttl is not None or request.expires_at is not None
    return msgspec.structs.replace(
        request,
        scheduled_at=_text(send_at),
        expires_at=request.expires_at if is_limited else _text(expires_at),
        data={**_variables(event_at, send_at), **request.data},
    )


def _variables(event_at: datetime, send_at: datetime) -> Mapping[str, Any]:
    """Return what templates may say of the event, unless the caller says it.

    How long before it leaves is the person's wish: the caller does not know it.
    """
    hours = round((event_at - send_at) / HOUR)
    return {"start_time": _text(event_at), "hours_until_start": max(hours, 1)}


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _sane(before: timedelta) -> timedelta:
    """Return a wish within its bounds: an older release may have stored another."""
    return min(max(before, MIN_REMINDER), MAX_REMINDER)
