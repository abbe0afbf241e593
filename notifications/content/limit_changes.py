"""Changes of limits for recipients, stored together with types: each names what it replaces."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pymongo.client_session import ClientSession

from domain.stored import struct_from_stored

from ..catalog import designs, limits
from ..catalog.designs import MovedError
from ..catalog.limits import LimitRequest
from ..documents.policies import LIMITS, LimitDocument
from ..validation import FieldProblem, InvalidRequestError, ProblemCollector
from .design_changes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitChange:
    """A limit to store. ``request`` None: it is removed.

    ``replaces`` is the revision that it was made from; None: it is new.
    """

    name: str
    request: LimitRequest | None
    replaces: str | None
    pointer: str
    """Of the change in its request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedLimit:
    """What a change does to a limit. Nothing is stored yet."""

    change: LimitChange
    outcome: Outcome
    before: LimitDocument | None
    is_conflict: bool
    """The limit has changed since what the change replaces."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """The limit after it, as it is stored. Empty: it is removed."""

    @property
    def has_effect(self) -> bool:
        """Whether it changes anything."""
        return self.outcome is not Outcome.UNCHANGED

    @property
    def given(self) -> dict[str, Any] | None:
        """The limit after it as a request gives it, None if it is removed."""
        return given(self.fields) if self.fields else None


class LimitsMovedError(MovedError):
    """Limits have changed since they were planned, with the pointers of their changes."""

    def __init__(self, pointers: Sequence[str]) -> None:
        super().__init__("limits have changed")
        self.pointers = tuple(pointers)


def given(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored limit as the request that defines it, without defaults."""
    fields = {name: stored[name] for name in LimitRequest.__struct_fields__}
    return designs.fields_of(struct_from_stored(LimitRequest, fields))


def revision_of(stored: Mapping[str, Any]) -> str:
    """Return a digest of a limit, by which a change names what it replaces."""
    return designs.revision_of(given(stored))


def plan(changes: Sequence[LimitChange], *, new_types: Collection[str]) -> list[PlannedLimit]:
    """Return what changes do, in their order. Nothing is written.

    ``new_types`` are stored with them. Raises InvalidRequestError with every problem.
    """
    present = {document["_id"]: document for document in limits.read_limits()} if changes else {}
    known = present.keys() - {change.name for change in changes if change.request is None}
    planned: list[PlannedLimit] = []
    problems: list[FieldProblem] = []
    for change in changes:
        before = present.get(change.name)
        try:
            fields = _fields_after(change, known=known, new_types=new_types)
        except InvalidRequestError as refused:
            problems += [_in_change(change, problem) for problem in refused.problems]
            continue
        known = known | ({change.name} if fields else set())
        outcome = _outcome_of(before, fields)
        was = None if before is None else revision_of(before)
        planned.append(
            PlannedLimit(
                change=change,
                outcome=outcome,
                before=before,
                is_conflict=outcome is not Outcome.UNCHANGED and was != change.replaces,
                fields=fields,
            )
        )
    if problems:
        raise InvalidRequestError(problems)
    return planned


def write(planned: Sequence[PlannedLimit], *, now: datetime, session: ClientSession) -> None:
    """Store limits in a transaction. Raises LimitsMovedError.

    Processes know them once :func:`limits.invalidate_limits` was called.
    """
    effective = [each for each in planned if each.has_effect]
    moved = [
        each.change.pointer
        for each in effective
        if LIMITS().find_one({"_id": each.change.name}, session=session) != each.before
    ]
    if moved:
        raise LimitsMovedError(moved)
    for each in effective:
        if each.fields:
            limits.store_limit(each.change.name, each.fields, now=now, session=session)
        else:
            limits.delete_limit(each.change.name, session=session)


def _fields_after(
    change: LimitChange, *, known: Collection[str], new_types: Collection[str]
) -> Mapping[str, Any]:
    """Return the fields of a limit after a change, none if it is removed."""
    if change.request is None:
        found = ProblemCollector()
        limits.check_name(change.name, found)
        found.raise_if_any()
        return {}
    return limits.validate_limit(change.name, change.request, known=known, new_types=new_types)


def _in_change(change: LimitChange, problem: FieldProblem) -> FieldProblem:
    place = f"/limit{problem.pointer}" if problem.pointer else "/name"
    return FieldProblem(f"{change.pointer}{place}", problem.code, problem.detail)


def _outcome_of(before: LimitDocument | None, fields: Mapping[str, Any]) -> Outcome:
    if before is None:
        return Outcome.CREATED if fields else Outcome.UNCHANGED
    if not fields:
        return Outcome.REMOVED
    return Outcome.UNCHANGED if given(before) == given(fields) else Outcome.CHANGED
