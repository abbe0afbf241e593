"""Warnings in an accepted request's response about channels that will probably not send."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from bson import ObjectId

from devices import preferences as device_preferences
from devices import queries as devices
from devices.queries import PushTarget
from domain.channels import PUSH, Channel
from domain.errors import MUTED_BY_DEVICES, NO_DEVICE, FailureCode
from domain.limits import Limit, LimitUsage, describe_use
from domain.states import Category, DeliveryStatus
from domain.type_rules import CLIPPED_BYTES
from notifications.store.new_notifications import NewNotification
from recipients import service_windows
from rooms import registry as rooms

from ..catalog import limits, types
from ..content import rendering
from ..content.templates import missing_opt_out
from ..validation import FieldProblem
from .content import find_text_problem, text_of

WINDOW_CLOSED = (
    "Outside the 24-hour WhatsApp window, and the type has no matching WhatsApp template: it fails "
    "unless the recipient writes before it is sent."
)
UNFILLED_TEMPLATE = (
    "Outside the 24-hour WhatsApp window, and the WhatsApp template can't be sent: {problem} It "
    "fails unless the recipient writes before it is sent."
)
WITHOUT_ACCEPTANCE = (
    f"{MUTED_BY_DEVICES.rstrip('.')}: suppressed unless they change before it is sent."
)
WITHOUT_DEVICE = "No device registered: suppressed unless one is registered before it is sent."


class WarningCode(StrEnum):
    """A warning about a message that is sent nevertheless."""

    MAY_BE_CLIPPED = "may_be_clipped"
    OPT_OUT_MISSING = "opt_out_missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceWarning:
    """A channel that will probably fail or be suppressed, or a field that differs from a schema.

    The code is the channel's probable failure code, or the field's problem.
    """

    channel: Channel | None = None
    pointer: str | None = None
    code: str
    detail: str


def mismatch_warnings(found: Sequence[FieldProblem]) -> tuple[AcceptanceWarning, ...]:
    """Return a warning for each field of an accepted request that differs from the schema."""
    return tuple(
        AcceptanceWarning(pointer=problem.pointer, code=problem.code, detail=problem.detail)
        for problem in found
    )


def find_warnings(
    notification: NewNotification, *, are_channels_named: bool, now: datetime
) -> tuple[AcceptanceWarning, ...]:
    """Return what is doubtful about an accepted notification. Raises PyMongoError.

    Takes one read for a WhatsApp message without a template, and one for a push that the request
    names; otherwise none.
    """
    return (
        *find_suppressed(notification, are_channels_named=are_channels_named),
        *(_find_missing_devices(notification) if are_channels_named else ()),
        *find_closed_windows([notification], now=now).get(notification.id, ()),
        *(() if are_channels_named else _find_refused_texts(notification)),
        *_find_missing_opt_outs(notification),
        *_find_disabled_room(notification),
    )


def find_suppressed(
    notification: NewNotification, *, are_channels_named: bool
) -> Iterator[AcceptanceWarning]:
    """Yield the suppressed channels that the request names, or all if nothing is sent."""
    is_open = any(delivery.status is DeliveryStatus.PENDING for delivery in notification.deliveries)
    for delivery in notification.deliveries:
        is_suppressed = (
            delivery.status is DeliveryStatus.SUPPRESSED and delivery.failure_code is not None
        )
        is_told = delivery.failure_code is FailureCode.DESTINATION_DISABLED
        if is_suppressed and (are_channels_named or not is_open or is_told):
            has_no_device = delivery.failure_reason == NO_DEVICE
            yield AcceptanceWarning(
                channel=delivery.channel,
                code=delivery.failure_code or FailureCode.SUPPRESSED,
                detail=WITHOUT_DEVICE
                if has_no_device
                else f"Suppressed: {delivery.failure_reason}",
            )


def _find_refused_texts(notification: NewNotification) -> Iterator[AcceptanceWarning]:
    """Yield the channels whose text the rules of its type refuse. On a named one, none is left."""
    content, data = notification.content, notification.data
    channels = [*channels_of_texts(notification)]
    if channels and (secret := notification.secret) is not None:
        content, data = secret.unmask(content), secret.data
    for channel in channels:
        problem = find_text_problem(
            channel,
            content,
            data=data,
            recipient=notification.recipient,
            rules=types.text_rules(notification.type),
        )
        if problem is not None:
            yield refused_text(channel, problem)


def refused_text(channel: Channel, problem: str) -> AcceptanceWarning:
    """Return the warning about a text that the rules of its type refuse."""
    detail = f"It fails when it is sent: {problem}"
    return AcceptanceWarning(channel=channel, code=FailureCode.TOO_LARGE, detail=detail)


def _find_missing_opt_outs(notification: NewNotification) -> Iterator[AcceptanceWarning]:
    """Yield the marketing texts of the request that don't say how to opt out, as templates must."""
    content = notification.content
    if notification.category is not Category.MARKETING or content.template_id is not None:
        return
    locales = (notification.recipient.locale, None)
    for channel in channels_of_texts(notification):
        text = text_of(channel, content, data=notification.data, recipient=notification.recipient)
        sentence = None if text is None else missing_opt_out(text, locales=locales)
        if sentence is not None:
            yield AcceptanceWarning(
                channel=channel,
                code=WarningCode.OPT_OUT_MISSING,
                detail=f"A marketing {channel.spec.label} says how to opt out: {sentence}",
            )


