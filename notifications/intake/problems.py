"""What is wrong with a request: where, what kind, and how to mend it. No value is repeated."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from bson import ObjectId

MAX_PROBLEMS = 100
"""More of one request are not told: mending these comes first."""


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One thing that is wrong."""

    pointer: str
    """JSON Pointer to the field: ``/recipient/email``."""
    code: str
    detail: str


class InvalidRequest(Exception):
    """A request that cannot be accepted as it is."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__(", ".join(f"{p.pointer}: {p.code}" for p in problems))
        self.problems = tuple(problems)


class AlreadyNotified(Exception):
    """The person has been told about the entity. ``notification_id`` if that was the caller's."""

    def __init__(self, notification_id: ObjectId | None) -> None:
        super().__init__("already notified")
        self.notification_id = notification_id


class KeyReused(Exception):
    """An idempotency key came with another request than the first time."""


class RepeatedItem(Exception):
    """The same item stands earlier in the same call, at ``first``."""

    def __init__(self, first: int) -> None:
        super().__init__("repeated item")
        self.first = first


class Overloaded(Exception):
    """More is waiting than is taken on in bulk: come again after ``retry_after``."""

    def __init__(self, retry_after: timedelta) -> None:
        super().__init__("overloaded")
        self.retry_after = retry_after


class Collector:
    """Gathers problems, so that a caller hears of all of them at once."""

    def __init__(self) -> None:
        self.problems: list[FieldProblem] = []

    def add(self, pointer: str, code: str, detail: str) -> None:
        """Note a problem, unless there are a hundred already."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(FieldProblem(pointer, code, detail))

    def raise_if_any(self) -> None:
        """Raise InvalidRequest with what was gathered."""
        if self.problems:
            raise InvalidRequest(self.problems)
