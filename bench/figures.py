"""What a benchmark has found: a figure, what it is compared to, the goal, and whether it is met."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

Run = Callable[[], float]
T = TypeVar("T")
KEY_WIDTH, LABEL_WIDTH = 18, 52
"""Columns of the table."""


class Measure(StrEnum):
    """What a goal bounds."""

    OURS = "ours"
    FLOOR = "x floor"
    PEER = "x post_office"


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal: the measure is at least, or at most, ``value``."""

    measure: Measure
    value: float
    is_least: bool

    def is_met_by(self, found: float | None) -> bool:
        """Return whether a measured value keeps to it; what was not measured does not."""
        if found is None:
            return False
        return found >= self.value if self.is_least else found <= self.value

    def __str__(self) -> str:
        sign = "≥" if self.is_least else "≤"
        name = "" if self.measure is Measure.OURS else f" {self.measure}"
        return f"{sign} {self.value:,g}{name}"


def at_least(value: float, measure: Measure = Measure.OURS) -> Goal:
    """Return the goal that a measure is ``value`` or more."""
    return Goal(measure, value, is_least=True)


def at_most(value: float, measure: Measure = Measure.OURS) -> Goal:
    """Return the goal that a measure is ``value`` or less."""
    return Goal(measure, value, is_least=False)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One line of the answer. The ratios are medians of the rounds' own: a round is one time."""

    key: str
    label: str
    unit: str
    ours: float
    floor: float | None = None
    peer: float | None = None
    ratio_floor: float | None = None
    ratio_peer: float | None = None
    goals: Sequence[Goal] = ()
    """Without any it is there to be read."""
    note: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether every goal is met; None without one."""
        found = {
            Measure.OURS: self.ours,
            Measure.FLOOR: self.ratio_floor,
            Measure.PEER: self.ratio_peer,
        }
        return (
            all(goal.is_met_by(found[goal.measure]) for goal in self.goals) if self.goals else None
        )

    @property
    def goal(self) -> str:
        """The goals in words."""
        return " and ".join(map(str, self.goals))

    def as_json(self) -> dict[str, Any]:
        """Return it for other programs."""
        numbers = ("ours", "floor", "peer", "ratio_floor", "ratio_peer")
        rounded = {name: _rounded(getattr(self, name)) for name in numbers}
        texts = {"goal": self.goal, "what": self.label, "unit": self.unit, "note": self.note}
        return {**rounded, "met": self.is_met, **texts}

    def as_line(self) -> str:
        """Return it for people."""
        met = {True: "met", False: "NOT MET", None: ""}[self.is_met]
        columns = (
            f"{self.key:<{KEY_WIDTH}}{self.label:<{LABEL_WIDTH}}",
            f"{_number(self.ours):>9} {self.unit:<9}",
            f"{_number(self.floor):>9}{_ratio(self.ratio_floor):>7}",
            f"{_number(self.peer):>9}{_ratio(self.ratio_peer):>7}",
            f"  {self.goal:<40}{met}",
        )
        return "".join(columns).rstrip()


HEADING = (
    f"{'':<{KEY_WIDTH + LABEL_WIDTH}}{'ours':>9} {'':<9}"
    f"{'floor':>9}{'ratio':>7}{'peer':>9}{'ratio':>7}  goal"
)


def run_rounds(
    runs: Mapping[str, Callable[[], T]],
    *,
    rounds: int,
    log_progress: Callable[[str], None] | None = None,
) -> dict[str, list[T]]:
    """Return what each run measured in each round; the runs of a round follow one another."""
    found: dict[str, list[T]] = {name: [] for name in runs}
    for number in range(rounds):
        for name, run in runs.items():
            found[name].append(run())
            if log_progress is not None:
                log_progress(f"round {number + 1}, {name}: {_format_measured(found[name][-1])}")
    return found


def ratio(ours: Sequence[float], other: Sequence[float]) -> float:
    """Return the median of the rounds' ratios."""
    return statistics.median(a / b for a, b in zip(ours, other, strict=True))


def median(values: Iterable[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def percentile(values: Sequence[float], percent: int) -> float | None:
    """Return what so many of a hundred values are below; None of fewer than two."""
    return statistics.quantiles(values, n=100)[percent - 1] if len(values) > 1 else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _format_measured(measured: object) -> str:
    return _number(measured) if isinstance(measured, float) else str(measured)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