def channels_of_texts(notification: NewNotification) -> Iterator[Channel]:
    """Yield the channels of the deliveries whose text costs by its parts."""
    for delivery in notification.deliveries:
        if delivery.channel.pays_by_part and delivery.status is DeliveryStatus.PENDING:
            yield delivery.channel


def _find_missing_devices(notification: NewNotification) -> Iterator[AcceptanceWarning]:
    """Yield the push if no device would get it by now."""
    is_push_pending = any(
        delivery.channel.has_devices and delivery.status is DeliveryStatus.PENDING
        for delivery in notification.deliveries
    )
    if not is_push_pending:
        return
    device_ids = notification.recipient.device_ids
    is_by_user = notification.user_id is not None and not device_ids
    targets = devices.find_push_targets(
        user_ids=[notification.user_id] if is_by_user and notification.user_id else (),
        device_ids=device_ids,
    )
    found = targets.for_notification(user_id=notification.user_id, device_ids=device_ids)
    if not found:
        yield AcceptanceWarning(channel=PUSH, code=FailureCode.NO_ADDRESS, detail=WITHOUT_DEVICE)
    elif not any(_accepts(device, notification) for device in found):
        yield AcceptanceWarning(channel=PUSH, code=FailureCode.OPTED_OUT, detail=WITHOUT_ACCEPTANCE)


def _find_disabled_room(notification: NewNotification) -> Iterator[AcceptanceWarning]:
    """Yield the message to a room that takes none now."""
    for delivery in notification.deliveries:
        if not delivery.channel.is_personal and delivery.status is DeliveryStatus.PENDING:
            room = rooms.find_rooms().get(notification.recipient.room or "")
            if room is not None and room.obstacle is not None:
                detail = f"{room.obstacle.rstrip('.')}: fails unless it is enabled before."
                yield AcceptanceWarning(
                    channel=delivery.channel, code=FailureCode.ROOM_GONE, detail=detail
                )


def _accepts(device: PushTarget, notification: NewNotification) -> bool:
    return device_preferences.allows(
        device.preferences,
        category=notification.category.value,
        type_slug=notification.type,
        priority=notification.priority.value,
        is_locked=types.is_locked(notification.type, notification.content.template_id),
    )


def find_closed_windows(
    notifications: Sequence[NewNotification], *, now: datetime
) -> dict[ObjectId, list[AcceptanceWarning]]:
    """Return warnings, by notification, of messages that need a template or an open service window.

    One read serves all.
    """
    waiting = [
        (notification, delivery.channel, address)
        for notification in notifications
        for delivery in notification.deliveries
        if delivery.channel.spec.has_service_window
        and delivery.status is DeliveryStatus.PENDING
        and (address := notification.recipient.address(delivery.channel))
        and not _has_template(notification)
    ]
    windows = service_windows.open_windows([address for _, _, address in waiting], now=now)
    found: dict[ObjectId, list[AcceptanceWarning]] = {}
    for notification, channel, address in waiting:
        if address not in windows:
            warning = AcceptanceWarning(
                channel=channel,
                code=FailureCode.WINDOW_CLOSED,
                detail=_closed_window_text(notification),
            )
            found.setdefault(notification.id, []).append(warning)
    return found


