"""Documents of :mod:`notifications.models.catalog`, which describes their fields."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from notifyproject.db.collections import Documents
from recipients.documents import DigestWindow


class PlanStep(TypedDict):
    """Channels that are used together, in :attr:`TypePlan.steps`."""

    channels: list[str]
    after: int
    skip_if_late: NotRequired[int]


class TypePlan(TypedDict):
    """A type's channels in steps, in :attr:`NotificationTypeDocument.plan`."""

    until: str
    steps: list[PlanStep]


class TypeDigest(TypedDict):
    """How a type's messages become one, in :attr:`NotificationTypeDocument.digest`."""

    channels: list[str]
    key: str | None
    window: DigestWindow
    leading: bool
    sliding: bool
    max_items: int
    min_items: int
    only_over_limit: bool


class TypeTextRules(TypedDict):
    """What an SMS may cost, in :attr:`NotificationTypeDocument.sms`."""

    max_units: int
    allow_unicode: bool


class TypeApproval(TypedDict):
    """Which broadcasts are approved, in :attr:`NotificationTypeDocument.approval`."""

    above: int
    by: str


class TypeAction(TypedDict):
    """A button in the inbox, in :attr:`NotificationTypeDocument.actions`."""

    id: str
    label: str
    style: str
    link: str | None


class EmergencyChangeDocument(TypedDict):
    """What staff changed, in :attr:`NotificationTypeDocument.emergency_changes`."""

    reason: str
    by: str
    at: datetime
    pushed_at: NotRequired[datetime | None]


class ApprovedTemplate(TypedDict):
    """A WhatsApp template, in :attr:`NotificationTypeDocument.approved_templates`."""

    locale: str
    name: str
    language: str
    parameters: list[str]
    body: NotRequired[str]
    button: NotRequired[str]


class NotificationTypeDocument(TypedDict):
    """A stored :class:`~notifications.models.catalog.NotificationType`."""

    _id: str
    name: str
    description: str
    category: str
    categories: list[str]
    priority: str
    max_priority: NotRequired[str | None]
    channels: list[str]
    room: NotRequired[str | None]
    max_retries: int
    ttl_seconds: NotRequired[int | None]
    notify_before_seconds: NotRequired[int | None]
    on_unknown: str
    example_data: dict[str, Any]
    schema: NotRequired[str]
    schema_mode: NotRequired[str]
    sensitive_variables: list[str]
    template_version: NotRequired[int]
    fallback_channel: NotRequired[str | None]
    fallback_after_seconds: int
    plan: NotRequired[TypePlan | None]
    digest: NotRequired[TypeDigest | None]
    sms: NotRequired[TypeTextRules | None]
    actions: NotRequired[list[TypeAction] | None]
    approved_templates: list[ApprovedTemplate]
    brand: NotRequired[str | None]
    layout: NotRequired[str | None]
    console_send: NotRequired[bool]
    approval: NotRequired[TypeApproval | None]
    managed_by: NotRequired[str]
    repository: NotRequired[str | None]
    emergency_changes: NotRequired[list[EmergencyChangeDocument]]
    is_active: bool
    created_at: datetime
    updated_at: datetime


class TemplateVersionDocument(TypedDict):
    """A stored :class:`~notifications.models.catalog.TemplateVersion`."""

    _id: str
    type: str
    number: int
    parts: dict[str, dict[str, str]]
    note: str
    created_at: datetime
    created_by: str
    published_at: NotRequired[datetime]


class DesignDocument(TypedDict):
    """A stored :class:`~notifications.models.catalog.Design`."""

    _id: int
    partials: dict[str, dict[str, dict[str, str]]]
    layouts: dict[str, str]
    brands: dict[str, dict[str, Any]]
    translations: dict[str, dict[str, Any]]
    changed_in: dict[str, int]
    created_at: datetime
    created_by: str
    touches: NotRequired[int]


NOTIFICATION_TYPES = Documents("notification_types", NotificationTypeDocument)
TEMPLATE_VERSIONS = Documents("template_versions", TemplateVersionDocument)
DESIGNS = Documents("designs", DesignDocument)
