"""Builds a notification from a request: recipient, priority, content, channels, and times."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bson import ObjectId

from domain import time
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, Priority
from recipients import queries as recipients
from recipients.queries import RecipientSnapshot, RegisteredRecipient

from ..catalog import retention, types
from ..catalog.types import TypeConfig
from ..content.engine import RenderCache
from ..content.redaction import redact
from ..store import NewDelivery, NewNotification
from ..validation import (
    InvalidAddressError,
    ProblemCollector,
    has_control_characters,
    normalize_email,
    normalize_phone,
)
from . import times as intake_times
from .channels import choose_channels
from .content import check_push_size, compose_content
from .requests import Caller, NotificationRecipientRequest, NotificationRequest
from .times import resolve_times

PRIORITY_ALIASES = {"medium": Priority.NORMAL}


def resolve_priority(
    request: NotificationRequest, type_config: TypeConfig | None, problems: ProblemCollector
) -> Priority:
    """Return a request's priority, or its type's if it names none; notes one there is not."""
    if request.priority is None:
        return type_config.priority if type_config else Priority.NORMAL
    alias = PRIORITY_ALIASES.get(request.priority)
    if alias is not None:
        return alias
    try:
        return Priority(request.priority)
    except ValueError:
        problems.add("/priority", "unknown_priority", f"Expected one of {', '.join(Priority)}.")
        return Priority.NORMAL


def resolve_recipient(
    given: NotificationRecipientRequest,
    person: RegisteredRecipient | None,
    problems: ProblemCollector,
) -> Recipient:
    """Return the recipient; a problem of a given field is noted, and the field left out."""
    return Recipient(
        device_ids=tuple(dict.fromkeys(given.device_ids)),
        email=_resolve_email(given, problems) or (person.email if person else None),
        phone=_resolve_phone(given, problems) or (person.phone if person else None),
        name=_resolve_name(given, problems) or (person.name if person else None),
        locale=given.locale or (person.locale if person else None),
        timezone=_resolve_timezone(given, problems) or (person.timezone if person else None),
    )


def _resolve_email(given: NotificationRecipientRequest, problems: ProblemCollector) -> str | None:
    if given.email is None:
        return None
    try:
        return normalize_email(given.email)
    except InvalidAddressError as problem:
        problems.add("/recipient/email", "invalid_email", str(problem))
        return None


def _resolve_phone(given: NotificationRecipientRequest, problems: ProblemCollector) -> str | None:
    if given.phone is None:
        return None
    try:
        return normalize_phone(given.phone)
    except InvalidAddressError as problem:
        problems.add("/recipient/phone", "invalid_phone", str(problem))
        return None


def _resolve_name(given: NotificationRecipientRequest, problems: ProblemCollector) -> str | None:
    if given.name is not None and has_control_characters(given.name):
        problems.add(
            "/recipient/name",
            "control_characters",
            "A name is one line without control characters.",
        )
        return None
    return given.name


def _resolve_timezone(
    given: NotificationRecipientRequest, problems: ProblemCollector
) -> str | None:
    if given.timezone is None:
        return None
    try:
        return time.parse_zone(given.timezone).key
    except time.InvalidTimeError as problem:
        problems.add("/recipient/timezone", problem.code, str(problem))
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A notification ready to be stored. ``adjusted``: its local time did not exist."""

    notification: NewNotification
    is_time_adjusted: bool = False


