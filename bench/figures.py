"""Figures: the service's value, a floor (minimal code), a peer (post_office), and the goals."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import Any, TypeVar

Progress = Callable[[str], None]
T = TypeVar("T")
KEY_WIDTH, LABEL_WIDTH = 18, 52


class Measure(StrEnum):
    """The value that a goal limits: the service's, or its ratio to the floor or the peer."""

    OURS = "ours"
    FLOOR = "x floor"
    PEER = "x post_office"


@dataclass(frozen=True, slots=True)
class Goal:
    """A minimum (``is_least``) or maximum of a measure."""

    measure: Measure
    value: float
    is_least: bool

    def is_met_by(self, found: float | None) -> bool:
        """Return whether a value meets the goal. None doesn't."""
        return found is not None and (found >= self.value if self.is_least else found <= self.value)

    def __str__(self) -> str:
        sign = "≥" if self.is_least else "≤"
        name = "" if self.measure is Measure.OURS else f" {self.measure}"
        return f"{sign} {self.value:,g}{name}"


def at_least(value: float, measure: Measure = Measure.OURS) -> Goal:
    """Return a goal with a minimum."""
    return Goal(measure, value, is_least=True)


def at_most(value: float, measure: Measure = Measure.OURS) -> Goal:
    """Return a goal with a maximum."""
    return Goal(measure, value, is_least=False)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the results. A ratio is the median of the ratios of all rounds."""

    key: str
    label: str
    unit: str
    ours: float
    floor: float | None = None
    peer: float | None = None
    ratio_floor: float | None = None
    ratio_peer: float | None = None
    goals: Sequence[Goal] = ()
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether every goal is met; None without goals."""
        if not self.goals:
            return None
        return all(goal.is_met_by(self.measured(goal.measure)) for goal in self.goals)

    def measured(self, measure: Measure) -> float | None:
        """Return the value that a goal limits; None if it has not been measured."""
        values = (self.ours, self.ratio_floor, self.ratio_peer)
        return dict(zip(Measure, values, strict=True))[measure]

    @property
    def goal(self) -> str:
        """The goals as text."""
        return " and ".join(map(str, self.goals))

    def as_json(self) -> dict[str, Any]:
        """Return the figure for the results file."""
        numbers = ("ours", "floor", "peer", "ratio_floor", "ratio_peer")
        values = {name: getattr(self, name) for name in numbers}
        rounded = {k: None if v is None else float(f"{v:.4g}") for k, v in values.items()}
        texts = {"goal": self.goal, "what": self.label, "unit": self.unit, "note": self.note}
        return {**rounded, "met": self.is_met, **texts}

    def as_line(self) -> str:
        """Return the figure as a line of the table."""
        met = {True: "met", False: "NOT MET", None: ""}[self.is_met]
        columns = (
            f"{self.key:<{KEY_WIDTH}}{self.label:<{LABEL_WIDTH}}",
            f"{format_number(self.ours):>9} {self.unit:<9}",
            f"{format_number(self.floor):>9}{_ratio(self.ratio_floor):>7}",
            f"{format_number(self.peer):>9}{_ratio(self.ratio_peer):>7}",
            f"  {self.goal:<40}{met}",
        )
        return "".join(columns).rstrip()


HEADING = (
    f"{'':<{KEY_WIDTH + LABEL_WIDTH}}{'ours':>9} {'':<9}"
    f"{'floor':>9}{'ratio':>7}{'peer':>9}{'ratio':>7}  goal"
)


def run_rounds(
    runs: Mapping[str, Callable[[], T]], *, rounds: int, log_progress: Progress | None = None
) -> dict[str, list[T]]:
    """Measure all ``runs`` in turn, ``rounds`` times; return the values by run."""
    found: dict[str, list[T]] = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            found[name].append(run())
            if log_progress is not None:
                measured = found[name][-1]
                text = format_number(measured) if isinstance(measured, float) else str(measured)
                log_progress(f"round {number + 1}, {name}: {text}")
    return found


def compare(
    *,
    ours: Sequence[float],
    floor: Sequence[float] | None = None,
    peer: Sequence[float] | None = None,
    **fields: Any,
) -> Figure:
    """Return a figure with the medians of the rounds' values and of their ratios."""
    return Figure(
        ours=median(ours),
        floor=None if floor is None else median(floor),
        peer=None if peer is None else median(peer),
        ratio_floor=None if floor is None else ratio(ours, floor),
        ratio_peer=None if peer is None else ratio(ours, peer),
        **fields,
    )


def ratio(ours: Sequence[float], other: Sequence[float]) -> float:
    """Return the median of the ratios of two series, round by round."""
    return median(a / b for a, b in zip(ours, other, strict=True))


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return a percentile; None for fewer than two values."""
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else None


def format_number(value: float | None) -> str:
    """Return a value with three digits or without decimals; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
