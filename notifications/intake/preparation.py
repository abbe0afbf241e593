"""Builds a notification from a request: recipient, priority, channels, content, and times."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from access.models import Scope
from devices import queries as devices
from domain import time
from domain.addresses import (
    ADDRESS_KINDS,
    InvalidAddressError,
    normalize_email,
    normalize_phone,
    normalize_room,
)
from domain.channels import Channel, channels_of
from domain.content import Recipient
from domain.errors import NO_DEVICE, FailureCode
from domain.plans import FIRST_STEP, Plan, may_reach
from domain.states import DeliveryStatus, Priority, SchemaMode
from notifications.store.new_notifications import NewDelivery, NewNotification
from providers.registry import every_channel
from recipients import queries as recipients
from recipients.preferences import NO_PREFERENCE, Preference
from recipients.queries import RecipientSnapshot, RegisteredRecipient
from rooms import registry as rooms

from ..catalog import retention, types
from ..catalog.digests import DIGEST_VARIABLE
from ..catalog.plans import PlanRequest, parse_plan
from ..catalog.texts import country_refusal
from ..catalog.types import TypeConfig
from ..content.engine import RenderCache
from ..content.redaction import redact
from ..validation import (
    FieldProblem,
    InvalidLanguageError,
    ProblemCollector,
    has_control_characters,
    is_all,
    parse_channel,
    parse_channels,
    parse_language,
)
from . import times as intake_times
from .content import check_content, check_push_size, check_texts, compose_content
from .requests import (
    Caller,
    NotificationRecipientRequest,
    NotificationRequest,
    ScopeRequiredError,
)
from .times import resolve_times

PRIORITY_ALIASES = {"medium": Priority.NORMAL}
_UNREGISTERED = RegisteredRecipient(user_id="", preferences={})


def resolve_priority(
    request: NotificationRequest, type_config: TypeConfig | None, problems: ProblemCollector
) -> Priority:
    """Return the request's or its type's priority. Add a problem if it is unknown or too high."""
    if request.priority is None:
        return type_config.priority if type_config else Priority.NORMAL
    try:
        priority = PRIORITY_ALIASES.get(request.priority) or Priority(request.priority)
    except ValueError:
        problems.add("/priority", "unknown_priority", f"Expected one of {', '.join(Priority)}.")
        return Priority.NORMAL
    limit = type_config.max_priority if type_config else Priority.CRITICAL
    if types.URGENCY.index(priority) < types.URGENCY.index(limit):
        problems.add("/priority", "priority_too_high", f"At most {limit} for this type.")
    return priority


def resolve_recipient(
    given: NotificationRecipientRequest,
    registered: RegisteredRecipient | None,
    problems: ProblemCollector,
    *,
    room: str | None = None,
) -> Recipient:
    """Return the recipient. Invalid fields are left out and added as problems.

    ``room`` is that of the type.
    """

    def check(field: str, value: str | None, normalize: Callable[[str], str]) -> str | None:
        try:
            return None if value is None else normalize(value)
        except InvalidAddressError as problem:
            problems.add(f"/recipient/{field}", f"invalid_{field}", str(problem))
        except time.InvalidTimeError as problem:
            problems.add(f"/recipient/{field}", problem.code, str(problem))
        except InvalidLanguageError as problem:
            problems.add(f"/recipient/{field}", "invalid_language", str(problem))
        return None

    known = registered or _UNREGISTERED
    email = check("email", given.email, normalize_email)
    phone = check("phone", given.phone, normalize_phone)
    name = given.name
    if name is not None and has_control_characters(name):
        reason = "Must be one line without control characters."
        problems.add("/recipient/name", "control_characters", reason)
        name = None
    own_room = check("room", given.room, normalize_room)
    if own_room is not None and own_room not in rooms.find_rooms():
        problems.add("/recipient/room", "unknown_room", "Unknown room.")
    locale = check("locale", given.locale, parse_language)
    zone = check("timezone", given.timezone, lambda zone: time.parse_zone(zone).key)
    own = {
        "email": email,
        "phone": phone,
        "room": own_room,
        "name": name,
        "locale": locale,
        "timezone": zone,
    }
    return Recipient(
        device_ids=tuple(dict.fromkeys(given.device_ids)),
        given=tuple([field for field, value in own.items() if value]),
        email=email or known.email,
        phone=phone or known.phone,
        room=own_room or room,
        name=name or known.name,
        locale=locale or known.locale,
        timezone=zone or known.timezone,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A valid notification to store. ``is_time_adjusted``: a clock change moved its send time."""

    notification: NewNotification
    is_time_adjusted: bool = False
    mismatches: Sequence[FieldProblem] = ()
    """Where the data differs from a schema that only warns."""


