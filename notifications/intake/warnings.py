"""Warnings in an accepted request's response about channels that will probably fail."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from domain.errors import FailureCode
from domain.limits import Limit, describe_use
from domain.states import Channel, DeliveryStatus
from recipients import service_windows

from ..catalog import limits, types
from ..content import rendering
from ..store import NewNotification

WINDOW_CLOSED = (
    "Outside the 24-hour WhatsApp window, and the type has no matching WhatsApp template: it fails "
    "unless the recipient writes before it is sent."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceWarning:
    """A channel that will probably fail, and its probable failure code."""

    channel: Channel
    code: FailureCode
    detail: str


def find_warnings(notification: NewNotification, *, now: datetime) -> tuple[AcceptanceWarning, ...]:
    """Return the channels that will probably fail. Raises PyMongoError.

    Takes one read for a WhatsApp message without a template, otherwise none.
    """
    if notification.recipient.phone is None:
        return ()
    is_whatsapp_pending = any(
        one.channel is Channel.WHATSAPP and one.status is DeliveryStatus.PENDING
        for one in notification.deliveries
    )
    if not is_whatsapp_pending or _has_template(notification):
        return ()
    if service_windows.open_windows([notification.recipient.phone], now=now):
        return ()
    return (
        AcceptanceWarning(
            channel=Channel.WHATSAPP, code=FailureCode.WINDOW_CLOSED, detail=WINDOW_CLOSED
        ),
    )


def find_limits_reached(
    notification: NewNotification, *, now: datetime
) -> tuple[AcceptanceWarning, ...]:
    """Return the channels on which a limit would hold or suppress it now. Raises PyMongoError."""
    return tuple(
        AcceptanceWarning(
            channel=channel,
            code=FailureCode.OVER_LIMIT,
            detail=f"{describe_use(of.limit, used=len(of.uses))} (limit {of.limit.name}).",
        )
        for channel, person, rules in limits_of(notification)
        for of in limits.read_usage(rules, person=person, now=now)
        if of.next_at > now
    )


def limits_of(notification: NewNotification) -> Iterator[tuple[Channel, str, list[Limit]]]:
    """Yield the limits of each channel, and the person whose messages they count."""
    for one in () if notification.ignores_limits else notification.deliveries:
        address = notification.recipient.address(one.channel)
        person = limits.person_of(
            user_id=notification.user_id, channel=one.channel, address=address
        )
        rules = limits.applying_limits(
            type_slug=notification.type,
            template_id=notification.content.template_id,
            category=notification.category,
            priority=notification.priority,
            channel=one.channel,
            is_test=notification.is_test,
        )
        if one.status is DeliveryStatus.PENDING and person is not None and rules:
            yield one.channel, person, rules


def _has_template(notification: NewNotification) -> bool:
    chosen = rendering.choose_whatsapp_template(
        types.whatsapp_templates(notification.type),
        locale=notification.recipient.locale,
        data=notification.data,
    )
    return chosen is not None
