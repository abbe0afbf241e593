"""Everything to be said of types with their texts before they are pushed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from domain import type_rules
from domain.type_rules import Finding
from notifications.documents.catalog import NOTIFICATION_TYPES, NotificationTypeDocument

from ..validation import MAX_PROBLEMS, FieldProblem, InvalidRequestError
from . import linting, type_files
from .type_files import NewContent


def lint_types(new: Sequence[NewContent]) -> list[list[Finding]]:
    """Return what would be refused of each type's texts or, if nothing, what the rules find.

    Raises InvalidRequestError for definitions that can't be those of a type.
    """
    slugs = [each.slug for each in new]
    stored = {
        document["_id"]: document for document in NOTIFICATION_TYPES().find({"_id": {"$in": slugs}})
    }
    found: list[list[Finding]] = []
    problems: list[FieldProblem] = []
    for index, each in enumerate(new):
        before = stored.get(each.slug)
        try:
            fields = type_files.validate(each, before)
        except InvalidRequestError as refused:
            problems += type_files.problems_of(index, refused)
        else:
            found.append([*_lint_type(each, fields, before)])
    if problems:
        raise InvalidRequestError(problems[:MAX_PROBLEMS])
    return found


def _lint_type(
    new: NewContent, fields: Mapping[str, Any], before: NotificationTypeDocument | None
) -> Iterator[Finding]:
    # The rules read a text with the same care as a renderer, so it must be within its limits.
    faults = linting.lint_parts(new.slug, fields, new.parts) if new.parts else ()
    for fault in faults:
        pointer = linting.field_problem(fault).pointer
        yield Finding(code=fault.code, pointer=pointer, detail=fault.reason, line=fault.line)
    if not faults:
        yield from type_rules.find(
            type_files.definition_of(fields),
            new.parts,
            published=type_files.definition_of(before) if before else None,
        )
