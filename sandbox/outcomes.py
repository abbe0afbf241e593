"""Outcomes as data: what a provider answers to a message, and what it reports afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from .config import Timings
from .replies import Manner


class Moment(StrEnum):
    """What an event's delay is a multiple of."""

    PROCESSED = "processed"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One event of those an accepted message causes."""

    kind: str
    after: Moment = Moment.DELIVERED
    times: float = 1

    def delay(self, timings: Timings) -> float:
        """Return the seconds from the acceptance to this event."""
        unit = timings.processed if self.after is Moment.PROCESSED else timings.delivered
        return unit * self.times


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What becomes of a message to a magic recipient."""

    name: str
    aliases: tuple[str, ...] = ()
    says: str
    """For people: one sentence."""
    status: int
    manner: Manner = Manner.WHOLE
    accepted: bool = True
    """The provider takes the message, whatever the client gets to see."""
    steps: tuple[Step, ...] = ()
    late: bool = False
    """Its events come much later."""
    failures_first: int = 0
    """How often a recipient meets this outcome before the ordinary one."""
    traits: frozenset[str] = field(default_factory=frozenset)
    """What only the provider's own module knows how to do."""


class Outcomes:
    """One provider's table, looked up by name or alias."""

    def __init__(self, table: Sequence[Outcome], *, ordinary: str) -> None:
        self.table = tuple(table)
        self._by_name = {name: row for row in table for name in (row.name, *row.aliases)}
        self.ordinary = self._by_name[ordinary]

    def find(self, name: str) -> Outcome | None:
        """Return the outcome of this name or alias."""
        return self._by_name.get(name)
