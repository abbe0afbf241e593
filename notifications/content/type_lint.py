"""Everything to be said of types with their texts before they are pushed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import structlog

from domain import design_rules, type_rules
from domain.type_rules import Finding, Parts
from notifications.documents.catalog import NOTIFICATION_TYPES, NotificationTypeDocument

from ..catalog.designs import Design, Kind
from ..validation import InvalidRequestError
from . import type_files
from .design_changes import Change, Planned
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


def lint_design(
    changes: Sequence[Change], planned: Planned, new: Sequence[NewContent]
) -> list[list[Finding]]:
    """Return what the rules find in each item of a set with these types, published ones besides."""
    design = planned.design
    documents = list(NOTIFICATION_TYPES().find())
    stored = {
        content.slug: (content.definition.get("layout"), content.parts)
        for content in type_files.read_contents(documents)
    }
    types = stored | {each.slug: (each.definition.layout, each.texts) for each in new}
    languages = [by_part for _, parts in types.values() for by_part in parts.values()]
    texts = [text for by_part in languages for text in by_part.values()]
    partials = design_rules.used_partials([*texts, *design.layouts.values()], design.partials)
    layouts = {layout for layout, _ in types.values()}
    layouts |= {design.brand(name).layout for name in design.brands}
    used = {Kind.PARTIAL: partials, Kind.LAYOUT: layouts}
    found = [[*_lint_item(change, design)] for change in changes]
    for change, findings in zip(changes, found, strict=True):
        if change.content is not None and change.name not in used.get(change.kind, [change.name]):
            findings.append(design_rules.unused_finding())
    return found


def _lint_item(change: Change, design: Design) -> Iterable[Finding]:
    if change.content is None:
        return ()
    if change.kind is Kind.PARTIAL:
        return design_rules.find_in_partial(change.content)
    if change.kind is Kind.LAYOUT:
        return design_rules.find_in_layout(change.content, design.partials)
    if change.kind is Kind.BRAND:
        return design_rules.find_in_brand(change.content)
    return design_rules.find_in_translations(change.name, design.translations)


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
