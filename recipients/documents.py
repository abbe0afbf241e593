"""Documents of :mod:`recipients.models`, which describes their fields."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from notifyproject.db.collections import Documents


class PersonalQuietHoursDocument(TypedDict):
    """A stored :class:`~recipients.models.PersonalQuietHours`."""

    enabled: bool
    start: str
    end: str
    timezone: NotRequired[str]


class DigestWindow(TypedDict, total=False):
    """When a digest is sent: after ``minutes``, or by a schedule.

    In a recipient's preferences, and in
    :attr:`~notifications.documents.catalog.NotificationTypeDocument.digest`.
    """

    minutes: int | None
    every: str | None
    at: str
    days: list[str]
    zone: str


class StoredPreference(TypedDict, total=False):
    """A recipient's preference, in :attr:`RecipientDocument.preferences`."""

    muted: bool
    channels: list[str]
    muted_channels: list[str]
    notify_before: int
    digest: DigestWindow | str  # ``off`` is the only text


class RecipientDocument(TypedDict):
    """A stored :class:`~recipients.models.Recipient`."""

    _id: str
    email: NotRequired[str]
    phone: NotRequired[str]
    name: NotRequired[str]
    name_words: NotRequired[list[str]]
    locale: NotRequired[str]
    timezone: NotRequired[str]
    attributes: dict[str, Any]
    preferences: NotRequired[dict[str, StoredPreference]]
    quiet_hours: NotRequired[PersonalQuietHoursDocument]
    is_active: bool
    created_at: datetime
    updated_at: datetime


class SuppressionDocument(TypedDict):
    """A stored :class:`~recipients.models.Suppression`."""

    _id: str
    key: str
    channel: str
    address: NotRequired[str]
    reason: str
    source: str
    marketing_only: bool
    created_at: datetime
    expires_at: NotRequired[datetime]


class TopicMemberDocument(TypedDict):
    """A stored :class:`~recipients.models.TopicMember`."""

    _id: str
    topic: str
    user_id: str
    created_at: datetime


class ServiceWindowDocument(TypedDict):
    """A stored :class:`~recipients.models.ServiceWindow`."""

    _id: str
    last_inbound_at: datetime
    expires_at: datetime


class WhatsAppIdentityDocument(TypedDict):
    """A stored :class:`~recipients.models.WhatsAppIdentity`."""

    _id: str
    phone: str
    expires_at: datetime


class SoftBouncesDocument(TypedDict):
    """A stored :class:`~recipients.models.SoftBounces`."""

    _id: str
    events: list[str]
    expires_at: datetime


RECIPIENTS = Documents("recipients", RecipientDocument)
SUPPRESSIONS = Documents("suppressions", SuppressionDocument)
TOPIC_MEMBERS = Documents("topic_members", TopicMemberDocument)
SERVICE_WINDOWS = Documents("service_windows", ServiceWindowDocument)
WHATSAPP_IDENTITIES = Documents("whatsapp_identities", WhatsAppIdentityDocument)
SOFT_BOUNCES = Documents("soft_bounces", SoftBouncesDocument)
