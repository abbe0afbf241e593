"""docs/results/speed: the runs of ``python -m bench all --results``, as JSON and as a page."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from notifyproject.settings.environment import BASE_DIR

from .figures import HEADING, Figure, Goal, Measure, format_number
from .load.tables import markdown_table

RESULTS = BASE_DIR / "docs/results"
NAME = "speed"
INTRODUCTION = (
    "# Speed\n\n"
    "Each run is of `python -m bench all --results`, which measures every goal of the service's "
    "speed. In a run, rounds of the\nservice alternate with rounds of the floor (a hand-written "
    "minimum) and of the peer (django-post_office) on the same\ncores. *Worst* is the value of the "
    "run that is furthest from the goal. [Performance](../reference/performance.md)\ndescribes the "
    "benchmarks.\n"
)


@dataclass(frozen=True, kw_only=True)
class Run:
    """The figures of one command, and the machine that they are from."""

    measured_at: str
    """Such as ``2026-11-26 10:15`` in UTC."""
    command: str
    machine: str
    figures: Sequence[Figure]


def record_run(run: Run) -> None:
    """Add a run to the results, and write their page anew."""
    RESULTS.mkdir(exist_ok=True)
    stored = RESULTS / f"{NAME}.json"
    earlier = json.loads(stored.read_text()) if stored.exists() else []
    runs = [*map(_run_of, earlier), run]
    stored.write_text(json.dumps([asdict(one) for one in runs], indent=1) + "\n")
    (RESULTS / f"{NAME}.md").write_text(page(runs))


def page(runs: Sequence[Run]) -> str:
    """Return the page: each goal with its value in every run and the worst, then the runs."""
    numbers = [f"run {number}" for number in range(1, len(runs) + 1)]
    rows = [_goal_row(key, goal, runs) for key, goal in _goals(runs)]
    goals = markdown_table(["figure", "goal", *numbers, "worst", "met"], rows)
    sections = [_section(number, run) for number, run in enumerate(runs, 1)]
    return "\n".join([INTRODUCTION, goals, *sections])


def _goals(runs: Sequence[Run]) -> Sequence[tuple[str, Goal]]:
    found = {(one.key, goal): None for run in runs for one in run.figures for goal in one.goals}
    return list(found)


def _goal_row(key: str, goal: Goal, runs: Sequence[Run]) -> Sequence[object]:
    values = [_value(run, key, goal.measure) for run in runs]
    measured = [value for value in values if value is not None]
    met = sum(goal.is_met_by(value) for value in measured)
    return [
        key,
        goal,
        *map(format_number, values),
        format_number(min(measured) if goal.is_least else max(measured)),
        f"{met} of {len(measured)}",
    ]


def _value(run: Run, key: str, measure: Measure) -> float | None:
    """Return the figure's value in a run; None if the run didn't measure it."""
    return next((one.measured(measure) for one in run.figures if one.key == key), None)


def _section(number: int, run: Run) -> str:
    lines = "\n".join(figure.as_line() for figure in run.figures)
    return (
        f"## Run {number}\n\n`{run.command}`, {run.measured_at} UTC. {run.machine}.\n\n"
        f"```\n{HEADING}\n{lines}\n```\n"
    )


def _run_of(stored: dict[str, Any]) -> Run:
    figures = [
        Figure(**{**one, "goals": [_goal_of(goal) for goal in one["goals"]]})
        for one in stored["figures"]
    ]
    return Run(**{**stored, "figures": figures})


def _goal_of(stored: dict[str, Any]) -> Goal:
    return Goal(**{**stored, "measure": Measure(stored["measure"])})
