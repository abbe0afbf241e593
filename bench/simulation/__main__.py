"""``python -m bench.simulation``: simulate people over weeks, and print one line for each seed.

Ends with 1 if an invariant does not hold. docs/reference/simulation.md describes it.
"""

import argparse
import logging
import sys
from datetime import timedelta

from ..environment import run_databases


def main() -> None:
    """Run the simulation for each seed, in an empty database each."""
    parser = argparse.ArgumentParser(prog="python -m bench.simulation", description=__doc__)
    parser.add_argument("--people", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=31)
    parser.add_argument("--seeds", type=int, default=10, help="run the seeds 1 to this number")
    parser.add_argument("--seed", type=int, help="run this seed only, as after a failure")
    parser.add_argument("--events", type=float, default=0.5, help="for a person in a week")
    parser.add_argument("--step", type=int, default=60, help="minutes from step to step")
    parser.add_argument("--faults", type=float, default=0.5, help="probability in each step")
    arguments = parser.parse_args()
    seeds = [arguments.seed] if arguments.seed else range(1, arguments.seeds + 1)
    # A killed process leaves tasks whose end nobody awaits, and each lost response is a warning.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    with run_databases(log_level="ERROR") as bench:
        # After Django's setup
        from .engine import Settings, simulate
        from .report import table

        outcomes = []
        for seed in seeds:
            settings = Settings(
                seed=seed,
                people=arguments.people,
                days=arguments.days,
                events_per_week=arguments.events,
                step=timedelta(minutes=arguments.step),
                fault_rate=arguments.faults,
            )
            with bench.database(f"simulation_{seed}"):
                progress = print if len(seeds) == 1 else _silent
                outcomes.append(simulate(settings, log_progress=progress))
            print(table(outcomes[-1:]), flush=True)
    print(f"\n{arguments.people:,} people, {arguments.days} days\n\n{table(outcomes)}")
    sys.exit(any(outcome.violations for outcome in outcomes))


def _silent(_: str) -> None:
    """Print nothing: several seeds print their lines only."""


if __name__ == "__main__":
    main()
