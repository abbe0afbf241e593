"""Resolves send times, expiries, and reminders from a request."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ParamSpec, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from domain import time
from domain.content import Recipient
from recipients.queries import RegisteredRecipient

from ..catalog import types
from ..catalog.types import TypeConfig
from ..content.reminders import REMAINING, event_variables, format_timestamp
from ..validation import ProblemCollector
from .requests import NotificationRequest

EVENT_POINTER = "/event_at"
P = ParamSpec("P")
R = TypeVar("R")


def apply_reminder(
    request: NotificationRequest,
    *,
    type_config: TypeConfig | None,
    registered: RegisteredRecipient | None,
    now: datetime,
    problems: ProblemCollector,
) -> NotificationRequest:
    """Return the request with its reminder's send time and expiry, or add a problem."""
    # The reminder expires when the event begins, unless the request sets an expiry.
    if request.event_at is None or type_config is None:
        return request
    try:
        event_at, send_at = _resolve_event(request.event_at, request, type_config, registered, now)
    except time.InvalidTimeError as problem:
        problems.add(EVENT_POINTER, problem.code, str(problem))
        # The variables prevent a second problem, that event variables are missing.
        return msgspec.structs.replace(
            request, data={**event_variables(now, at=now), **request.data}
        )
    expires_at = event_at
    if type_config.ttl_seconds is not None:
        expires_at = min(event_at, send_at + timedelta(seconds=type_config.ttl_seconds))
    has_expiry = request.ttl is not None or request.expires_at is not None
    return msgspec.structs.replace(
        request,
        scheduled_at=format_timestamp(send_at),
        expires_at=request.expires_at if has_expiry else format_timestamp(expires_at),
        data={**event_variables(event_at, at=send_at), **request.data},
    )


def _resolve_event(
    event: str,
    request: NotificationRequest,
    type_config: TypeConfig,
    registered: RegisteredRecipient | None,
    now: datetime,
) -> tuple[datetime, datetime]:
    if request.scheduled_at is not None or request.scheduled_local is not None:
        conflict = "`event_at` and `scheduled_at` are mutually exclusive."
        raise time.InvalidTimeError("conflict", conflict)
    if type_config.notify_before is None:
        raise time.InvalidTimeError("not_a_reminder", "Not a reminder type.")
    event_at = time.parse_timestamp(event)
    lead_time = type_config.notify_before
    if registered is not None:
        preference = registered.preference(
            type_slug=type_config.slug,
            category=type_config.category.value,
            is_locked=types.is_locked(type_config.slug, request.content.template_id),
        )
        lead_time = preference.notify_before or lead_time
    return event_at, time.resolve_reminder(event_at=event_at, lead_time=lead_time, now=now)


def event_to_show(request: NotificationRequest) -> datetime | None:
    """Return the event whose remaining time the texts show, or None if the request has its own.

    The lead time may be the recipient's preference, which the client doesn't know.
    """
    if request.event_at is None or not REMAINING.isdisjoint(request.data):
        return None
    try:
        return time.parse_timestamp(request.event_at)
    except time.InvalidTimeError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTimes:
    """The send time and the expiry of a notification."""

    send_at: datetime
    scheduled_at: datetime | None
    scheduled_local: str | None  # The send time on the registered recipient's own clock
    expires_at: datetime | None
    ttl_seconds: int | None
    is_time_adjusted: bool


def resolve_times(
    request: NotificationRequest,
    recipient: Recipient,
    type_config: TypeConfig | None,
    now: datetime,
    problems: ProblemCollector,
) -> SendTimes:
    """Return send time and expiry. If the time is invalid, add a problem and use ``now``."""
    requested_time, is_time_adjusted = _resolve_requested_time(request, recipient, problems)
    pointer = "/scheduled_at" if request.scheduled_local is None else "/scheduled_local/at"
    found = _check(pointer, problems, time.resolve_send_at, requested=requested_time, now=now)
    send_at = found or now
    ttl = request.ttl
    if ttl is None and request.expires_at is None and type_config is not None:
        ttl = type_config.ttl_seconds
    expires_at = _resolve_expiry(request, ttl, send_at, problems)
    return SendTimes(
        send_at=send_at,
        scheduled_at=send_at if requested_time is not None else None,
        scheduled_local=_recipient_local_time(request),
        expires_at=expires_at,
        ttl_seconds=ttl,
        is_time_adjusted=is_time_adjusted,
    )


def _resolve_requested_time(
    request: NotificationRequest, recipient: Recipient, problems: ProblemCollector
) -> tuple[datetime | None, bool]:
    local = request.scheduled_local
    if request.scheduled_at is not None and local is not None:
        conflict = "`scheduled_at` and `scheduled_local` are mutually exclusive."
        problems.add("/scheduled_local", "conflict", conflict)
        return None, False
    if request.scheduled_at is not None:
        at = _check("/scheduled_at", problems, time.parse_timestamp, request.scheduled_at)
        return at, False
    if local is None:
        return None, False
    pointer = "/scheduled_local/at"
    at = _check(pointer, problems, time.parse_local, local.at)
    zone = _resolve_zone(local.timezone, recipient, problems) if at is not None else None
    if at is None or zone is None:
        return None, False
    resolved = _check(pointer, problems, time.resolve_local, at, zone)
    return (resolved.at, resolved.is_adjusted) if resolved is not None else (None, False)


def is_adjusted(request: NotificationRequest, *, default_zone: str | None) -> bool:
    """Return whether a clock change skips an accepted request's local time."""
    if request.scheduled_local is None:
        return False
    local = time.parse_local(request.scheduled_local.at)
    name = request.scheduled_local.timezone or default_zone
    return time.resolve_local(local, time.parse_zone(name or "UTC")).is_adjusted


def _resolve_zone(
    name: str | None, recipient: Recipient, problems: ProblemCollector
) -> ZoneInfo | None:
    pointer = "/scheduled_local/timezone"
    if name is None and recipient.timezone is None:
        problems.add(pointer, "required", "Required: the recipient has no time zone.")
        return None
    return _check(pointer, problems, time.parse_zone, name or recipient.timezone or "")


def _resolve_expiry(
    request: NotificationRequest, ttl: int | None, send_at: datetime, problems: ProblemCollector
) -> datetime | None:
    if request.ttl is not None and request.expires_at is not None:
        problems.add("/ttl", "conflict", "`ttl` and `expires_at` are mutually exclusive.")
        return None
    expires_at = None
    if request.expires_at is not None:
        expires_at = _check("/expires_at", problems, time.parse_timestamp, request.expires_at)
        if expires_at is None:
            return None
    pointer = "/ttl" if request.ttl is not None else "/expires_at"
    return _check(
        pointer,
        problems,
        time.resolve_expiry,
        send_at=send_at,
        ttl_seconds=ttl,
        expires_at=expires_at,
    )


def _recipient_local_time(request: NotificationRequest) -> str | None:
    """Return a local time in the registered recipient's zone, None if the request sets the zone."""
    local = request.scheduled_local
    if local is None or local.timezone or request.recipient.timezone or request.user_id is None:
        return None
    return local.at


def _check(
    pointer: str,
    problems: ProblemCollector,
    resolve: Callable[P, R],
    *args: P.args,
    **options: P.kwargs,
) -> R | None:
    """Return the result of ``resolve``. For an InvalidTimeError, add a problem and return None."""
    try:
        return resolve(*args, **options)
    except time.InvalidTimeError as problem:
        problems.add(pointer, problem.code, str(problem))
        return None
