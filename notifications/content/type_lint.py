"""Everything to be said of types with their texts before they are pushed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import structlog

from domain import type_rules
from domain.type_rules import Finding, Parts
from notifications.documents.catalog import NOTIFICATION_TYPES, NotificationTypeDocument

from ..catalog.designs import Design
from ..validation import InvalidRequestError
from . import type_files
from .type_files import NewContent

log = structlog.get_logger(__name__)


def lint_types(new: Sequence[NewContent], *, design: Design) -> list[list[Finding]]:
    """Return what would be refused of each type or, if nothing, what the rules find."""
    slugs = [each.slug for each in new]
    stored = {
        document["_id"]: document for document in NOTIFICATION_TYPES().find({"_id": {"$in": slugs}})
    }
    return [[*_lint_type(each, stored.get(each.slug), design)] for each in new]


def find_advice(
    slug: str,
    definition: Mapping[str, Any],
    parts: Parts,
    *,
    published: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """Return what the rules find. If one of them fails, it is logged: they only advise."""
    try:
        return type_rules.find(definition, parts, published=published)
    except Exception:
        log.exception("type_rules_failed", type=slug)
        return []


def _lint_type(
    new: NewContent, before: NotificationTypeDocument | None, design: Design
) -> Iterator[Finding]:
    try:
        fields = type_files.validate(new, before, design=design)
    except InvalidRequestError as refused:
        for problem in refused.problems:
            yield Finding(code=problem.code, pointer=problem.pointer, detail=problem.detail)
        return
    # The rules read a text with the same care as a renderer, so it must be within its limits.
    if faults := type_files.find_faults(new.slug, fields, new.texts, design=design):
        yield from faults
        return
    yield from find_advice(
        new.slug,
        type_files.definition_of(fields),
        new.texts,
        published=type_files.definition_of(before) if before else None,
    )
