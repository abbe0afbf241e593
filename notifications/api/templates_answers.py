"""What answers about types and templates look like."""

from datetime import datetime
from typing import Any

import msgspec

from domain.retry import UnknownPolicy
from domain.states import Category, Channel, Priority

from ..catalog.definitions import WhatsAppTemplateRequest
from ..catalog.types import FALLBACK_AFTER
from ..content.templates import Version
from ..store import Document


class TypeView(msgspec.Struct, kw_only=True, frozen=True):
    """A registered type."""

    slug: str
    name: str
    description: str
    category: Category
    priority: Priority
    channels: list[Channel]
    max_retries: int
    ttl_seconds: int | None = None
    notify_before_seconds: int | None = None
    on_unknown: UnknownPolicy
    fallback_channel: Channel | None = None
    """Used only if the first other channel has not delivered in time."""
    fallback_after_seconds: int
    approved_templates: list[WhatsAppTemplateRequest]
    example_data: dict[str, Any]
    sensitive_variables: list[str]
    is_active: bool
    template_version: int
    """The version that new notifications take; 0 is the release's own."""
    created_at: datetime
    updated_at: datetime


class VersionView(msgspec.Struct, kw_only=True, frozen=True):
    """A version of what a type says. Number 0 is the release's own, without dates or an author."""

    type: str
    number: int
    is_published: bool
    parts: dict[str, dict[str, str]]
    note: str = ""
    created_at: datetime | None = None
    created_by: str | None = None
    published_at: datetime | None = None
    """When it was published last."""


class VersionList(msgspec.Struct, kw_only=True, frozen=True):
    """The versions of a type's template, the newest first."""

    results: list[VersionView]
    next: str | None
    previous: str | None


def type_view(document: Document) -> TypeView:
    """Return a stored type as it is shown."""
    shown = {name: document.get(name) for name in TypeView.__struct_fields__}
    return msgspec.convert(
        {
            **shown,
            "slug": document["_id"],
            "description": document.get("description") or "",
            "template_version": document.get("template_version") or 0,
            "fallback_after_seconds": document.get("fallback_after_seconds") or FALLBACK_AFTER,
            "approved_templates": document.get("approved_templates") or [],
        },
        TypeView,
    )


def version_view(version: Version, *, published: int) -> VersionView:
    """Return a version as it is shown; ``published`` is the number of the published one."""
    return VersionView(
        type=version.type,
        number=version.number,
        is_published=version.number == published,
        parts={language: dict(texts) for language, texts in version.parts.items()},
        note=version.note,
        created_at=version.created_at,
        created_by=version.created_by,
        published_at=version.published_at,
    )
