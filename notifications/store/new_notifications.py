"""A notification that is about to be stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from domain.content import Content, Recipient, SensitiveContent
from domain.errors import FailureCode
from domain.plans import Until
from domain.states import Category, DeliveryStatus, Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """A delivery of a notification that is about to be stored."""

    channel: Channel
    status: DeliveryStatus = DeliveryStatus.PENDING
    step: int | None = None
    """Its step, from 1, in the notification's plan. None without a plan."""
    delay: timedelta = timedelta(0)
    """Time from the send time to the step."""
    skip_if_late: timedelta | None = None
    """The delivery expires if it can't be sent within this time of its step."""
    failure_code: FailureCode | None = None
    failure_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNotification:
    """A notification to store. Its ID is created beforehand, so that storing is idempotent."""

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
    """Sensitive values that are masked in content and data. They are stored encrypted."""
    deliveries: tuple[NewDelivery, ...]
    plan_until: Until | None = None
    """The goal after which no later step is sent. None without later steps."""
    max_attempts: int
    send_at: datetime
    """Send time, equal to ``created_at`` unless scheduled."""
    scheduled_at: datetime | None = None
    scheduled_local: str | None = None
    """Send time in the recipient's local time, set if it follows changes of their time zone."""
    expires_at: datetime | None = None
    ttl_seconds: int | None = None
    """Time to live from which the expiry derives. None if the expiry is absolute or absent."""
    purge_at: datetime | None = None
    entity_id: str | None = None
    external_id: str | None = None
    source: str | None = None
    idempotency_key: str | None = None
    request_id: str | None = None
    traceparent: str | None = None
    """Trace context of the request, the parent of delivery spans. None if not traced."""
    is_test: bool = False
    broadcast_id: ObjectId | None = None
    resent_from: ObjectId | None = None
    digest_id: ObjectId | None = None
    """The digest that it carries."""
    ignores_limits: bool = False
    """Sent beyond the limits of its recipient, and counted."""
    has_callback: bool = False
    created_at: datetime