def prepare(
    request: NotificationRequest,
    *,
    notification_id: ObjectId,
    caller: Caller,
    snapshot: RecipientSnapshot,
    now: datetime,
    render_cache: RenderCache | None = None,
    has_device: bool | None = None,
    is_data_checked: bool = False,
) -> Prepared:
    """Validate a request and return the notification to store.

    ``render_cache`` is shared by the recipients of a batch. ``has_device`` is None if devices have
    not been read. ``is_data_checked``: the data was checked against the schema before. Raises
    InvalidRequestError with every problem, and ScopeRequiredError.
    """
    problems = ProblemCollector()
    type_config = _find_type(request, problems)
    registered = snapshot.registered.get(request.user_id or "")
    recipient = resolve_recipient(
        request.recipient, registered, problems, room=type_config.room if type_config else None
    )
    problems.check_identifier(request.user_id, "/user_id")
    for field in ("entity_id", "external_id", "source"):
        if (text := getattr(request, field)) is not None:
            problems.check_one_line(text, f"/{field}")
    _check_devices(request, snapshot, problems)
    event_at = intake_times.event_to_show(request)
    given = request.data
    request = intake_times.apply_reminder(
        request, type_config=type_config, registered=registered, now=now, problems=problems
    )
    times = resolve_times(request, recipient, type_config, now, problems)
    priority = resolve_priority(request, type_config, problems)
    if type_config is None:
        _check_without_type(request, problems)
        problems.raise_if_any()
        raise AssertionError("an unknown type is a problem")
    if caller.template_version is not None:
        type_config = replace(type_config, template_version=caller.template_version)
    if type_config.digest is not None and DIGEST_VARIABLE in request.data:
        problems.add(f"/data/{DIGEST_VARIABLE}", "reserved", "Reserved for the digest.")
    deliveries, plan = choose_channels(
        request,
        type_config=type_config,
        recipient=recipient,
        snapshot=snapshot,
        problems=problems,
        has_device=has_device,
        is_test=caller.is_test,
    )
    if plan is not None and request.plan is not None and times.expires_at is not None:
        _check_plan_time(plan, times.expires_at - times.send_at, problems)
    content = compose_content(
        request,
        type_config=type_config,
        recipient=recipient,
        channels=[delivery.channel for delivery in deliveries],
        event_at=event_at,
        problems=problems,
        render_cache=render_cache,
        design=caller.design,
    )
    mismatches: Sequence[FieldProblem] = ()
    if not is_data_checked:
        mismatches = _check_data(request, given, type_config=type_config, problems=problems)
    check_push_size(
        content,
        deliveries,
        data=request.data,
        recipient=recipient,
        priority=priority,
        problems=problems,
        now=now,
    )
    check_texts(
        content,
        deliveries,
        data=request.data,
        recipient=recipient,
        rules=type_config.text_rules,
        are_channels_named=names_channels(request),
        problems=problems,
    )
    problems.raise_if_any()
    if priority is Priority.CRITICAL and not caller.may_send_critical:
        raise ScopeRequiredError(Scope.NOTIFICATIONS_CRITICAL)
    if request.ignore_limits and not caller.may_ignore_limits:
        raise ScopeRequiredError(Scope.LIMITS_IGNORE)
    redacted = redact(
        content,
        has_own_subject=request.content.subject is not None,
        has_own_body=request.content.body is not None,
        data=request.data,
        type_config=type_config,
    )
    max_retries = type_config.max_retries if request.max_retries is None else request.max_retries
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
        deliveries=tuple(deliveries),
        plan_until=plan.until if plan is not None else None,
        max_attempts=1 + max_retries,
        send_at=times.send_at,
        scheduled_at=times.scheduled_at,
        scheduled_local=times.scheduled_local,
        expires_at=times.expires_at,
        ttl_seconds=times.ttl_seconds,
        purge_at=retention.purge_at(type_config.category, send_at=times.send_at),
        entity_id=request.entity_id,
        external_id=request.external_id,
        source=request.source,
        idempotency_key=caller.idempotency_key,
        request_id=caller.request_id,
        traceparent=caller.traceparent,
        is_test=caller.is_test,
        ignores_limits=request.ignore_limits,
        created_at=now,
    )
    return Prepared(
        notification=notification,
        is_time_adjusted=times.is_time_adjusted,
        mismatches=mismatches,
    )


