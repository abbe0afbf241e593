"""Which channels a notification takes: the caller's, or the recipient's, or the type's."""

from collections.abc import Sequence
from dataclasses import replace

from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, Priority
from recipients.preferences import NO_PREFERENCE, Preference
from recipients.queries import RegisteredRecipient

from ..catalog.types import Fallback, TypeConfig
from ..store import NewDelivery
from ..validation import ALL, ProblemCollector, _channel, parse_channels
from .requests import NotificationRequest

MUTED = "The person does not want notifications of this type."
MUTED_ON_CHANNEL = "The person does not want notifications of this type on this channel."
UNREACHABLE = {
    Channel.EMAIL: ("/recipient/email", "There is no email address."),
    Channel.WHATSAPP: ("/recipient/phone", "There is no phone number."),
    Channel.PUSH: ("/user_id", "Push needs a user_id, or recipient.device_ids."),
    Channel.IN_APP: ("/user_id", "In-app needs a user_id."),
}


def choose_channels(
    request: NotificationRequest,
    *,
    type_config: TypeConfig,
    recipient: Recipient,
    person: RegisteredRecipient | None,
    problems: ProblemCollector,
) -> list[NewDelivery]:
    """Return a delivery for each channel; one that nobody named and nothing reaches is skipped."""
    preference = preference_of(person, type_config)
    is_explicit, channels = _requested_channels(request, type_config, preference, problems)
    deliveries = [
        _make_delivery(
            channel,
            request=request,
            recipient=recipient,
            is_explicit=is_explicit,
            problems=problems,
        )
        for channel in channels
    ]
    if preference.muted:
        return [_make_opted_out(delivery, MUTED) for delivery in deliveries]
    deliveries = [
        _make_opted_out(one, MUTED_ON_CHANNEL) if one.channel in preference.muted_channels else one
        for one in deliveries
    ]
    if not is_explicit and type_config.fallback is not None:
        deliveries = _apply_fallback(deliveries, type_config.fallback)
    if deliveries and not problems.problems and all(_is_skipped(d) for d in deliveries):
        problems.add(
            "/recipient", "no_address", "There is no way to reach this person on any channel."
        )
    return deliveries


def preference_of(person: RegisteredRecipient | None, type_config: TypeConfig) -> Preference:
    """Return a recipient's preference for a type."""
    if person is None:
        return NO_PREFERENCE
    return person.preference(
        type_slug=type_config.slug,
        category=type_config.category.value,
        is_critical=type_config.priority is Priority.CRITICAL,
    )


def _requested_channels(
    request: NotificationRequest,
    type_config: TypeConfig,
    preference: Preference,
    problems: ProblemCollector,
) -> tuple[bool, Sequence[Channel]]:
    """Return whether the caller named the channels, and the channels."""
    if request.channels is None:
        return False, _preferred_channels(preference) or type_config.channels
    if request.channels == [ALL]:
        return False, list(Channel)
    return True, parse_channels(request.channels, problems=problems)


def _preferred_channels(preference: Preference) -> Sequence[Channel]:
    """Return the channels a person chose, each once; one that is no more is passed over."""
    channels = (_channel(name) for name in preference.channels)
    return list(dict.fromkeys(c for c in channels if c is not None))


def _make_delivery(
    channel: Channel,
    *,
    request: NotificationRequest,
    recipient: Recipient,
    is_explicit: bool,
    problems: ProblemCollector,
) -> NewDelivery:
    if _is_reachable(channel, request, recipient):
        return NewDelivery(channel=channel)
    pointer, reason = UNREACHABLE[channel]
    if is_explicit and all(problem.pointer != pointer for problem in problems.problems):
        problems.add(pointer, "no_address", reason)
    return NewDelivery(
        channel=channel,
        status=DeliveryStatus.SUPPRESSED,
        failure_code=FailureCode.NO_ADDRESS,
        failure_reason=f"Skipped: {reason}",
    )


def _apply_fallback(deliveries: list[NewDelivery], fallback: Fallback) -> list[NewDelivery]:
    """Return the deliveries, one of them waiting for the first other that reaches the person.

    In-app is no other: it is delivered when it is stored, whether anybody looks or not.
    """
    primary = next(
        (
            one.channel
            for one in deliveries
            if one.channel not in (fallback.channel, Channel.IN_APP) and _is_open(one)
        ),
        None,
    )
    if primary is None:
        return deliveries
    return [
        replace(one, fallback_for=primary, delay=fallback.after)
        if one.channel is fallback.channel and _is_open(one)
        else one
        for one in deliveries
    ]


def _is_reachable(channel: Channel, request: NotificationRequest, recipient: Recipient) -> bool:
    if channel is Channel.IN_APP:
        return request.user_id is not None
    if channel is Channel.PUSH:
        return request.user_id is not None or bool(recipient.device_ids)
    return recipient.address(channel) is not None


def _make_opted_out(delivery: NewDelivery, reason: str) -> NewDelivery:
    return NewDelivery(
        channel=delivery.channel,
        status=DeliveryStatus.SUPPRESSED,
        failure_code=FailureCode.OPTED_OUT,
        failure_reason=reason,
    )


def _is_open(delivery: NewDelivery) -> bool:
    return delivery.status is DeliveryStatus.PENDING


def _is_skipped(delivery: NewDelivery) -> bool:
    return delivery.failure_code is FailureCode.NO_ADDRESS
