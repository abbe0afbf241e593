"""Outcomes as data: what a provider answers to a message, and what it reports afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from .config import Timings
from .responses import ResponseMode


class DelayUnit(StrEnum):
    """What an event's delay is a multiple of."""

    PROCESSED = "processed"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One event of those an accepted message causes."""

    kind: str
    unit: DelayUnit = DelayUnit.DELIVERED
    multiple: float = 1

    def delay(self, timings: Timings) -> float:
        """Return the seconds from the acceptance to this event."""
        seconds = timings.processed if self.unit is DelayUnit.PROCESSED else timings.delivered
        return seconds * self.multiple


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What becomes of a message to a magic recipient."""

    name: str
    aliases: tuple[str, ...] = ()
    description: str
    """For people: one sentence."""
    status: int
    mode: ResponseMode = ResponseMode.COMPLETE
    accepted: bool = True
    """The provider takes the message, whatever the client gets to see."""
    steps: tuple[Step, ...] = ()
    has_late_events: bool = False
    """Its events come much later."""
    initial_failures: int = 0
    """How often a recipient meets this outcome before the ordinary one."""
    traits: frozenset[str] = field(default_factory=frozenset)
    """What only the provider's own module knows how to do."""


class Outcomes:
    """One provider's table, looked up by name or alias."""

    def __init__(self, table: Sequence[Outcome], *, default: str) -> None:
        self.table = tuple(table)
        self._by_name = {name: row for row in table for name in (row.name, *row.aliases)}
        self.default = self._by_name[default]

    def find(self, name: str) -> Outcome | None:
        """Return the outcome of this name or alias."""
        return self._by_name.get(name)
