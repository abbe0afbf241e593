"""Types with their definition and published texts as one value, and sets of them stored together.

A revision is a digest of both, so that whoever writes a type can say what it replaces. A definition
has the fields of a request to create a type, without those that have their default: a new field of
it, or a new part of templates, is in both directions without a change here.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from pymongo.client_session import ClientSession

from domain.stored import struct_from_stored
from domain.type_rules import Finding
from notifications.documents.catalog import (
    NOTIFICATION_TYPES,
    EmergencyChangeDocument,
    NotificationTypeDocument,
)

from ..catalog import definitions, emergencies, schemas
from ..catalog.definitions import TypeRequest
from ..catalog.designs import Design
from ..validation import MAX_PROBLEMS, FieldProblem, InvalidRequestError
from . import linting, templates, type_writes
from .templates import SHIPPED_VERSION, Parts
from .type_writes import TypeMovedError

FREE_FORM = frozenset({"example_data", "schema"})
"""Fields whose values are those of users, and may contain null."""
_REQUIRED = tuple(f.name for f in msgspec.structs.fields(TypeRequest) if f.required)
_DEFAULTS: Mapping[str, Any] = msgspec.to_builtins(TypeRequest(name="", category="", channels=[]))


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeContent:
    """A type's definition and the texts of its published version."""

    slug: str
    definition: Mapping[str, Any]
    parts: Parts
    version: int = SHIPPED_VERSION
    emergency_changes: Sequence[EmergencyChangeDocument] = ()
    """What staff have changed since the files were pushed, which is part of the rest."""

    @property
    def revision(self) -> str:
        """A digest that two types have in common if neither differs."""
        parts = {language: dict(texts) for language, texts in self.parts.items()}
        content = json.dumps([self.definition, parts], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(content.encode(errors="surrogatepass")).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewContent:
    """A type to store. ``replaces`` is the revision that it was made from; None: a new type."""

    slug: str
    definition: TypeRequest
    parts: Parts
    replaces: str | None
    may_break: bool = True
    """Whether its schema may refuse data that the published one takes."""

    @property
    def texts(self) -> Parts:
        """The parts, without languages that have none."""
        return {language: dict(texts) for language, texts in self.parts.items() if texts}


class TypeOutcome(StrEnum):
    """What a set does to one of its types."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a set does to one of its types, and the type after it."""

    content: TypeContent
    outcome: TypeOutcome
    before: NotificationTypeDocument | None
    fields: Mapping[str, Any] = field(default_factory=dict)
    weakened: Sequence[str] = ()
    """Fields that make a critical or sensitive type less safe."""

    @property
    def has_effect(self) -> bool:
        """Whether its publication changes the type, or settles what staff changed of it."""
        return self.outcome is not TypeOutcome.UNCHANGED or bool(self.content.emergency_changes)

    @property
    def has_new_texts(self) -> bool:
        """Whether the texts differ from the published ones."""
        return bool(self.content.parts) and self.content.version < 0


class RevisionConflictError(Exception):
    """Types have changed since the revisions that a set names."""

    def __init__(self, indexes: Sequence[int]) -> None:
        super().__init__("types have changed")
        self.indexes = tuple(indexes)


_NEW_VERSION = -1  # The version of texts that are not stored yet


def content_of(document: NotificationTypeDocument, parts: Parts) -> TypeContent:
    """Return a stored type with the texts of its published version."""
    return TypeContent(
        slug=document["_id"],
        definition=definition_of(document),
        parts=parts,
        version=document.get("template_version") or SHIPPED_VERSION,
        emergency_changes=emergencies.unpushed(document),
    )


def definition_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored type as the request that creates it, without defaults."""
    fields: dict[str, Any] = {
        name: document[name]
        for name in TypeRequest.__struct_fields__
        if document.get(name) is not None
    }
    if text := fields.pop("schema", None):
        fields["schema"] = json.loads(text)
        # They are stored together, whether listed or marked.
        marked = schemas.marked_variables(fields["schema"])
        listed = fields.get("sensitive_variables") or ()
        fields["sensitive_variables"] = [name for name in listed if name not in marked]
    try:
        # MongoDB returns numbers over 32 bits as a class of their own.
        given = msgspec.to_builtins(struct_from_stored(TypeRequest, fields), enc_hook=int)
    except msgspec.ValidationError:  # A newer version allows more
        given = fields
    return {
        name: value if name in FREE_FORM else _without_nulls(value)
        for name, value in given.items()
        if name not in definitions.TRANSIENT and (name in _REQUIRED or value != _DEFAULTS[name])
    }


def read_contents(documents: Sequence[NotificationTypeDocument]) -> list[TypeContent]:
    """Return types with their published texts, in one more read. Raises PyMongoError."""
    stored = templates.read_versions(
        {
            document["_id"]: number
            for document in documents
            if (number := document.get("template_version") or SHIPPED_VERSION)
        }
    )
    return [
        content_of(
            document,
            stored.get(document["_id"], {})
            if document.get("template_version")
            else templates.shipped_texts(document["_id"]),
        )
        for document in documents
    ]


def plan_changes(new: Sequence[NewContent], *, design: Design | None = None) -> list[Change]:
    """Return what a set would do. Nothing is written.

    ``design`` is that of its partials, layouts, and brands; None: the present one.

    Raises InvalidRequestError with every problem, and RevisionConflictError.
    """
    stored = {
        document["_id"]: document
        for document in NOTIFICATION_TYPES().find({"_id": {"$in": [each.slug for each in new]}})
    }
    present = {each.slug: each for each in read_contents(list(stored.values()))}
    changes: list[Change] = []
    problems: list[FieldProblem] = []
    conflicts: list[int] = []
    for index, each in enumerate(new):
        before = stored.get(each.slug)
        try:
            change = _plan_change(each, before, present.get(each.slug), design)
        except InvalidRequestError as refused:
            problems += [
                FieldProblem(f"/types/{index}{problem.pointer}", problem.code, problem.detail)
                for problem in refused.problems
            ]
            continue
        changes.append(change)
        was = present[each.slug].revision if before is not None else None
        if change.outcome is not TypeOutcome.UNCHANGED and was != each.replaces:
            conflicts.append(index)
    if problems:
        raise InvalidRequestError(problems[:MAX_PROBLEMS])
    if conflicts:
        raise RevisionConflictError(conflicts)
    return changes


def validate(
    new: NewContent, before: NotificationTypeDocument | None, *, design: Design | None = None
) -> dict[str, Any]:
    """Return the fields of a type to store. Raises InvalidRequestError with pointers into it."""
    try:
        return definitions.validate_type(new.slug, new.definition, before=before, design=design)
    except InvalidRequestError as refused:
        raise InvalidRequestError(
            [
                # The definition has no field for its slug.
                FieldProblem(f"/definition{p.pointer}" if p.pointer else "/slug", p.code, p.detail)
                for p in refused.problems
            ]
        ) from None


def find_faults(
    slug: str, fields: Mapping[str, Any], parts: Parts, *, design: Design | None = None
) -> list[Finding]:
    """Return why a push refuses texts: their faults or, if there are none, what they expose.

    ``fields`` are those of the type as they are stored.
    """
    # A shipped type without parts has its files, which a request doesn't remove.
    has_texts = parts or templates.shipped_texts(slug)
    if has_texts and (faults := linting.lint_parts(slug, fields, parts, design=design)):
        return [
            Finding(
                code=fault.code,
                pointer=linting.field_problem(fault).pointer,
                detail=fault.reason,
                line=fault.line,
            )
            for fault in faults
        ]
    pointer = "/definition/sensitive_variables"
    return [
        Finding(code=fault.code, pointer=pointer, detail=fault.place)
        for fault in linting.find_exposures(slug, fields, parts, design=design)
    ]


def _plan_change(
    new: NewContent,
    before: NotificationTypeDocument | None,
    present: TypeContent | None,
    design: Design | None,
) -> Change:
    fields, parts = validate(new, before, design=design), new.texts
    content = TypeContent(
        slug=new.slug,
        definition=definition_of(fields),
        parts=parts,
        version=_version_of(new.slug, parts, present),
    )
    if present is not None and content.revision == present.revision:
        return Change(content=present, outcome=TypeOutcome.UNCHANGED, before=before)
    # A confirmation in a file would confirm each later change, too.
    broken = definitions.unconfirmed_breaks(before, new.definition, confirmed=())
    if broken and not new.may_break:
        raise InvalidRequestError(
            [FieldProblem(f"/definition{b.pointer}", b.code, b.detail) for b in broken]
        )
    if faults := find_faults(new.slug, fields, parts, design=design):
        raise InvalidRequestError(
            [FieldProblem(fault.pointer, fault.code, fault.text) for fault in faults]
        )
    return Change(
        content=content,
        outcome=TypeOutcome.CREATED if before is None else TypeOutcome.CHANGED,
        before=before,
        fields=fields,
        weakened=definitions.weakened_fields(before, fields),
    )


def _version_of(slug: str, parts: Parts, present: TypeContent | None) -> int:
    """Return the version that has these texts: the published one, the files, or the newest."""
    if present is not None and parts == present.parts:
        return present.version
    if parts == templates.shipped_texts(slug):
        return SHIPPED_VERSION
    newest = templates.list_versions(type_slug=slug, limit=1)
    return newest[0].number if newest and newest[0].parts == parts else _NEW_VERSION


def store_drafts(
    changes: Sequence[Change], *, note: str, created_by: str, now: datetime
) -> list[Change]:
    """Store texts that are new as unpublished versions. Return the changes with their versions.

    Nothing that is sent changes, and a repetition finds them. Raises VersionConflictError.
    """
    stored: list[Change] = []
    for change in changes:
        content = change.content
        if change.has_new_texts:
            version = templates.create_version(
                type_slug=content.slug,
                parts=content.parts,
                note=note,
                created_by=created_by,
                now=now,
            )
            content = replace(content, version=version.number)
        stored.append(replace(change, content=content))
    return stored


def publish(changes: Sequence[Change], *, now: datetime, session: ClientSession) -> None:
    """Store the definitions, and publish the texts, in a transaction.

    Files that are as the type was changed in an emergency have taken that over. Processes know them
    once :func:`types.invalidate_types` was called. Raises RevisionConflictError if a type has
    changed since the changes were planned.
    """
    conflicts = []
    for index, change in enumerate(changes):
        if not change.has_effect:
            continue
        slug, before = change.content.slug, change.before
        fields = {**change.fields, "template_version": change.content.version}
        if before is not None and emergencies.unpushed(before):
            fields["emergency_changes"] = emergencies.pushed(before, now=now)
        try:
            type_writes.write(slug, fields, before=before, now=now, session=session)
        except TypeMovedError:
            conflicts.append(index)
    if conflicts:
        raise RevisionConflictError(conflicts)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return value
