"""From a request to a notification: every field is checked, every gap filled.

All problems of a request are found at once. What is read from the database was read before, for
the whole batch: :class:`Known`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from bson import ObjectId

from recipients.queries import KnownRecipient, Suppressed

from .. import timing, types
from ..errors import FailureCode
from ..states import Category, Channel, DeliveryStatus, Priority
from ..store import NewDelivery, NewNotification, Recipient
from ..templates import Memory
from ..types import NotificationKind
from . import reminders
from .addresses import AddressProblem, check_email
from .channels import choose
from .content import compose
from .problems import Collector
from .recipients import resolve
from .requests import NotificationRequest

RETENTION = timedelta(days=90)
"""A notification is deleted this long after its send time."""
PRIORITY_ALIASES = {"medium": Priority.NORMAL}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and for which request of theirs."""

    client_id: ObjectId
    request_id: str | None = None
    idempotency_key: str | None = None
    is_test: bool = False
    """It is in test mode: what it sends goes to the sandbox."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the database knows about the people and addresses of a batch."""

    people: Mapping[str, KnownRecipient]
    suppressed: Mapping[tuple[str, str], Suppressed]
    memory: Memory | None = None
    """What was rendered for others of the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A notification ready to be stored. ``adjusted``: its local time did not exist."""

    notification: NewNotification
    adjusted: bool = False


def prepare(
    request: NotificationRequest,
    *,
    notification_id: ObjectId,
    caller: Caller,
    known: Known,
    now: datetime,
) -> Prepared:
    """Return the notification a request asks for; raises InvalidRequest with all its problems."""
    problems = Collector()
    kind = _kind(request, problems)
    person = known.people.get(request.user_id or "")
    recipient = resolve(request.recipient, person, problems)
    if request.user_id is not None and ("\x00" in request.user_id or not request.user_id.strip()):
        problems.add("/user_id", "invalid", "Expected a user id of yours.")
    request = reminders.scheduled(request, kind=kind, person=person, now=now, problems=problems)
    times = _times(request, recipient, kind, now, problems)
    priority = _priority(request, kind, problems)
    if kind is None:
        problems.raise_if_any()
        raise AssertionError("an unknown type is a problem")
    deliveries = choose(request, kind=kind, recipient=recipient, person=person, problems=problems)
    content = compose(
        request,
        kind=kind,
        recipient=recipient,
        channels=[delivery.channel for delivery in deliveries],
        problems=problems,
        memory=known.memory,
    )
    problems.raise_if_any()
    notification = NewNotification(
        id=notification_id,
        client_id=caller.client_id,
        user_id=request.user_id,
        recipient=recipient,
        type=kind.slug,
        category=kind.category,
        priority=priority,
        content=content,
        data=request.data,
        deliveries=tuple(_without_suppressed(deliveries, recipient, kind, known)),
        max_attempts=1 + (kind.max_retries if request.max_retries is None else request.max_retries),
        send_at=times.send_at,
        scheduled_at=times.scheduled_at,
        expires_at=times.expires_at,
        ttl_seconds=times.ttl_seconds,
        purge_at=times.send_at + RETENTION,
        entity_id=request.entity_id,
        external_id=request.external_id,
        idempotency_key=caller.idempotency_key,
        request_id=caller.request_id,
        is_test=caller.is_test,
        created_at=now,
    )
    return Prepared(notification=notification, adjusted=times.adjusted)


def _kind(request: NotificationRequest, problems: Collector) -> NotificationKind | None:
    try:
        return types.get(request.type)
    except types.UnknownType as error:
        near = f" Did you mean {', '.join(error.near)}?" if error.near else ""
        problems.add("/type", "unknown_type", f"There is no such type.{near}")
        return None


def _priority(
    request: NotificationRequest, kind: NotificationKind | None, problems: Collector
) -> Priority:
    if request.priority is None:
        return kind.priority if kind else Priority.NORMAL
    alias = PRIORITY_ALIASES.get(request.priority)
    if alias is not None:
        return alias
    try:
        return Priority(request.priority)
    except ValueError:
        problems.add("/priority", "unknown_priority", f"Expected one of {', '.join(Priority)}.")
        return Priority.NORMAL


