"""Types and templates in the API."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.retry import UnknownPolicy
from domain.states import Category, Channel, Priority
from notifications.catalog.definitions import WhatsAppTemplateRequest
from notifications.catalog.types import DEFAULT_FALLBACK_AFTER_SECONDS
from notifications.content.linting import TemplateFault
from notifications.content.templates import Parts, Version
from notifications.models.catalog import NOTE_LENGTH
from notifications.store import Document
from notifications.validation import FieldProblem, InvalidRequestError

from ..http.body import convert
from ..http.problems import ApiError


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


class TemplateVersionView(msgspec.Struct, kw_only=True, frozen=True):
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


class TemplateVersionList(msgspec.Struct, kw_only=True, frozen=True):
    """The versions of a type's template, the newest first."""

    results: list[TemplateVersionView]
    next: str | None
    previous: str | None


def type_view(document: Document) -> TypeView:
    """Return a stored type as it is shown."""
    fields = {name: document.get(name) for name in TypeView.__struct_fields__}
    return msgspec.convert(
        {
            **fields,
            "slug": document["_id"],
            "description": document.get("description") or "",
            "template_version": document.get("template_version") or 0,
            "fallback_after_seconds": document.get("fallback_after_seconds")
            or DEFAULT_FALLBACK_AFTER_SECONDS,
            "approved_templates": document.get("approved_templates") or [],
        },
        TypeView,
    )


def version_view(version: Version, *, published_number: int) -> TemplateVersionView:
    """Return a version as it is shown; ``published`` is the number of the published one."""
    return TemplateVersionView(
        type=version.type,
        number=version.number,
        is_published=version.number == published_number,
        parts={language: dict(texts) for language, texts in version.parts.items()},
        note=version.note,
        created_at=version.created_at,
        created_by=version.created_by,
        published_at=version.published_at,
    )


Source = Annotated[str, Meta(description="Liquid; docs/guides/templates.md has the filters.")]


class PartsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The texts of a template in one language. What is left out is the files', or made of those."""

    subject: Source | None = None
    body: Source | None = None
    email_html: Source | None = None
    push_title: Source | None = None
    push: Source | None = None
    whatsapp: Source | None = None


class TemplateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new version of what a type says. It is used by nobody before it is published."""

    parts: Annotated[
        dict[str, PartsRequest],
        Meta(description="By language: ``default``, and such as ``pt`` or ``pt-BR``."),
    ]
    note: Annotated[str, Meta(max_length=NOTE_LENGTH, description="What has changed.")] = ""


class EmptyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action that needs to be told nothing."""


def template_parts(raw: Document) -> tuple[Parts, str]:
    """Return the parts and the note of a body; raises ApiError 422 with every part's pointer."""
    parts = raw.get("parts")
    errors: list[FieldProblem] = []
    if isinstance(parts, dict):
        for language, texts in parts.items():
            try:
                convert(texts, PartsRequest, pointer=f"/parts/{_token(language)}")
            except ApiError as problem:
                errors += problem.errors
    if errors:
        raise InvalidRequestError(errors)
    request = convert(raw, TemplateRequest)
    given = {
        language: {k: v for k, v in msgspec.structs.asdict(texts).items() if v is not None}
        for language, texts in request.parts.items()
    }
    return given, request.note


def template_errors(faults: list[TemplateFault]) -> InvalidRequestError:
    """Return what is wrong with a template, each fault with its pointer and line."""
    return InvalidRequestError([FieldProblem(_pointer(f), f.code, f.text) for f in faults])


def _pointer(fault: TemplateFault) -> str:
    pointer = "/parts"
    if fault.language is not None:
        pointer += f"/{_token(fault.language)}"
    return f"{pointer}/{fault.part}" if fault.part else pointer


def _token(text: str) -> str:
    """Return a key as part of a JSON Pointer."""
    return text.replace("~", "~0").replace("/", "~1")
