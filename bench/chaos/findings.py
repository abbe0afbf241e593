"""What a scenario has found, and whether its promises were kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .evidence import Evidence
from .joining import Analysis, analyze, final_statuses

MAX_SHOWN = 5
"""Of each kind of finding, so many are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A figure and what it may be; None if there was nothing to measure, which is not met."""

    name: str
    value: float | None
    maximum: float | None = None
    minimum: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the figure is within its bounds."""
        if self.value is None:
            return False
        below = self.maximum is not None and self.value > self.maximum
        above = self.minimum is not None and self.value < self.minimum
        return not (below or above)

    def __str__(self) -> str:
        value = "nothing" if self.value is None else f"{self.value:,.6g}"
        limits = [
            f"{word} {limit:,.6g}"
            for word, limit in (("≥", self.minimum), ("≤", self.maximum))
            if limit is not None
        ]
        return f"{self.name} {value}" + (f" ({', '.join(limits)})" if limits else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The outcome of one scenario."""

    analysis: Analysis
    statuses: Mapping[str, int]
    bounds: Sequence[Bound]

    @property
    def is_met(self) -> bool:
        """Whether everything that the scenario shows was so."""
        return self.analysis.is_clean and all(bound.is_met for bound in self.bounds)

    def problems(self) -> list[str]:
        """Return what was not as promised, a line each."""
        analysis = self.analysis
        lines = []
        for name in ("lost", "split", "double", "illegal", "unbalanced"):
            found: tuple[str, ...] = getattr(analysis, name)
            lines += [f"{name}: {one}" for one in found[:MAX_SHOWN]]
            if len(found) > MAX_SHOWN:
                lines.append(f"{name}: {len(found) - MAX_SHOWN} more")
        return [*lines, *(f"not met: {bound}" for bound in self.bounds if not bound.is_met)]

    def as_json(self) -> dict[str, Any]:
        """Return the figures for machines."""
        analysis = self.analysis
        return {
            "acknowledged": analysis.acknowledged,
            "lost": len(analysis.lost),
            "split": len(analysis.split),
            "double": len(analysis.double),
            "double_unknown": len(analysis.double_unknown),
            "illegal": len(analysis.illegal),
            "balanced": not analysis.unbalanced,
            "in_flight": analysis.in_flight,
            "deliveries": dict(self.statuses),
            "figures": {bound.name: bound.value for bound in self.bounds},
            "met": self.is_met,
        }


def make_findings(evidence: Evidence, *bounds: Bound) -> Findings:
    """Return the findings over a run, with what the scenario has measured besides."""
    return Findings(
        analysis=analyze(evidence), statuses=final_statuses(evidence), bounds=tuple(bounds)
    )


def kill_bounds(analysis: Analysis) -> tuple[Bound, ...]:
    """Return what must hold wherever workers were killed."""
    return (
        Bound(
            name="copies after an unknown outcome",
            value=len(analysis.double_unknown),
            maximum=analysis.in_flight,
        ),
        Bound(
            name="seconds until a dead worker's delivery moved on",
            value=analysis.slowest_takeover,
            maximum=150,
        ),
    )