def prepare(
    request: NotificationRequest,
    *,
    notification_id: ObjectId,
    caller: Caller,
    snapshot: RecipientSnapshot,
    now: datetime,
    render_cache: RenderCache | None = None,
) -> Prepared:
    """Build the notification of a request. Raises InvalidRequestError with all its problems.

    ``render_cache`` holds what was rendered for others of the batch.
    """
    problems = ProblemCollector()
    type_config = _find_type(request, problems)
    person = snapshot.registered.get(request.user_id or "")
    recipient = resolve_recipient(request.recipient, person, problems)
    if request.user_id is not None and ("\x00" in request.user_id or not request.user_id.strip()):
        problems.add("/user_id", "invalid", "Expected a user id of yours.")
    request = intake_times.apply_reminder(
        request, type_config=type_config, person=person, now=now, problems=problems
    )
    times = resolve_times(request, recipient, type_config, now, problems)
    priority = resolve_priority(request, type_config, problems)
    if type_config is None:
        problems.raise_if_any()
        raise AssertionError("an unknown type is a problem")
    if caller.template_version is not None:
        type_config = replace(type_config, template_version=caller.template_version)
    deliveries = choose_channels(
        request, type_config=type_config, recipient=recipient, person=person, problems=problems
    )
    content = compose_content(
        request,
        type_config=type_config,
        recipient=recipient,
        channels=[delivery.channel for delivery in deliveries],
        problems=problems,
        render_cache=render_cache,
    )
    check_push_size(
        content,
        deliveries,
        data=request.data,
        recipient=recipient,
        priority=priority,
        problems=problems,
        now=now,
    )
    problems.raise_if_any()
    redacted = redact(
        content,
        has_own_subject=request.content.subject is not None,
        has_own_body=request.content.body is not None,
        data=request.data,
        type_config=type_config,
    )
    notification = NewNotification(
        id=notification_id,
        client_id=caller.client_id,
        user_id=request.user_id,
        recipient=recipient,
        type=type_config.slug,
        category=type_config.category,
        priority=priority,
        content=redacted.content,
        data=redacted.data,
        secret=redacted.secret,
        deliveries=tuple(
            _mark_suppressed(deliveries, recipient, type_config, snapshot, user_id=request.user_id)
        ),
        max_attempts=1
        + (type_config.max_retries if request.max_retries is None else request.max_retries),
        send_at=times.send_at,
        scheduled_at=times.scheduled_at,
        scheduled_local=times.scheduled_local,
        expires_at=times.expires_at,
        ttl_seconds=times.ttl_seconds,
        purge_at=retention.purge_at(type_config.category, send_at=times.send_at),
        entity_id=request.entity_id,
        external_id=request.external_id,
        idempotency_key=caller.idempotency_key,
        request_id=caller.request_id,
        traceparent=caller.traceparent,
        is_test=caller.is_test,
        created_at=now,
    )
    return Prepared(notification=notification, is_time_adjusted=times.is_time_adjusted)


def _find_type(request: NotificationRequest, problems: ProblemCollector) -> TypeConfig | None:
    try:
        return types.get_type(request.type)
    except types.UnknownTypeError as error:
        suggestion = f" Did you mean {', '.join(error.suggestions)}?" if error.suggestions else ""
        problems.add("/type", "unknown_type", f"There is no such type.{suggestion}")
        return None


def _mark_suppressed(
    deliveries: list[NewDelivery],
    recipient: Recipient,
    type_config: TypeConfig,
    snapshot: RecipientSnapshot,
    *,
    user_id: str | None,
) -> list[NewDelivery]:
    """Return the deliveries, with those to suppressed addresses marked as suppressed."""

    def check(delivery: NewDelivery) -> NewDelivery:
        if delivery.status is not DeliveryStatus.PENDING:
            return delivery
        reason = snapshot.suppression_of(
            user_id=user_id,
            channel=delivery.channel.value,
            address=recipient.address(delivery.channel),
            type_slug=type_config.slug,
            category=type_config.category.value,
            is_critical=type_config.priority is Priority.CRITICAL,
        )
        if reason is None:
            return delivery
        return NewDelivery(
            channel=delivery.channel,
            status=DeliveryStatus.SUPPRESSED,
            failure_code=FailureCode.SUPPRESSED,
            failure_reason=f"The address is suppressed: {reason}.",
        )

    return [check(delivery) for delivery in deliveries]


def addresses_of(
    request: NotificationRequest, person: RegisteredRecipient | None
) -> list[tuple[str, str]]:
    """Return the (channel, address) pairs to look up suppressions for, as they will be stored."""
    email = _normalized_email(request) or (person.email if person else None)
    phone = request.recipient.phone or (person.phone if person else None)
    found = ((Channel.EMAIL, email), (Channel.WHATSAPP, phone))
    return [(channel.value, address) for channel, address in found if address]


def _normalized_email(request: NotificationRequest) -> str | None:
    """Return the given address in its normal form; None if it is none: resolve() tells of that."""
    if request.recipient.email is None:
        return None
    try:
        return normalize_email(request.recipient.email)
    except InvalidAddressError:
        return None


def load_recipients(requests: Sequence[NotificationRequest], *, now: datetime) -> RecipientSnapshot:
    """Read the recipients and suppressions of a batch of requests, in two queries."""
    registered = recipients.find_registered(r.user_id for r in requests if r.user_id)
    addresses = [
        pair for r in requests for pair in addresses_of(r, registered.get(r.user_id or ""))
    ]
    return RecipientSnapshot(
        registered=registered, suppressed=recipients.find_suppressed(addresses, now=now)
    )