def names_channels(request: NotificationRequest) -> bool:
    """Return whether a request names its channels, other than by a plan or ``all``."""
    return request.channels is not None and not is_all(request.channels)


def _check_devices(
    request: NotificationRequest, snapshot: RecipientSnapshot, problems: ProblemCollector
) -> None:
    """Add a problem for each device that isn't registered, or not for the request's user."""
    for index, device_id in enumerate(request.recipient.device_ids):
        user_id = snapshot.device_users.get(device_id)
        if user_id is None or request.user_id not in (None, user_id):
            reason = "Unknown device." if request.user_id is None else "Not a device of this user."
            problems.add(f"/recipient/device_ids/{index}", "unknown_device", reason)


def _check_without_type(request: NotificationRequest, problems: ProblemCollector) -> None:
    """Add the problems of a request's channels, plan, and content that don't depend on its type."""
    if request.plan is not None:
        _requested_plan(request, request.plan, problems)
    elif request.channels is not None and not is_all(request.channels):
        parse_channels(request.channels, problems=problems, takes_all=True)
    check_content(request, problems)


def _find_type(request: NotificationRequest, problems: ProblemCollector) -> TypeConfig | None:
    try:
        return types.get_type(request.type)
    except types.UnknownTypeError as error:
        suggestion = f" Did you mean {', '.join(error.suggestions)}?" if error.suggestions else ""
        problems.add("/type", "unknown_type", f"Unknown type.{suggestion}")
        return None


def _check_data(
    request: NotificationRequest,
    given: Mapping[str, Any],
    *,
    type_config: TypeConfig,
    problems: ProblemCollector,
) -> Sequence[FieldProblem]:
    """Check data against the schema of the template's type. Return where it differs if it may.

    A request with its own body uses no template, and its data is free. ``given`` is the data
    without the variables of a reminder: a schema can require these, and needn't know them.
    """
    if request.content.body is not None:
        return ()
    name = request.content.template_id or type_config.slug
    template_type = type_config if name == type_config.slug else types.find_type(name)
    if template_type is None or template_type.schema is None:
        return ()
    found = template_type.schema.find_mismatches(request.data)
    if found and len(given) < len(request.data):
        added = {f"/data/{name}" for name in request.data.keys() - given.keys()}
        found = [problem for problem in found if problem.pointer not in added]
    if not found or template_type.schema.mode is SchemaMode.WARN:
        return found
    # The template says more about a variable that it lacks.
    reported = {problem.pointer for problem in problems.problems}
    for problem in found:
        if problem.pointer not in reported:
            problems.add(problem.pointer, problem.code, problem.detail)
    return ()


