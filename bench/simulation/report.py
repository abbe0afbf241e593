"""The table of a simulation's runs."""

from collections.abc import Sequence

from .engine import Outcome
from .ledger import INVARIANTS

COLUMNS = (
    *("seed", "posts", "accepted", "later steps", "not needed", "held: limit", "held: quiet"),
    *("over limit", "merged", "carriers", "kills", "lost", "copies", "violations", "seconds"),
)


def table(outcomes: Sequence[Outcome]) -> str:
    """Return one line for each run, in Markdown, and below it the violations."""
    lines = [f"| {' | '.join(COLUMNS)} |", f"|{'---:|' * len(COLUMNS)}"]
    lines += [f"| {' | '.join(_cells(one))} |" for one in outcomes]
    for one in outcomes:
        seed = one.settings.seed
        for invariant, count in one.violations.items():
            lines.append(f"seed {seed}: {count} times not: {INVARIANTS[invariant]}")
        lines += [f"seed {seed}: {example}" for example in one.examples]
    return "\n".join(lines)


def _cells(one: Outcome) -> list[str]:
    counts = one.counts
    numbers = (
        one.settings.seed,
        counts["notifications"],
        counts["accepted"],
        counts["later steps"],
        counts["code not_needed"],
        counts["held by limits"],
        counts["held by quiet hours"],
        counts["code over_limit"],
        counts["merged"],
        counts["digests sent"],
        one.kills,
        sum(one.faults.values()) - one.kills,
        counts["second copies"],
        sum(one.violations.values()),
        round(one.seconds),
    )
    return [f"{number:,}" for number in numbers]
