"""From a request to a notification: every field is checked, every gap filled.

All problems of a request are found at once. What is read from the database was read before, for
the whole batch: :class:`Known`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bson import ObjectId

from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Category, Channel, DeliveryStatus
from recipients.queries import KnownRecipient, Suppressed

from .. import retention, types
from ..store import NewDelivery, NewNotification
from ..templates import Memory
from ..types import NotificationKind
from . import reminders
from .addresses import AddressProblem, check_email
from .channels import choose
from .content import compose
from .hiding import hide
from .priorities import priority_of
from .problems import Collector
from .pushes import check_push
from .recipients import resolve
from .requests import NotificationRequest
from .times import resolve_times


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks, and for which request of theirs."""

    client_id: ObjectId
    request_id: str | None = None
    traceparent: str | None = None
    """The request's span, if it is traced."""
    idempotency_key: str | None = None
    is_test: bool = False
    """It is in test mode: what it sends goes to the sandbox."""
    template_version: int | None = None
    """The version of the type's template that is tried, published or not: ours alone to ask."""


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
    times = resolve_times(request, recipient, kind, now, problems)
    priority = priority_of(request, kind, problems)
    if kind is None:
        problems.raise_if_any()
        raise AssertionError("an unknown type is a problem")
    if caller.template_version is not None:
        kind = replace(kind, template_version=caller.template_version)
    deliveries = choose(request, kind=kind, recipient=recipient, person=person, problems=problems)
    content = compose(
        request,
        kind=kind,
        recipient=recipient,
        channels=[delivery.channel for delivery in deliveries],
        problems=problems,
        memory=known.memory,
    )
    check_push(
        content,
        deliveries,
        data=request.data,
        recipient=recipient,
        priority=priority,
        problems=problems,
        now=now,
    )
    problems.raise_if_any()
    hidden = hide(content, given=request.content, data=request.data, kind=kind)
    notification = NewNotification(
        id=notification_id,
        client_id=caller.client_id,
        user_id=request.user_id,
        recipient=recipient,
        type=kind.slug,
        category=kind.category,
        priority=priority,
        content=hidden.content,
        data=hidden.data,
        secret=hidden.secret,
        deliveries=tuple(_without_suppressed(deliveries, recipient, kind, known)),
        max_attempts=1 + (kind.max_retries if request.max_retries is None else request.max_retries),
        send_at=times.send_at,
        scheduled_at=times.scheduled_at,
        scheduled_local=times.scheduled_local,
        expires_at=times.expires_at,
        ttl_seconds=times.ttl_seconds,
        purge_at=retention.purge_at(kind.category, send_at=times.send_at),
        entity_id=request.entity_id,
        external_id=request.external_id,
        idempotency_key=caller.idempotency_key,
        request_id=caller.request_id,
        traceparent=caller.traceparent,
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
