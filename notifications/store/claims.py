"""A claimed delivery, and how its claim ends: settled, or not sent."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import PUSH, Channel
from domain.content import Content, Recipient
from domain.daily_units import UnitUse
from domain.errors import FailureCode
from domain.plans import FIRST_STEP, Until, until_of
from domain.retry import RetryState
from domain.states import OPEN, AttemptStatus, Category, DeliveryStatus, Priority
from domain.wait_reasons import Hold, WaitReason
from notifications.documents.notification import DeliveryDocument, NotificationDocument

from .reading import content_of, current_hold, held_for, holds_of, recipient_of
from .references import AttemptReference

S = DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """A delivery that only this worker may send until its lease ends."""

    notification_id: ObjectId
    channel: Channel
    token: str
    lease_until: datetime
    claim_count: int
    attempt_count: int
    uncounted_attempts: int
    """Attempts since the last reopening that an outage ended, which don't use up a retry."""
    max_attempts: int
    first_due_at: datetime
    held_for: timedelta = timedelta(0)
    """How long outages and the provider's rate limits have held it since the last reopening."""
    held_until: datetime | None = None
    """Until when an outage held it before this claim."""
    client_id: ObjectId
    type: str
    category: Category
    priority: Priority
    user_id: str | None
    recipient: Recipient
    content: Content
    data: Mapping[str, Any]
    created_at: datetime
    encrypted_content: str | None = None
    accepted_targets: tuple[str, ...]
    expires_at: datetime | None
    purge_at: datetime | None
    request_id: str | None
    traceparent: str | None = None
    is_deleted: bool = False
    """Deleted by its client while an attempt was in progress."""
    is_test: bool = False
    """Sent to the sandbox: the result says nothing about an address, device, or provider."""
    last_provider: str | None = None
    """Provider of the last attempt."""
    ambiguous_targets: tuple[str, ...] = ()
    ambiguous_provider: str | None = None
    """Provider of an earlier ambiguous attempt. No other provider may get the delivery."""
    series_first: int | None = None
    """The attempt that the current one repeats at an idempotent provider."""
    failed_over_from: str | None = None
    """Provider that has just refused the delivery. The next provider is used at once."""
    step: int = FIRST_STEP
    plan_until: Until = Until.DELIVERED
    """The goal that makes a later step unnecessary."""
    skip_if_late: timedelta | None = None
    digest_id: ObjectId | None = None
    """The digest that it waits for."""
    digest_epoch: int = 0
    """The epoch of the digest's lease that selected it; 0: none."""
    may_join_digest: bool = True
    """False for a carrier, a resend, and a delivery that left its digest."""
    ignores_limits: bool = False
    hold: Hold | None = None
    """The outage that held it until this claim."""
    holds: tuple[Hold, ...] = ()
    """All outages that have held it."""
    limit_uses: tuple["LimitUse", ...] = ()
    """Uses of limits that are reserved for the current claim."""
    unit_use: UnitUse | None = None
    """Parts of a text that are reserved for the current claim."""
    has_soft_bounces: bool = False
    """The address has soft bounces, which an acceptance may end. False if they weren't read."""
    is_marked_read: bool = False
    is_acted: bool = False
    """By its recipient, as the client says."""
    channel_statuses: Mapping[Channel, DeliveryStatus] = field(default_factory=dict)
    moved_to: str | None = None
    """The recipient's time zone by the registry if it has changed since acceptance."""
    later_channels: tuple[Channel, ...] = ()
    """Channels of the plan's next step, which wait for this one."""
    earlier_attempts: int = 0
    """Attempts before the last reopening. They don't count for the limit or the delays."""
    device_ids: tuple[str, ...] = ()
    """Devices of the current attempt. Empty on a channel without devices."""
    started_at: datetime | None = None
    """When the current attempt started. None before."""
    worker: str | None = None
    provider: str | None = None
    """Worker and provider of the current attempt."""
    platforms: Mapping[str, str] = field(default_factory=dict)
    """Platforms of these devices, by their IDs."""
    reference: str = field(init=False)
    """ID of the current attempt, which providers return in receipts."""

    def __post_init__(self) -> None:
        # Computed once, since it is read at a dozen places.
        reference = AttemptReference(self.notification_id, self.channel, self.attempt_count)
        object.__setattr__(self, "reference", str(reference))

    @property
    def delivery_id(self) -> str:
        """The ID of the delivery in logs. It is the same for all attempts and devices."""
        return f"{self.notification_id}.{self.channel}"

    def reference_to(self, device_id: str | None) -> str:
        """Return the ID of the current attempt at a device, or of the attempt for None."""
        return self.reference if device_id is None else f"{self.reference}.{device_id}"

    @property
    def reader(self) -> Recipient:
        """The recipient as of now: times are written in the zone where they are."""
        return replace(self.recipient, timezone=self.moved_to) if self.moved_to else self.recipient

    @property
    def targets(self) -> tuple[str | None, ...]:
        """Devices of the current attempt, or ``(None,)`` on a channel without devices."""
        return self.device_ids or (None,)

    @property
    def retry_state(self) -> RetryState:
        """The fields that a retry decision needs, without attempts before the last reopening."""
        return RetryState(
            priority=self.priority,
            attempt_count=self.attempt_count - self.earlier_attempts,
            uncounted_attempts=self.uncounted_attempts,
            max_attempts=self.max_attempts - self.earlier_attempts,
            held_for=self.held_for,
            expires_at=self.expires_at,
        )


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A delivery that counts for one limit of its recipient."""

    counter_id: str
    delivery_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAttempt:
    """Result of an attempt at one device."""

    device_id: str
    status: AttemptStatus
    finished_at: datetime
    duration_ms: int
    provider_message_id: str | None = None
    response: Mapping[str, Any] | None = None
    code: FailureCode | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """Result of one attempt, and the next state of its delivery.

    ``status`` is sent, delivered, or failed, or pending or unknown until ``next_attempt_at``.
    """

    claimed: ClaimedDelivery
    status: DeliveryStatus
    finished_at: datetime
    duration_ms: int
    provider: str
    provider_message_id: str | None = None
    response: Mapping[str, Any] | None = None
    units: int | None = None
    """How many parts of a text may be billed."""
    next_attempt_at: datetime | None = None
    uncounted: bool = False
    code: FailureCode | None = None
    reason: str | None = None
    held_reason: WaitReason | None = None
    accepted_targets: tuple[str, ...] = field(default=())  # Devices that have it by now
    ambiguous_targets: tuple[str, ...] = field(default=())  # Devices that may have it
    fails_over: bool = False  # The provider refused it, and the next one is used at once
    target_attempts: tuple[TargetAttempt, ...] = field(default=())  # One for each device


@dataclass(frozen=True, slots=True)
class NotSent:
    """A claimed delivery that isn't sent now, and why. It uses no attempt.

    ``status`` is pending until ``next_attempt_at``, failed, expired, cancelled, or suppressed, or
    sent if every remaining device already has the message.
    """

    claimed: ClaimedDelivery
    status: DeliveryStatus
    code: FailureCode
    reason: str
    next_attempt_at: datetime | None = None
    held_reason: WaitReason | None = None
    digest_id: ObjectId | None = None
    """The digest that it joins."""
    hold: Hold | None = None
    """The outage that holds it from now on."""
    rate_of: str = ""
    """The provider account for whose next token it waits."""
    blocked_accounts: Collection[str] = ()
    """The provider accounts that send nothing else meanwhile, if that is why it waits."""


def claimed_delivery_of(
    document: NotificationDocument, delivery: DeliveryDocument, *, token: str, lease_until: datetime
) -> ClaimedDelivery:
    """Return a delivery of a notification's document, for the holder of its claim or digest."""
    late, hold = delivery.get("skip_if_late"), current_hold(delivery)
    return ClaimedDelivery(
        notification_id=document["_id"],
        channel=Channel(delivery["channel"]),
        token=token,
        lease_until=lease_until,
        claim_count=delivery["claim_count"],
        attempt_count=delivery["attempt_count"],
        uncounted_attempts=delivery["uncounted_attempts"],
        max_attempts=delivery["max_attempts"],
        earlier_attempts=delivery.get("earlier_attempts") or 0,
        first_due_at=delivery["first_due_at"],
        held_for=held_for(delivery),
        held_until=delivery.get("next_attempt_at") if hold is not None else None,
        client_id=document["client_id"],
        type=document["type"],
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        user_id=document.get("user_id"),
        recipient=recipient_of(document),
        content=content_of(document),
        data=document["data"],
        encrypted_content=document.get("encrypted_content"),
        accepted_targets=tuple(delivery["accepted_targets"]),
        expires_at=document.get("expires_at"),
        purge_at=document.get("purge_at"),
        request_id=document.get("request_id"),
        traceparent=document.get("traceparent"),
        is_deleted="deleted_at" in document,
        is_test=document.get("is_test", False),
        last_provider=delivery.get("provider"),
        ambiguous_targets=tuple(delivery.get("ambiguous_targets") or ()),
        ambiguous_provider=delivery.get("ambiguous_provider"),
        failed_over_from=delivery.get("failed_over_from"),
        step=_step_of(delivery),
        plan_until=until_of(document.get("plan_until", Until.DELIVERED)),
        skip_if_late=None if late is None else timedelta(seconds=late),
        digest_id=delivery.get("digest_id"),
        digest_epoch=delivery.get("digest_epoch") or 0,
        may_join_digest=not (
            delivery.get("skips_digest") or "digest_id" in document or "resent_from" in document
        ),
        created_at=document["created_at"],
        ignores_limits=document.get("ignores_limits", False),
        hold=hold,
        holds=holds_of(delivery),
        is_marked_read="marked_read_at" in document,
        is_acted="acted_at" in document,
        channel_statuses={Channel(d["channel"]): _channel_status(d) for d in document["delivery"]},
        later_channels=_next_step(document["delivery"], _step_of(delivery)),
    )


def _step_of(delivery: DeliveryDocument) -> int:
    return int(delivery.get("step") or FIRST_STEP)


def _next_step(deliveries: Sequence[DeliveryDocument], step: int) -> tuple[Channel, ...]:
    waiting = [d for d in deliveries if d["status"] == S.PENDING and _step_of(d) > step]
    following = min(map(_step_of, waiting), default=step)
    return tuple(Channel(d["channel"]) for d in waiting if _step_of(d) == following)


def _channel_status(delivery: DeliveryDocument) -> DeliveryStatus:
    """Return a channel's status. An open push has the status of its devices' receipts."""
    status = DeliveryStatus(delivery["status"])
    is_reported = delivery["channel"] == PUSH and delivery.get("delivered_at") is not None
    if is_reported and status in OPEN:
        return S.DELIVERED if delivery.get("read_at") is None else S.READ
    return status
