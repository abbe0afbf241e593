"""``python -m bench drain``: run a benchmark and print its figure."""

import argparse
import json
from pathlib import Path

from . import drain, environment

LEAST_RATE = 300


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True)
    draining = commands.add_parser("drain", help="emails a second of one worker")
    draining.add_argument("--count", type=int, default=15_000)
    draining.add_argument("--json", type=Path, metavar="FILE")
    draining.set_defaults(run=_drain)
    arguments = parser.parse_args()
    arguments.run(arguments)


def _drain(arguments: argparse.Namespace) -> None:
    result = drain.run(count=arguments.count)
    print(
        f"drain: {result.rate:,.0f} emails/s ({result.count:,} in {result.seconds:.1f} s), "
        f"goal: at least {LEAST_RATE}; {environment.machine()}"
    )
    if arguments.json:
        figures = {
            "drain": {"ours": result.rate, "goal": LEAST_RATE, "met": result.rate >= LEAST_RATE}
        }
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