def _closed_window_text(notification: NewNotification) -> str:
    problem = rendering.find_template_problem(
        types.whatsapp_templates(notification.type),
        locale=notification.recipient.locale,
        data=notification.data,
        content=notification.content,
    )
    return UNFILLED_TEMPLATE.format(problem=problem) if problem else WINDOW_CLOSED


def find_clipped(channel: Channel, html: str | None) -> tuple[AcceptanceWarning, ...]:
    """Return a warning if Gmail clips an email with this HTML."""
    size = len((html or "").encode())
    if size <= CLIPPED_BYTES:
        return ()
    detail = f"Gmail may clip the HTML at 102 KB: it has {size // 1024} KB, links at its end too."
    return (AcceptanceWarning(channel=channel, code=WarningCode.MAY_BE_CLIPPED, detail=detail),)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsRead:
    """The limits of some notifications, as their recipients have used them up to now."""

    applying: Mapping[str, Limit]
    """By name."""
    reached: Mapping[ObjectId, Sequence[tuple[Channel, LimitUsage]]]
    """Those that would hold or suppress a notification now, by its ID."""


def read_limits(notifications: Sequence[NewNotification], *, now: datetime) -> LimitsRead:
    """Return the limits of notifications, with one read. Raises PyMongoError."""
    counted = [
        (notification.id, channel, person, {rule.name: rule for rule in rules})
        for notification in notifications
        for channel, person, rules in _limits_of(notification)
    ]
    by_person: dict[str, dict[str, Limit]] = {}
    for _, _, person, rules in counted:
        by_person.setdefault(person, {}).update(rules)
    usages = limits.read_usages(
        {person: list(own.values()) for person, own in by_person.items()}, now=now
    )
    reached: dict[ObjectId, list[tuple[Channel, LimitUsage]]] = {}
    for notification_id, channel, person, rules in counted:
        for usage in usages[person]:
            if usage.limit.name in rules and usage.next_at > now:
                reached.setdefault(notification_id, []).append((channel, usage))
    return LimitsRead(
        applying={name: rule for _, _, _, rules in counted for name, rule in rules.items()},
        reached=reached,
    )


def find_limits_reached(
    notification: NewNotification, *, now: datetime
) -> tuple[AcceptanceWarning, ...]:
    """Return a warning for each channel on which a limit would hold or suppress the notification.

    Raises PyMongoError.
    """
    return tuple(
        AcceptanceWarning(
            channel=channel,
            code=FailureCode.OVER_LIMIT,
            detail=f"{describe_use(of.limit, used=len(of.uses))} (limit {of.limit.name}).",
        )
        for channel, of in read_limits([notification], now=now).reached.get(notification.id, ())
    )


def _limits_of(notification: NewNotification) -> Iterator[tuple[Channel, str, list[Limit]]]:
    """Yield the limits of each channel, and the person whose messages they count."""
    for delivery in () if notification.ignores_limits else notification.deliveries:
        rules = limits.applying_limits(
            type_slug=notification.type,
            template_id=notification.content.template_id,
            category=notification.category,
            priority=notification.priority,
            channel=delivery.channel,
            is_test=notification.is_test,
        )
        person = limits.person_counted(
            rules,
            user_id=notification.user_id,
            channel=delivery.channel,
            address=notification.recipient.address(delivery.channel),
        )
        if delivery.status is DeliveryStatus.PENDING and person is not None and rules:
            yield delivery.channel, person, rules


def _has_template(notification: NewNotification) -> bool:
    chosen = rendering.choose_whatsapp_template(
        types.whatsapp_templates(notification.type),
        locale=notification.recipient.locale,
        data=notification.data,
        content=notification.content,
    )
    return chosen is not None
