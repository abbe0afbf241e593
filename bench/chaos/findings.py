"""What a scenario has found, and whether its promises were kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .evidence import Evidence
from .joining import Verdict, final_statuses, judge

SHOWN = 5
"""Of each kind of finding, so many are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A figure and what it may be; None if there was nothing to measure, which is not met."""

    name: str
    value: float | None
    most: float | None = None
    least: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the figure is within its bounds."""
        if self.value is None:
            return False
        below = self.most is not None and self.value > self.most
        above = self.least is not None and self.value < self.least
        return not (below or above)

    def __str__(self) -> str:
        value = "nothing" if self.value is None else f"{self.value:,.6g}"
        limits = [
            f"{word} {limit:,.6g}"
            for word, limit in (("≥", self.least), ("≤", self.most))
            if limit is not None
        ]
        return f"{self.name} {value}" + (f" ({', '.join(limits)})" if limits else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The outcome of one scenario."""

    verdict: Verdict
    statuses: Mapping[str, int]
    bounds: Sequence[Bound]

    @property
    def is_met(self) -> bool:
        """Whether everything that the scenario shows was so."""
        return self.verdict.is_clean and all(bound.is_met for bound in self.bounds)

    def problems(self) -> list[str]:
        """Return what was not as promised, a line each."""
        verdict = self.verdict
        lines = []
        for name in ("lost", "split", "double", "illegal", "unbalanced"):
            found: tuple[str, ...] = getattr(verdict, name)
            lines += [f"{name}: {one}" for one in found[:SHOWN]]
            if len(found) > SHOWN:
                lines.append(f"{name}: {len(found) - SHOWN} more")
        return [*lines, *(f"not met: {bound}" for bound in self.bounds if not bound.is_met)]

    def as_json(self) -> dict[str, Any]:
        """Return the figures for machines."""
        verdict = self.verdict
        return {
            "acknowledged": verdict.acknowledged,
            "lost": len(verdict.lost),
            "split": len(verdict.split),
            "double": len(verdict.double),
            "double_unknown": len(verdict.double_unknown),
            "illegal": len(verdict.illegal),
            "balanced": not verdict.unbalanced,
            "in_flight": verdict.in_flight,
            "deliveries": dict(self.statuses),
            "figures": {bound.name: bound.value for bound in self.bounds},
            "met": self.is_met,
        }


def conclude(evidence: Evidence, *bounds: Bound) -> Findings:
    """Return the findings over a run, with what the scenario has measured besides."""
    return Findings(
        verdict=judge(evidence), statuses=final_statuses(evidence), bounds=tuple(bounds)
    )


def killing_bounds(verdict: Verdict) -> tuple[Bound, ...]:
    """Return what must hold wherever workers were killed."""
    return (
        Bound(
            name="copies after an unknown outcome",
            value=len(verdict.double_unknown),
            most=verdict.in_flight,
        ),
        Bound(
            name="seconds until a dead worker's delivery moved on",
            value=verdict.slowest_recovery,
            most=150,
        ),
    )
