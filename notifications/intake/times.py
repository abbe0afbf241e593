"""When a request is to be sent, and until when, with the problems of what it says of that."""

from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from domain import time
from domain.content import Recipient

from ..types import NotificationKind
from .problems import Collector
from .requests import NotificationRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """When to send, and until when."""

    send_at: datetime
    scheduled_at: datetime | None
    scheduled_local: str | None
    """What the registered person's own clock shows then."""
    expires_at: datetime | None
    ttl_seconds: int | None
    adjusted: bool
    """The local time asked for does not exist."""


def resolve_times(
    request: NotificationRequest,
    recipient: Recipient,
    kind: NotificationKind | None,
    now: datetime,
    problems: Collector,
) -> Times:
    """Return when to send and until when; notes problems and then answers with now."""
    asked, adjusted = _asked_time(request, recipient, problems)
    send_at = now
    try:
        send_at = time.resolve_send_at(asked=asked, now=now)
    except time.InvalidTimeError as problem:
        pointer = "/scheduled_at" if request.scheduled_local is None else "/scheduled_local/at"
        problems.add(pointer, problem.code, str(problem))
    ttl = _ttl(request, kind)
    expires_at = _expiry(request, ttl, send_at, problems)
    return Times(
        send_at=send_at,
        scheduled_at=send_at if asked is not None else None,
        scheduled_local=_on_own_clock(request),
        expires_at=expires_at,
        ttl_seconds=ttl,
        adjusted=adjusted,
    )


def _ttl(request: NotificationRequest, kind: NotificationKind | None) -> int | None:
    """Return the seconds it may be sent for: the caller's, or the type's if they say nothing."""
    if request.ttl is not None or request.expires_at is not None or kind is None:
        return request.ttl
    return kind.ttl_seconds


def _asked_time(
    request: NotificationRequest, recipient: Recipient, problems: Collector
) -> tuple[datetime | None, bool]:
    if request.scheduled_at is not None and request.scheduled_local is not None:
        problems.add(
            "/scheduled_local", "conflict", "Give scheduled_at or scheduled_local, not both."
        )
        return None, False
    if request.scheduled_at is not None:
        return _timestamp(request.scheduled_at, "/scheduled_at", problems), False
    if request.scheduled_local is None:
        return None, False
    try:
        local = time.parse_local(request.scheduled_local.at)
        zone = _zone(request, recipient, problems)
        if zone is None:
            return None, False
        resolved = time.resolve_local(local, zone)
    except time.InvalidTimeError as problem:
        problems.add("/scheduled_local/at", problem.code, str(problem))
        return None, False
    return resolved.at, resolved.adjusted


def is_adjusted(request: NotificationRequest, *, own_zone: str | None) -> bool:
    """Return whether an accepted request's local time, else in ``own_zone``, does not exist."""
    if request.scheduled_local is None:
        return False
    local = time.parse_local(request.scheduled_local.at)
    zone = time.parse_zone(request.scheduled_local.timezone or own_zone or "")
    return time.resolve_local(local, zone).adjusted


def _zone(
    request: NotificationRequest, recipient: Recipient, problems: Collector
) -> ZoneInfo | None:
    name = request.scheduled_local.timezone if request.scheduled_local else None
    if name is None and recipient.timezone is None:
        problems.add(
            "/scheduled_local/timezone", "required", "Neither this nor the recipient has a zone."
        )
        return None
    try:
        return time.parse_zone(name or recipient.timezone or "")
    except time.InvalidTimeError as problem:
        problems.add("/scheduled_local/timezone", problem.code, str(problem))
        return None


def _expiry(
    request: NotificationRequest, ttl: int | None, send_at: datetime, problems: Collector
) -> datetime | None:
    if request.ttl is not None and request.expires_at is not None:
        problems.add("/ttl", "conflict", "Give ttl or expires_at, not both.")
        return None
    expires_at = None
    if request.expires_at is not None:
        expires_at = _timestamp(request.expires_at, "/expires_at", problems)
        if expires_at is None:
            return None
    try:
        return time.resolve_expiry(send_at=send_at, ttl_seconds=ttl, expires_at=expires_at)
    except time.InvalidTimeError as problem:
        pointer = "/ttl" if request.ttl is not None else "/expires_at"
        problems.add(pointer, problem.code, str(problem))
        return None


def _timestamp(text: str, pointer: str, problems: Collector) -> datetime | None:
    try:
        return time.parse_timestamp(text)
    except time.InvalidTimeError as problem:
        problems.add(pointer, problem.code, str(problem))
        return None


def _on_own_clock(request: NotificationRequest) -> str | None:
    """Return a local time whose zone is the registered person's; None if the request names one."""
    local = request.scheduled_local
    if local is None or local.timezone or request.recipient.timezone or request.user_id is None:
        return None
    return local.at
