"""What callers send about types and templates, and the checks of what it says."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from .. import types
from ..intake.channels import ALL, by_name
from ..intake.problems import Collector, FieldProblem, InvalidRequest
from ..models.templates import NOTE_LENGTH
from ..retry import DEFAULT_MAX_RETRIES, MAX_RETRIES, UnknownPolicy
from ..states import Category, Channel, Priority
from ..store import Document
from ..templates import Fault, Parts
from ..timing import MAX_TTL
from .parsing import convert
from .problems import Problem

MAX_TTL_SECONDS = int(MAX_TTL.total_seconds())
RESERVED = "recipient"
"""What templates call the person."""
Source = Annotated[str, Meta(description="Liquid; docs/adding_a_type.md has the filters.")]


class TypeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type, as it is to be. What is left out gets its default, not what it was before."""

    name: Annotated[str, Meta(min_length=1, max_length=120)]
    description: Annotated[str, Meta(max_length=2_000)] = ""
    category: Annotated[str, Meta(description=", ".join(Category))]
    priority: Annotated[str, Meta(description=", ".join(Priority))] = Priority.NORMAL.value
    channels: Annotated[
        list[str], Meta(description="Used when neither the caller nor the recipient names any.")
    ]
    max_retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] = DEFAULT_MAX_RETRIES
    ttl_seconds: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_TTL_SECONDS,
                description="How long after its send time it is worth sending; null: for ever.",
            ),
        ]
        | None
    ) = None
    on_unknown: Annotated[
        str, Meta(description=f"When nobody knows whether it went: {', '.join(UnknownPolicy)}.")
    ] = UnknownPolicy.RETRY.value
    example_data: Annotated[
        dict[str, Any], Meta(description="Every variable that templates may use, with an example.")
    ] = {}
    sensitive_variables: Annotated[
        list[Annotated[str, Meta(max_length=64)]], Meta(max_length=100)
    ] = []
    is_active: bool = True


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


class NothingRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An action that needs to be told nothing."""


def type_fields(slug: str, request: TypeRequest) -> dict[str, Any]:
    """Return a type's fields as they are stored; raises InvalidRequest."""
    problems = Collector()
    if not types.SLUG.fullmatch(slug):
        problems.add(
            "",
            "invalid_slug",
            "A slug has a-z, 0-9 and _, begins with a letter, at most 64 in all.",
        )
    if not request.name.strip():
        problems.add("/name", "blank", "A type has a name for people.")
    for field, vocabulary in (
        ("category", Category),
        ("priority", Priority),
        ("on_unknown", UnknownPolicy),
    ):
        if getattr(request, field) not in {member.value for member in vocabulary}:
            expected = f"Expected one of {', '.join(vocabulary)}."
            problems.add(f"/{field}", "unknown_value", expected)
    is_all = request.channels == [ALL]
    channels = list(Channel) if is_all else by_name(request.channels, problems=problems)
    for index, name in enumerate(request.sensitive_variables):
        if not types.VARIABLE.fullmatch(name):
            problems.add(f"/sensitive_variables/{index}", "invalid", "Not a variable's name.")
    if RESERVED in request.example_data:
        problems.add(f"/example_data/{RESERVED}", "reserved", "Templates call the person so.")
    problems.raise_if_any()
    return {
        **msgspec.structs.asdict(request),
        "channels": [channel.value for channel in channels],
        "sensitive_variables": list(dict.fromkeys(request.sensitive_variables)),
    }


def template_parts(raw: Document) -> tuple[Parts, str]:
    """Return the parts and the note of a body; raises Problem 422 with every part's pointer."""
    parts = raw.get("parts")
    errors: list[FieldProblem] = []
    if isinstance(parts, dict):
        for language, texts in parts.items():
            try:
                convert(texts, PartsRequest, at=f"/parts/{_token(language)}")
            except Problem as problem:
                errors += problem.errors
    if errors:
        raise InvalidRequest(errors)
    request = convert(raw, TemplateRequest)
    given = {
        language: {k: v for k, v in msgspec.structs.asdict(texts).items() if v is not None}
        for language, texts in request.parts.items()
    }
    return given, request.note


def refusal(faults: list[Fault]) -> InvalidRequest:
    """Return what is wrong with a template, each fault with its pointer and line."""
    return InvalidRequest([FieldProblem(_pointer(f), f.code, f.text) for f in faults])


def _pointer(fault: Fault) -> str:
    pointer = "/parts"
    if fault.language is not None:
        pointer += f"/{_token(fault.language)}"
    return f"{pointer}/{fault.part}" if fault.part else pointer


def _token(text: str) -> str:
    """Return a key as part of a JSON Pointer."""
    return text.replace("~", "~0").replace("/", "~1")