def choose_channels(
    request: NotificationRequest,
    *,
    type_config: TypeConfig,
    recipient: Recipient,
    snapshot: RecipientSnapshot,
    problems: ProblemCollector,
    has_device: bool | None = None,
    is_test: bool = False,
) -> tuple[list[NewDelivery], Plan | None]:
    """Return a delivery for each channel, and the plan if some of them wait for a later step.

    An unreachable channel that the request names is a problem.
    """
    # The first of: the request's channels or plan, the recipient's channels, the type's. A push
    # without a device is never a problem, because a device may be registered before it is sent.
    preference, registered = NO_PREFERENCE, snapshot.registered.get(request.user_id or "")
    is_locked = types.is_locked(type_config.slug, request.content.template_id)
    if registered is not None:
        preference = registered.preference(
            type_slug=type_config.slug,
            category=type_config.category.value,
            is_locked=is_locked,
        )
    requested_plan = None
    if request.plan is not None:
        requested_plan = _requested_plan(request, request.plan, problems)
    is_explicit, channels = _requested_channels(
        request, requested_plan, type_config, preference, problems, is_test=is_test
    )
    deliveries = [
        _make_delivery(channel, request, recipient, problems, is_explicit=is_explicit)
        for channel in channels
    ]
    deliveries = _mark_refused(
        deliveries, request, recipient, type_config, snapshot, is_locked=is_locked
    )
    is_unreachable = all(delivery.failure_code is FailureCode.NO_ADDRESS for delivery in deliveries)
    if deliveries and is_unreachable and not problems.problems:
        problems.add(
            "/recipient", "no_address", _needs(delivery.channel for delivery in deliveries)
        )
    if has_device is False:
        deliveries = [
            _suppressed(delivery.channel, FailureCode.NO_ADDRESS, NO_DEVICE)
            if delivery.channel.has_devices and _is_open(delivery)
            else delivery
            for delivery in deliveries
        ]
    plan = requested_plan or (None if is_explicit else type_config.plan)
    if plan is None:
        return deliveries, None
    planned = apply_plan(deliveries, plan)
    return planned, plan if any(delivery.delay for delivery in planned) else None


def _needs(channels: Iterable[Channel]) -> str:
    """Return what a request without a reachable channel has to name."""
    fields = list(
        dict.fromkeys(f"`{field}`" for channel in channels for field in channel.spec.reach.fields)
    )
    return f"No channel can reach this recipient. Send {' or '.join(fields)}."


def _requested_channels(
    request: NotificationRequest,
    plan: Plan | None,
    type_config: TypeConfig,
    preference: Preference,
    problems: ProblemCollector,
    *,
    is_test: bool,
) -> tuple[bool, Sequence[Channel]]:
    if plan is not None:
        # Each step stands in for the others, so that an unreachable channel is no problem.
        return False, [channel for step in plan.steps for channel in step.channels]
    if request.channels is None:
        preferred = (parse_channel(name) for name in preference.channels)
        channels = list(dict.fromkeys(channel for channel in preferred if channel is not None))
        return False, channels or type_config.channels
    if is_all(request.channels):
        # A room is no way to reach a person: it gets what names it.
        has_room = request.recipient.room is not None or type_config.room is not None
        every = every_channel(test=is_test)
        return False, [channel for channel in every if channel.is_personal or has_room]
    return True, parse_channels(request.channels, problems=problems, takes_all=True)


def _make_delivery(
    channel: Channel,
    request: NotificationRequest,
    recipient: Recipient,
    problems: ProblemCollector,
    *,
    is_explicit: bool,
) -> NewDelivery:
    # A device may be registered before the message is sent.
    may_have_device = request.user_id is not None or bool(recipient.device_ids)
    reach, address = channel.spec.reach, recipient.address(channel)
    if channel.can_reach(address=address, user_id=request.user_id, has_device=may_have_device):
        refusal = country_refusal(channel, address)
        if refusal is None:
            return NewDelivery(channel=channel)
        if is_explicit:
            problems.add(reach.pointer, FailureCode.DESTINATION_DISABLED.value, refusal)
        return _suppressed(channel, FailureCode.DESTINATION_DISABLED, refusal)
    if is_explicit and all(problem.pointer != reach.pointer for problem in problems.problems):
        problems.add(reach.pointer, "no_address", reach.refusal)
    return _suppressed(channel, FailureCode.NO_ADDRESS, f"Skipped: {reach.refusal}")


def _suppressed(channel: Channel, code: FailureCode, reason: str) -> NewDelivery:
    status = DeliveryStatus.SUPPRESSED
    return NewDelivery(channel=channel, status=status, failure_code=code, failure_reason=reason)


def _requested_plan(
    request: NotificationRequest, plan: PlanRequest, problems: ProblemCollector
) -> Plan | None:
    if request.channels is not None:
        problems.add("/plan", "conflict", "Use either `channels` or `plan`.")
    return parse_plan(plan, problems)


