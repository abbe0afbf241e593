"""What callers send about templates, and the checks of what it says."""

from typing import Annotated

import msgspec
from msgspec import Meta

from ..content.linting import TemplateFault
from ..content.templates import Parts
from ..models.catalog import NOTE_LENGTH
from ..store import Document
from ..validation import FieldProblem, InvalidRequestError
from .parsing import convert
from .problems import Problem

Source = Annotated[str, Meta(description="Liquid; docs/adding_a_type.md has the filters.")]


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
        raise InvalidRequestError(errors)
    request = convert(raw, TemplateRequest)
    given = {
        language: {k: v for k, v in msgspec.structs.asdict(texts).items() if v is not None}
        for language, texts in request.parts.items()
    }
    return given, request.note


def refusal(faults: list[TemplateFault]) -> InvalidRequestError:
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
