"""The register of scenarios, and their findings: broken guarantees, and figures with limits."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from ..figures import percentile
from .analysis import Analysis, analyze, final_statuses, waits_since_accepted
from .evidence import Answer, Evidence

F = TypeVar("F", bound=Callable[..., "Findings"])
MAX_SHOWN = 5
MAX_SLOWDOWN, NOISE_SECONDS = 1.1, 0.25
"""How much slower others may become: a factor, and seconds for a busy machine."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure and its limits. The value None (not measured) is not within limits."""

    name: str
    value: float | None
    maximum: float | None = None
    minimum: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the figure is within its limits."""
        return (
            self.value is not None
            and (self.maximum is None or self.value <= self.maximum)
            and (self.minimum is None or self.value >= self.minimum)
        )

    def __str__(self) -> str:
        value = "nothing" if self.value is None else f"{self.value:,.6g}"
        limits = [
            f"{sign} {limit:,.6g}"
            for sign, limit in (("≥", self.minimum), ("≤", self.maximum))
            if limit is not None
        ]
        return f"{self.name} {value}" + (f" ({', '.join(limits)})" if limits else "")


def at_most(name: str, value: float | None, maximum: float) -> Bound:
    """Return a figure with a maximum."""
    return Bound(name, value, maximum=maximum)


def at_least(name: str, value: float | None, minimum: float) -> Bound:
    """Return a figure with a minimum."""
    return Bound(name, value, minimum=minimum)


def p99_bounds(evidence: Evidence, *, before: str, beside: str) -> tuple[Bound, Bound]:
    """Return the p99 of waits in the load ``before``, and the limit of it in the load ``beside``.

    ``before`` and ``beside`` are the names of the figures.
    """
    usual, slowest = (
        percentile(waits_since_accepted(evidence, load), 99) for load in ("before", "beside")
    )
    limit = None if usual is None else usual * MAX_SLOWDOWN + NOISE_SECONDS
    return Bound(before, usual), Bound(beside, slowest, maximum=limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The outcome of one scenario."""

    analysis: Analysis
    statuses: Mapping[str, int]
    bounds: Sequence[Bound]

    @property
    def is_met(self) -> bool:
        """Whether the run kept all guarantees and all bounds."""
        return self.analysis.is_clean and all(bound.is_met for bound in self.bounds)

    def problems(self) -> list[str]:
        """Return the broken guarantees and the bounds that are not met, as lines of text."""
        lines = []
        for name in ("lost", "split", "double", "illegal", "unbalanced"):
            found: tuple[str, ...] = getattr(self.analysis, name)
            lines += [f"{name}: {example}" for example in found[:MAX_SHOWN]]
            if len(found) > MAX_SHOWN:
                lines.append(f"{name}: {len(found) - MAX_SHOWN} more")
        return [*lines, *(f"not met: {bound}" for bound in self.bounds if not bound.is_met)]

    def as_json(self) -> dict[str, Any]:
        """Return the figures for the results file."""
        counted = ("lost", "split", "double", "double_unknown", "illegal")
        return {
            "acknowledged": self.analysis.acknowledged,
            **{name: len(getattr(self.analysis, name)) for name in counted},
            "balanced": not self.analysis.unbalanced,
            "in_flight": self.analysis.in_flight,
            "deliveries": dict(self.statuses),
            "figures": {bound.name: bound.value for bound in self.bounds},
            "met": self.is_met,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A fault to inject, and the function that injects it and returns the findings."""

    number: int
    injects: str
    shows: str
    run: Callable[..., Findings]
    """The function; it takes the sizes as keyword arguments."""
    full: Mapping[str, Any]
    """The sizes of the committed results."""
    short: Mapping[str, Any]
    """Sizes for a run of a few minutes."""


SCENARIOS: dict[int, Scenario] = {}


def scenario(number: int, **data: Any) -> Callable[[F], F]:
    """Register a function as a scenario; ``data`` has the other fields of :class:`Scenario`."""

    def register(run: F) -> F:
        SCENARIOS[number] = Scenario(number=number, run=run, **data)
        return run

    return register


@dataclass
class Expected:
    """How often the provider should accept each notification."""

    copies: Counter[str] = field(default_factory=Counter)

    def add(self, answer: Answer, *, copies: int) -> str:
        """Set the expected number of copies of an accepted notification; return its ID."""
        self.copies[answer.accepted_id()] = copies
        return answer.accepted_id()

    def bound(self, evidence: Evidence) -> Bound:
        """Return the number of notifications with an unexpected number of copies, limited to 0."""
        accepted = Counter(
            request.notification_id for request in evidence.requests if request.accepted
        )
        names = self.copies.keys() | accepted.keys()
        wrong = sum(accepted[name] != self.copies[name] for name in names)
        return at_most("notifications with an unexpected number of copies", wrong, 0)


def make_findings(
    evidence: Evidence, *bounds: Bound, copies: Literal["none", "in flight", "any"] | None = None
) -> Findings:
    """Analyze a run; return the findings, with the scenario's own bounds.

    ``copies`` limits the copies that the provider accepted after an unknown outcome: to none, to
    one for each send in progress when a worker was killed, or not. None omits this figure.
    """
    analysis = analyze(evidence)
    if copies is not None:
        maximum = {"none": 0, "in flight": analysis.in_flight}.get(copies)
        count = len(analysis.double_unknown)
        bounds = (*bounds, Bound("copies after an unknown outcome", count, maximum=maximum))
    return Findings(analysis=analysis, statuses=final_statuses(evidence), bounds=bounds)
