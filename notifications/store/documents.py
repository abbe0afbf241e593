"""Frozen records between the layers, and how they are read from documents."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.content import Attachment, Content, Recipient, SensitiveContent
from domain.errors import FailureCode
from domain.retry import RetryState
from domain.states import OPEN, AttemptStatus, Category, Channel, DeliveryStatus, Priority

Document = Mapping[str, Any]
S = DeliveryStatus
ERROR_LENGTH = 500
"""Longer explanations are cut."""
_REFERENCE = re.compile(r"([0-9a-f]{24})\.([a-z_]+)\.(\d{1,6})(?:\.([0-9a-f]{64}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class AttemptReference:
    """What names one attempt, here and at the provider: opaque to them, no address in it."""

    notification_id: ObjectId
    channel: Channel
    attempt_number: int
    device_id: str | None = None
    """A push goes to each of a person's devices: each is an attempt of its own."""

    def __str__(self) -> str:
        attempt = f"{self.notification_id}.{self.channel}.{self.attempt_number}"
        return attempt if self.device_id is None else f"{attempt}.{self.device_id}"

    @classmethod
    def parse(cls, text: str) -> "AttemptReference | None":
        """Return the reference a text is; None if it is not one of ours."""
        match = _REFERENCE.fullmatch(text)
        if match is None or match[2] not in {channel.value for channel in Channel}:
            return None
        return cls(ObjectId(match[1]), Channel(match[2]), int(match[3]), match[4])


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A channel of a notification that is about to be accepted."""

    channel: Channel
    status: DeliveryStatus = DeliveryStatus.PENDING
    fallback_for: Channel | None = None
    """It is sent only if this channel has not delivered the notification ``delay`` later."""
    delay: timedelta = timedelta(0)
    failure_code: FailureCode | None = None
    failure_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNotification:
    """A notification that is about to be accepted. Its id was made before, so accepting repeats."""

    id: ObjectId
    client_id: ObjectId
    user_id: str | None
    recipient: Recipient
    type: str
    category: Category
    priority: Priority
    content: Content
    data: Mapping[str, Any]
    secret: SensitiveContent | None = None
    """What content and data hide; it is stored sealed."""
    deliveries: tuple[NewDelivery, ...]
    max_attempts: int
    send_at: datetime
    """When it is due; equal to ``created_at`` for at once."""
    scheduled_at: datetime | None = None
    scheduled_local: str | None = None
    """What the registered person's own clock shows then: it follows them into another zone."""
    expires_at: datetime | None = None
    ttl_seconds: int | None = None
    """What the expiry follows from; None if it was given as an instant, or there is none."""
    purge_at: datetime | None = None
    entity_id: str | None = None
    external_id: str | None = None
    idempotency_key: str | None = None
    request_id: str | None = None
    traceparent: str | None = None
    """The request's span, for those of its deliveries; None if it is not traced."""
    is_test: bool = False
    """It goes to the sandbox."""
    broadcast_id: ObjectId | None = None
    """The broadcast that it is one of."""
    resent_from: ObjectId | None = None
    has_callback: bool = False
    """Its app wants to be told what becomes of it."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedDelivery:
    """A delivery that this worker, and no other, may send until the lease ends."""

    notification_id: ObjectId
    channel: Channel
    token: str
    lease_until: datetime
    claim_count: int
    attempt_count: int
    uncounted_attempts: int
    max_attempts: int
    first_due_at: datetime
    type: str
    category: Category
    priority: Priority
    user_id: str | None
    recipient: Recipient
    content: Content
    data: Mapping[str, Any]
    encrypted_content: str | None = None
    """What content and data hide."""
    accepted_targets: tuple[str, ...]
    expires_at: datetime | None
    purge_at: datetime | None
    request_id: str | None
    traceparent: str | None = None
    is_test: bool = False
    """It goes to the sandbox, and its outcome says nothing about any address, device or provider.
    """
    ambiguous_targets: tuple[str, ...] = ()
    """Devices that may have it, by an attempt that nobody knows the end of."""
    ambiguous_provider: str | None = None
    """Who may have taken it in such an attempt: no other is given it."""
    failed_over_from: str | None = None
    """Who has just not taken it: the next provider is asked at once."""
    fallback_for: Channel | None = None
    """It is not needed if this channel has delivered the notification."""
    channel_statuses: Mapping[Channel, DeliveryStatus] = field(default_factory=dict)
    """Where each channel of the notification stands."""
    fallback_channels: tuple[Channel, ...] = ()
    """Channels that wait for this one to fail."""
    device_ids: tuple[str, ...] = ()
    """The devices that the current attempt is for; empty for one address."""
    reference: str = field(init=False)
    """The current attempt's id, which providers give back to us in receipts."""

    def __post_init__(self) -> None:
        # Once: a mail's is asked for at a dozen places on its way.
        reference = AttemptReference(self.notification_id, self.channel, self.attempt_count)
        object.__setattr__(self, "reference", str(reference))

    def reference_to(self, device_id: str | None) -> str:
        """Return the id of the current attempt at one device."""
        if device_id is None:
            return self.reference
        return str(
            AttemptReference(self.notification_id, self.channel, self.attempt_count, device_id)
        )

    @property
    def targets(self) -> tuple[str | None, ...]:
        """Return the devices the current attempt is for, or None alone for one address."""
        return self.device_ids or (None,)

    @property
    def retry_state(self) -> RetryState:
        """What the retry policy needs to know."""
        return RetryState(
            priority=self.priority,
            attempt_count=self.attempt_count,
            uncounted_attempts=self.uncounted_attempts,
            max_attempts=self.max_attempts,
            first_due_at=self.first_due_at,
            expires_at=self.expires_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """What a provider said to one attempt, for its record."""

    provider: str
    message_id: str | None = None
    response: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetAttempt:
    """What became of the request for one of an attempt's devices."""

    device_id: str
    status: AttemptStatus
    finished_at: datetime
    duration_ms: int
    answer: ProviderAnswer
    code: FailureCode | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What became of one attempt, and what the delivery becomes by it.

    ``status`` sent, or failed, or pending again with ``next_attempt_at``, or unknown until then.
    """

    claimed: ClaimedDelivery
    status: DeliveryStatus
    finished_at: datetime
    duration_ms: int
    answer: ProviderAnswer
    next_attempt_at: datetime | None = None
    uncounted: bool = False
    code: FailureCode | None = None
    reason: str | None = None
    accepted_targets: tuple[str, ...] = field(default=())
    """Devices that have it, by this attempt or an earlier one."""
    ambiguous_targets: tuple[str, ...] = field(default=())
    """Devices that may have it, while others are to be tried again."""
    fails_over: bool = False
    """The provider has not taken it, and the next one is to be asked at once."""
    target_attempts: tuple[TargetAttempt, ...] = field(default=())
    """What became of it at each device; empty for one address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deferred:
    """A claimed delivery that is not sent now, and why: it uses up no attempt.

    ``status`` pending with ``next_attempt_at``, or failed, expired, cancelled, suppressed; or sent,
    if every device that is left has it.
    """

    claimed: ClaimedDelivery
    status: DeliveryStatus
    code: FailureCode
    reason: str
    next_attempt_at: datetime | None = None


def claimed_from(document: Document, token: str) -> ClaimedDelivery:
    """Return the delivery of a stored notification that is claimed with ``token``."""
    delivery = next(d for d in document["delivery"] if (d.get("claim") or {}).get("token") == token)
    return ClaimedDelivery(
        notification_id=document["_id"],
        channel=Channel(delivery["channel"]),
        token=token,
        lease_until=delivery["claim"]["lease_until"],
        claim_count=delivery["claim_count"],
        attempt_count=delivery["attempt_count"],
        uncounted_attempts=delivery["excused_count"],
        max_attempts=delivery["max_attempts"],
        first_due_at=delivery["first_due_at"],
        type=document["type"],
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        user_id=document.get("user_id"),
        recipient=recipient_of(document),
        content=content_of(document),
        data=document["data"],
        encrypted_content=document.get("sealed"),
        accepted_targets=tuple(delivery["accepted_targets"]),
        expires_at=document.get("expires_at"),
        purge_at=document.get("purge_at"),
        request_id=document.get("request_id"),
        traceparent=document.get("traceparent"),
        is_test=document.get("is_test", False),
        ambiguous_targets=tuple(delivery.get("doubtful_targets") or ()),
        ambiguous_provider=delivery.get("doubtful_provider"),
        failed_over_from=delivery.get("passed_over"),
        fallback_for=Channel(delivery["instead_of"]) if "instead_of" in delivery else None,
        fallback_channels=tuple(
            Channel(other["channel"])
            for other in document["delivery"]
            if other.get("instead_of") == delivery["channel"] and other["status"] == S.PENDING
        ),
        channel_statuses={Channel(d["channel"]): _channel_status(d) for d in document["delivery"]},
    )


def _channel_status(delivery: Document) -> DeliveryStatus:
    """Return where a channel stands: a push that one device has is delivered, to other channels."""
    status = DeliveryStatus(delivery["status"])
    is_reported = delivery["channel"] == Channel.PUSH and delivery.get("delivered_at") is not None
    return S.DELIVERED if is_reported and status in OPEN else status


def recipient_of(document: Mapping[str, Any]) -> Recipient:
    """Return the recipient stored in a notification's document."""
    stored = document["recipient"]
    return Recipient(**{**stored, "device_ids": tuple(stored.get("device_ids", ()))})


def content_of(document: Mapping[str, Any]) -> Content:
    """Return the content stored in a notification's document."""
    stored = document["content"]
    attachments = tuple(Attachment(**one) for one in stored.get("attachments", ()))
    return Content(**{**stored, "attachments": attachments})
