"""Types with their texts, the design that they use, and limits, stored together: all, or none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pymongo.client_session import ClientSession

from ..catalog import designs, limits, types
from ..catalog.designs import DesignMovedError
from ..documents.catalog import NOTIFICATION_TYPES
from ..validation import MAX_PROBLEMS, FieldProblem, InvalidRequestError
from . import design_changes, limit_changes, type_files, type_writes
from .design_changes import Planned
from .limit_changes import LimitChange, LimitsMovedError, PlannedLimit
from .type_files import Change, NewContent, RevisionConflictError, TypeOutcome

MAX_ATTEMPTS = 100


class PushConflictError(Exception):
    """Types, items of the design, or limits have changed, with pointers to them."""

    def __init__(self, pointers: Sequence[str]) -> None:
        super().__init__("types, the design, or limits have changed")
        self.pointers = tuple(pointers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Push:
    """What a set does to types, to the design, and to limits."""

    types: Sequence[Change]
    design: Planned
    limits: Sequence[PlannedLimit] = ()
    stored_texts: frozenset[str] = frozenset()
    """The types whose texts became a new version."""

    @property
    def has_changes(self) -> bool:
        """Whether its publication has an effect."""
        has_types = any(change.has_effect for change in self.types)
        return has_types or bool(self.design.changed) or self.has_new_limits

    @property
    def has_new_limits(self) -> bool:
        """Whether its publication changes limits."""
        return any(limit.has_effect for limit in self.limits)


def plan(
    new: Sequence[NewContent],
    items: Sequence[design_changes.Change],
    new_limits: Sequence[LimitChange] = (),
) -> Push:
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
    planned: list[PlannedLimit] = []
    try:
        planned = limit_changes.plan(new_limits, new_types=[each.slug for each in new])
    except InvalidRequestError as refused:
        problems += refused.problems
    conflicts += [f"{each.change.pointer}/revision" for each in planned if each.is_conflict]
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
    return Push(types=changes, design=design, limits=planned)


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
    """Store the design, the limits, and the definitions, and publish the texts, in one transaction.

    Return False, with nothing stored, if the design was changed, or something else uses it now: the
    set is to be planned again. Raises PushConflictError if a type or a limit has changed since it
    was planned.
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
        limit_changes.write(push.limits, now=now, session=session)
        type_files.publish(push.types, now=now, session=session)

    try:
        with NOTIFICATION_TYPES().database.client.start_session() as session:
            session.with_transaction(write)
    except DesignMovedError:
        return False
    except RevisionConflictError as conflict:
        raise PushConflictError(type_pointers(conflict)) from None
    except LimitsMovedError as moved:
        raise PushConflictError([f"{pointer}/revision" for pointer in moved.pointers]) from None
    if push.design.changed:
        designs.invalidate()
    if push.has_new_limits:
        limits.invalidate_limits()
    types.invalidate_types()
    return True
