"""Types with their texts, and the design that they use, stored together: all, or none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pymongo.client_session import ClientSession

from ..catalog import designs, types
from ..catalog.designs import DesignMovedError
from ..documents.catalog import NOTIFICATION_TYPES
from ..validation import MAX_PROBLEMS, FieldProblem, InvalidRequestError
from . import design_changes, type_files, type_writes
from .design_changes import Planned
from .type_files import Change, NewContent, RevisionConflictError, TypeOutcome

MAX_ATTEMPTS = 100


class PushConflictError(Exception):
    """Types or items of the design have changed, with pointers to them."""

    def __init__(self, pointers: Sequence[str]) -> None:
        super().__init__("types or the design have changed")
        self.pointers = tuple(pointers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """What a set does to types and to the design."""

    types: Sequence[Change]
    design: Planned
    stored_texts: frozenset[str] = frozenset()
    """The types whose texts became a new version."""

    @property
    def has_changes(self) -> bool:
        """Whether its publication has an effect."""
        return any(change.has_effect for change in self.types) or bool(self.design.changed)


def plan(new: Sequence[NewContent], items: Sequence[design_changes.Change]) -> Push:
    """Return what a set would do. Types are checked with the design of the set, and it with them.

    Nothing is written. Raises InvalidRequestError with every problem, and PushConflictError.
    """
    design = design_changes.draft(items, before=designs.read_newest())
    problems: list[FieldProblem] = []
    conflicts = [f"{pointer}/revision" for pointer in design.conflicts]
    changes: list[Change] = []
    try:
        changes = type_files.plan_changes(new, design=design.design)
    except InvalidRequestError as refused:
        problems += refused.problems
    except RevisionConflictError as conflict:
        conflicts += type_pointers(conflict)
    pushed = {
        change.content.slug: (change.fields, change.content.parts)
        for change in changes
        if change.outcome is not TypeOutcome.UNCHANGED
    }
    if not problems and not conflicts:
        problems += design_changes.find_broken_uses(design, pushed=pushed)
    if problems:
        raise InvalidRequestError(problems[:MAX_PROBLEMS])
    if conflicts:
        raise PushConflictError(conflicts)
    return Push(types=changes, design=design)


def type_pointers(conflict: RevisionConflictError) -> list[str]:
    """Return the pointers to the revisions of types that have changed."""
    return [f"/types/{index}/revision" for index in conflict.indexes]


def store_drafts(push: Push, *, note: str, created_by: str, now: datetime) -> Push:
    """Store texts that are new as unpublished versions. Nothing that is sent changes.

    Raises VersionConflictError.
    """
    new = frozenset(change.content.slug for change in push.types if change.has_new_texts)
    changes = type_files.store_drafts(push.types, note=note, created_by=created_by, now=now)
    return replace(push, types=changes, stored_texts=new)


def publish(push: Push, *, created_by: str, now: datetime) -> bool:
    """Store the design and the definitions, and publish the texts, in one transaction.

    Return False, with nothing stored, if the design was changed, or something else uses it now: the
    set is to be planned again. Raises PushConflictError if a type has changed since it was planned.
    """
    if not push.has_changes:
        return True
    uses_design = any(
        type_writes.does_use_design(
            each.content.slug, {**each.fields, "template_version": each.content.version}
        )
        for each in push.types
        if each.has_effect
    )

    def write(session: ClientSession) -> None:
        if push.design.changed:
            design_changes.insert(push.design, session, created_by=created_by, now=now)
        elif uses_design:
            designs.rely_on(push.design.design, session=session)
        type_files.publish(push.types, now=now, session=session)

    try:
        with NOTIFICATION_TYPES().database.client.start_session() as session:
            session.with_transaction(write)
    except DesignMovedError:
        return False
    except RevisionConflictError as conflict:
        raise PushConflictError(type_pointers(conflict)) from None
    if push.design.changed:
        designs.invalidate()
    types.invalidate_types()
    return True
