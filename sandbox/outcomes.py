"""Outcomes as data: a provider's answer to a message, and the later events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .config import Timings
from .responses import ResponseMode


@dataclass(frozen=True, slots=True)
class Step:
    """An event of an accepted message, with a delay that depends on the timings."""

    kind: str
    multiple: float = 1
    is_early: bool = False
    """Whether the delay is a multiple of ``processed`` instead of ``delivered``."""

    def delay(self, timings: Timings) -> float:
        """Return the seconds from acceptance to this event."""
        return self.multiple * (timings.processed if self.is_early else timings.delivered)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A simulated outcome: the status of the response, how it is sent, and later webhook events."""

    name: str
    aliases: tuple[str, ...] = ()
    description: str
    """One sentence, for the page of recipients."""
    status: int
    mode: ResponseMode = ResponseMode.COMPLETE
    accepted: bool = True
    """Whether the provider accepts the message, whatever the client receives."""
    steps: tuple[Step, ...] = ()
    has_late_events: bool = False
    initial_failures: int = 0
    """How often a recipient gets this outcome before the default outcome; 0: always."""

    def result_fields(self) -> dict[str, Any]:
        """Return the fields of a RequestResult that the outcome determines."""
        reason = None if self.accepted else self.description
        return {"outcome": self.name, "accepted": self.accepted, "reason": reason, "is_json": True}


def accepted(
    name: str, description: str, *steps: Step, status: int = 200, **fields: Any
) -> Outcome:
    """Return the outcome of an accepted message with these events."""
    return Outcome(name=name, status=status, description=description, steps=steps, **fields)


def refused(name: str, status: int, description: str, *aliases: str, **fields: Any) -> Outcome:
    """Return the outcome of a refused message."""
    outcome = accepted(name, description, status=status, **fields)
    return replace(outcome, aliases=aliases, accepted=False)


SEPARATORS = "-_:"


class Outcomes:
    """A provider's outcomes, by name and alias."""

    def __init__(self, table: Sequence[Outcome], *, default: str) -> None:
        self.table = tuple(table)
        self._by_name = {name: row for row in table for name in (row.name, *row.aliases)}
        self.default = self._by_name[default]
        self._longest_first = sorted(self._by_name, key=len, reverse=True)

    def find(self, name: str) -> Outcome | None:
        """Return the outcome with this name or alias; None if there is none."""
        return self._by_name.get(name)

    def start_of(self, text: str) -> str:
        """Return the longest name with which a text begins, before a -, _ or :; else nothing."""
        for name in self._longest_first:
            if text == name or (text.startswith(name) and text[len(name)] in SEPARATORS):
                return name
        return ""
