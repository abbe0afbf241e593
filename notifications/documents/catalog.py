"""Documents of :mod:`notifications.models.catalog`, which describes their fields."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from notifyproject.db.collections import Documents


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
    max_retries: int
    ttl_seconds: NotRequired[int | None]
    notify_before_seconds: NotRequired[int | None]
    on_unknown: str
    example_data: dict[str, Any]
    sensitive_variables: list[str]
    template_version: NotRequired[int]
    fallback_channel: NotRequired[str | None]
    fallback_after_seconds: int
    plan: NotRequired[Any | None]
    digest: NotRequired[Any | None]
    actions: NotRequired[Any | None]
    approved_templates: Any
    is_active: bool
    created_at: datetime
    updated_at: datetime


class TemplateVersionDocument(TypedDict):
    """A stored :class:`~notifications.models.catalog.TemplateVersion`."""

    _id: str
    type: str
    number: int
    parts: Any
    note: str
    created_at: datetime
    created_by: str
    published_at: NotRequired[datetime]


NOTIFICATION_TYPES = Documents("notification_types", NotificationTypeDocument)
TEMPLATE_VERSIONS = Documents("template_versions", TemplateVersionDocument)
