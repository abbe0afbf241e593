"""Structures of the type and template operations."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from domain.channels import Channel
from domain.retry import UnknownPolicy
from domain.states import Category, ManagedBy, Priority, SchemaMode
from domain.stored import known_member
from notifications.catalog.approval import ApprovalRequest
from notifications.catalog.definitions import ActionRequest, WhatsAppTemplateRequest
from notifications.catalog.digests import DigestRequest
from notifications.catalog.plans import DEFAULT_FALLBACK_AFTER_SECONDS, PlanRequest
from notifications.catalog.schemas import schema_mode
from notifications.catalog.texts import TextRulesRequest
from notifications.catalog.types import max_priority
from notifications.content.templates import Part, Parts, Version
from notifications.documents.catalog import NotificationTypeDocument
from notifications.models.catalog import NOTE_LENGTH
from notifications.validation import ProblemCollector

from ..http.body import convert
from ..http.fields import EXAMPLE_DATA, EXAMPLE_TIME, TypeSlug, view_of
from ..http.paging import PageView

EXAMPLE_PARTS = {
    "default": {"subject": "Paid", "body": "We have your {{ amount }} for {{ video_title }}."}
}


class TypeView(msgspec.Struct, kw_only=True, frozen=True):
    """A notification type."""

    slug: TypeSlug
    name: Annotated[str, Meta(examples=["Payment confirmed"])]
    description: Annotated[str, Meta(examples=[""])]
    category: Annotated[Category, Meta(examples=["transactional"])]
    priority: Annotated[Priority, Meta(examples=["normal"])]
    max_priority: Annotated[Priority, Meta(examples=["high"])]
    """Highest priority that a request may have."""
    channels: list[Channel]
    room: str | None = None
    """The room of messages that name none."""
    max_retries: Annotated[int, Meta(examples=[3])]
    ttl_seconds: int | None = None
    notify_before_seconds: int | None = None
    on_unknown: UnknownPolicy
    fallback_channel: Channel | None = None
    """Used only if no other channel has delivered after fallback_after_seconds."""
    fallback_after_seconds: Annotated[int, Meta(examples=[600])]
    plan: PlanRequest | None = None
    digest: DigestRequest | None = None
    sms: TextRulesRequest
    actions: Annotated[list[ActionRequest], Meta(examples=[[]])] = []
    approved_templates: Annotated[list[WhatsAppTemplateRequest], Meta(examples=[[]])]
    example_data: Annotated[dict[str, Any], Meta(examples=[EXAMPLE_DATA])]
    schema: dict[str, Any] | None = None
    """JSON Schema of a request's data; null: none."""
    schema_mode: Annotated[SchemaMode, Meta(examples=["reject"])] = SchemaMode.REJECT
    sensitive_variables: Annotated[list[str], Meta(examples=[[]])]
    """Those of the request, and those that the schema marks."""
    brand: str | None = None
    """The brand of messages that name none."""
    layout: str | None = None
    """The frame of its emails."""
    console_send: Annotated[bool, Meta(examples=[False])] = False
    """Whether staff may send one message of it from the console."""
    approval: ApprovalRequest | None = None
    """Which of its broadcasts another person approves; null: as the setting for marketing says."""
    managed_by: Annotated[ManagedBy, Meta(examples=["console"])] = ManagedBy.CONSOLE
    """Where it is changed."""
    repository: str | None = None
    """Of the files, for a type that is managed by code."""
    is_active: Annotated[bool, Meta(examples=[True])]
    template_version: Annotated[int, Meta(examples=[0])]
    """The published version; 0 is the built-in one."""
    created_at: datetime
    updated_at: datetime


class TypeList(PageView[TypeView], kw_only=True, frozen=True):
    """A page of types, by slug."""


class TemplateVersionView(msgspec.Struct, kw_only=True, frozen=True):
    """A template version. Number 0 is the built-in one, without dates or an author."""

    type: TypeSlug
    number: Annotated[int, Meta(examples=[1])]
    is_published: Annotated[bool, Meta(examples=[True])]
    parts: Annotated[dict[str, dict[str, str]], Meta(examples=[EXAMPLE_PARTS])]
    note: str = ""
    created_at: datetime | None = None
    created_by: str | None = None
    published_at: Annotated[datetime | None, Meta(examples=[EXAMPLE_TIME])] = None


class TemplateVersionList(PageView[TemplateVersionView], kw_only=True, frozen=True):
    """A page of a type's template versions, newest first."""


def type_view(document: NotificationTypeDocument) -> TypeView:
    """Return a stored type as the API shows it."""
    return view_of(
        TypeView,
        document,
        slug=document["_id"],
        description=document.get("description") or "",
        max_priority=max_priority(document),
        template_version=document.get("template_version") or 0,
        fallback_after_seconds=document.get("fallback_after_seconds")
        or DEFAULT_FALLBACK_AFTER_SECONDS,
        approved_templates=document.get("approved_templates") or [],
        on_unknown=known_member(document["on_unknown"], otherwise=UnknownPolicy.FAIL),
        actions=document.get("actions") or [],
        sms=document.get("sms") or {},
        schema=json.loads(text) if (text := document.get("schema")) else None,
        schema_mode=schema_mode(document.get("schema_mode")),
    )


def version_view(version: Version, *, published_number: int) -> TemplateVersionView:
    """Return a version as the API shows it."""
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


Source = Annotated[str, Meta(description="Liquid; see docs/guides/templates.md for the filters.")]


if TYPE_CHECKING:

    class PartsRequest(msgspec.Struct):
        """Its fields follow from the channels, which a type checker can't know."""

else:
    PartsRequest = msgspec.defstruct(
        "PartsRequest",
        [(part.value, Source | None, None) for part in Part],
        namespace={
            "__doc__": "A template in one language. Omitted parts are built-in or derived from the "
            "others."
        },
        module=__name__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


class TemplateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new template version. It isn't used until it's published."""

    parts: Annotated[
        dict[str, PartsRequest],
        Meta(
            description="By language: ``default``, and such as ``pt`` or ``pt-BR``.",
            examples=[EXAMPLE_PARTS],
        ),
    ]
    note: Annotated[
        str, Meta(max_length=NOTE_LENGTH, description="The changes.", examples=["Shorter."])
    ] = ""


class EmptyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of an action without parameters."""


def template_parts(raw: Mapping[str, Any]) -> tuple[Parts, str]:
    """Return the parts and the note of a body. Raises ApiError and InvalidRequestError."""
    request = convert(raw, TemplateRequest)
    problems = ProblemCollector()
    problems.check_one_line(request.note, "/note")
    problems.raise_if_any()
    return given_parts(request.parts), request.note


def given_parts(parts: Mapping[str, PartsRequest]) -> Parts:
    """Return the texts that a request has, by language and part."""
    return {
        language: {k: v for k, v in msgspec.structs.asdict(texts).items() if v is not None}
        for language, texts in parts.items()
    }