@dataclass(frozen=True, slots=True)
class _Times:
    send_at: datetime
    scheduled_at: datetime | None
    expires_at: datetime | None
    ttl_seconds: int | None
    adjusted: bool


def _times(
    request: NotificationRequest,
    recipient: Recipient,
    kind: NotificationKind | None,
    now: datetime,
    problems: Collector,
) -> _Times:
    """Return when to send and until when; notes problems and then answers with now."""
    asked, adjusted = _asked_time(request, recipient, problems)
    send_at = now
    try:
        send_at = timing.resolve_send_at(asked=asked, now=now)
    except timing.TimeProblem as problem:
        pointer = "/scheduled_at" if request.scheduled_local is None else "/scheduled_local/at"
        problems.add(pointer, problem.code, str(problem))
    ttl = _ttl(request, kind)
    expires_at = _expiry(request, ttl, send_at, problems)
    return _Times(send_at, send_at if asked is not None else None, expires_at, ttl, adjusted)


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
        local = timing.parse_local(request.scheduled_local.at)
        zone = _zone(request, recipient, problems)
        if zone is None:
            return None, False
        resolved = timing.resolve_local(local, zone)
    except timing.TimeProblem as problem:
        problems.add("/scheduled_local/at", problem.code, str(problem))
        return None, False
    return resolved.at, resolved.adjusted


def is_adjusted(request: NotificationRequest, *, own_zone: str | None) -> bool:
    """Return whether an accepted request's local time, else in ``own_zone``, does not exist."""
    if request.scheduled_local is None:
        return False
    local = timing.parse_local(request.scheduled_local.at)
    zone = timing.parse_zone(request.scheduled_local.timezone or own_zone or "")
    return timing.resolve_local(local, zone).adjusted


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
        return timing.parse_zone(name or recipient.timezone or "")
    except timing.TimeProblem as problem:
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
        return timing.resolve_expiry(send_at=send_at, ttl_seconds=ttl, expires_at=expires_at)
    except timing.TimeProblem as problem:
        pointer = "/ttl" if request.ttl is not None else "/expires_at"
        problems.add(pointer, problem.code, str(problem))
        return None


def _timestamp(text: str, pointer: str, problems: Collector) -> datetime | None:
    try:
        return timing.parse_timestamp(text)
    except timing.TimeProblem as problem:
        problems.add(pointer, problem.code, str(problem))
        return None


def _without_suppressed(
    deliveries: list[NewDelivery], recipient: Recipient, kind: NotificationKind, known: Known
) -> list[NewDelivery]:
    """Return the deliveries, those to suppressed addresses as suppressed."""

    def checked(delivery: NewDelivery) -> NewDelivery:
        address = recipient.address(delivery.channel)
        suppression = known.suppressed.get((delivery.channel.value, address or ""))
        if suppression is None or delivery.status is not DeliveryStatus.PENDING:
            return delivery
        if suppression.marketing_only and kind.category is not Category.MARKETING:
            return delivery
        return NewDelivery(
            channel=delivery.channel,
            status=DeliveryStatus.SUPPRESSED,
            failure_code=FailureCode.SUPPRESSED,
            failure_reason=f"The address is suppressed: {suppression.reason}.",
        )

    return [checked(delivery) for delivery in deliveries]


def addresses_of(
    request: NotificationRequest, person: KnownRecipient | None
) -> list[tuple[str, str]]:
    """Return the (channel, address) pairs to look up suppressions for, as they will be stored."""
    email = _normal_email(request) or (person.email if person else None)
    phone = request.recipient.phone or (person.phone if person else None)
    found = ((Channel.EMAIL, email), (Channel.WHATSAPP, phone))
    return [(channel.value, address) for channel, address in found if address]


def _normal_email(request: NotificationRequest) -> str | None:
    """Return the given address in its normal form; None if it is none: resolve() tells of that."""
    if request.recipient.email is None:
        return None
    try:
        return check_email(request.recipient.email)
    except AddressProblem:
        return None
