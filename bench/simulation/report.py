"""The table of a simulation's runs."""

from collections.abc import Sequence

from .engine import Outcome
from .ledger import INVARIANTS

COLUMNS = (
    "seed",
    "posts",
    "accepted",
    "later steps",
    "not needed",
    "held: limit",
    "held: quiet",
    "over limit",
    "merged",
    "carriers",
    "kills",
    "lost",
    "copies",
    "violations",
    "seconds",
)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return one line for each run, in Markdown, and below it the violations."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---:|' * len(COLUMNS)}"]
    lines += [f"| {' | '.join(_cells(outcome))} |" for outcome in outcomes]
    for outcome in outcomes:
        seed = outcome.settings.seed
        for invariant, count in outcome.violations.items():
            lines.append(f"seed {seed}: {count} times not: {INVARIANTS[invariant]}")
        lines += [f"seed {seed}: {example}" for example in outcome.examples]
    return "\n".join(lines)


def _cells(outcome: Outcome) -> list[str]:
    counts = outcome.counts
    numbers = (
        outcome.settings.seed,
        counts["notifications"],
        counts["accepted"],
        counts["later steps"],
        counts["code not_needed"],
        counts["held by limits"],
        counts["held by quiet hours"],
        counts["code over_limit"],
        counts["merged"],
        counts["digests sent"],
        outcome.kills,
        sum(outcome.faults.values()) - outcome.kills,
        counts["second copies"],
        sum(outcome.violations.values()),
        round(outcome.seconds),
    )
    return [f"{number:,}" for number in numbers]