def _check_plan_time(plan: Plan, lifetime: timedelta, problems: ProblemCollector) -> None:
    """Add a problem for each step of a request's plan that would begin after the expiry."""
    for index, step in enumerate(plan.steps):
        if step.after >= lifetime:
            reason = "The notification has expired by then."
            problems.add(f"/plan/steps/{index}/after", "after_expiry", reason)


def apply_plan(deliveries: Sequence[NewDelivery], plan: Plan) -> list[NewDelivery]:
    """Return the deliveries with their steps. A step that nothing before it holds back is due."""
    numbers = {delivery.channel: plan.step_of(delivery.channel) for delivery in deliveries}
    waiting_for = min(
        (
            numbers[delivery.channel]
            for delivery in deliveries
            if may_reach(delivery.channel, delivery.status, until=plan.until)
        ),
        default=max(numbers.values(), default=FIRST_STEP),
    )
    if not any(
        numbers[delivery.channel] > waiting_for for delivery in deliveries if _is_open(delivery)
    ):
        # Nothing waits: as without a plan.
        return list(deliveries)
    return [
        replace(
            delivery,
            step=number,
            delay=step.after if number > waiting_for else timedelta(0),
            skip_if_late=step.skip_if_late if _is_open(delivery) else None,
        )
        for delivery in deliveries
        for number in (numbers[delivery.channel],)
        for step in (plan.steps[number - 1],)
    ]


def _is_open(delivery: NewDelivery) -> bool:
    return delivery.status is DeliveryStatus.PENDING


def _mark_refused(
    deliveries: list[NewDelivery],
    request: NotificationRequest,
    recipient: Recipient,
    type_config: TypeConfig,
    snapshot: RecipientSnapshot,
    *,
    is_locked: bool,
) -> list[NewDelivery]:
    """Return the deliveries, those that their recipient or address refuses as suppressed."""
    if not snapshot.suppressed and request.user_id not in snapshot.registered:
        return deliveries
    marked = []
    for delivery in deliveries:
        refusal = snapshot.refusal_of(
            user_id=request.user_id,
            channel=delivery.channel.value,
            address=recipient.address(delivery.channel),
            type_slug=type_config.slug,
            category=type_config.category.value,
            is_locked=is_locked,
        )
        marked.append(
            delivery
            if refusal is None
            else _suppressed(delivery.channel, refusal.code, refusal.reason)
        )
    return marked


def addresses_of(
    request: NotificationRequest, registered: RegisteredRecipient | None
) -> list[tuple[str, str]]:
    """Return the normalized (channel, address) pairs whose suppressions to look up."""
    known = registered or _UNREGISTERED
    found: list[tuple[str, str]] = []
    for kind in ADDRESS_KINDS.values():
        own = _normal(getattr(request.recipient, kind.field), kind.normalize)
        if address := own or getattr(known, kind.field):
            found += [(channel.value, address) for channel in channels_of(kind)]
    return found


def _normal(address: str | None, normalize: Callable[[str], str]) -> str | None:
    try:
        return None if address is None else normalize(address)
    except InvalidAddressError:
        # prepare() reports it.
        return None


def load_recipients(requests: Sequence[NotificationRequest], *, now: datetime) -> RecipientSnapshot:
    """Read the recipients, suppressions, and named devices of a batch in up to three queries."""
    # One query for a single request that names its addresses. For a batch, the registered
    # recipients come first, so that each address is normalized once.
    named = addresses_of(requests[0], None) if len(requests) == 1 else []
    snapshot = recipients.load_snapshot((r.user_id for r in requests if r.user_id), named, now=now)
    registered = snapshot.registered
    others = [
        pair
        # A single recipient who isn't registered has the named addresses alone.
        for r in (requests if registered or not named else ())
        for pair in addresses_of(r, registered.get(r.user_id or ""))
        if pair not in named
    ]
    device_ids = [device_id for r in requests for device_id in r.recipient.device_ids]
    return RecipientSnapshot(
        registered=registered,
        suppressed={**snapshot.suppressed, **recipients.find_suppressed(others, now=now)},
        device_users=devices.find_users(device_ids) if device_ids else {},
    )
