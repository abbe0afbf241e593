"""``python -m bench all``: measure the service's performance goals and print the figures.

Most figures have a baseline of the same run. docs/reference/performance.md describes the methods.
"""

import argparse
import json
import signal
import sys
from pathlib import Path

from . import path

GOALS = ("S1", "S2", "S3", "S4", "S5", "S7", "S8", "services", "sms", "webpush", "rooms", "file")
OTHERS = ("S6", "sizes")
"""Excluded from `all`: they take long, or measure no speed."""
LATENCIES = (0, 100, 300)
"""Milliseconds until the provider answers in the runs of S1 in `all`."""
NUMBERS = {
    "rounds": (3, "of S1, S2 and S3"),
    "count": (
        15_000,
        "emails of S1 and sizes, items of S3; a fifth of it for services, SMS, pushes, and rooms",
    ),
    "due": (1_000_000, "due in S4"),
    "stored": (1_000_000, "in S4 and S5; the goal is 5,000,000, which take minutes to create"),
    "notifications": (1_000_000, "in S6"),
    "rows": (100_000, "of file"),
    "seconds": (60, "of S7"),
}


def main() -> None:
    """Run the selected benchmarks and print their figures."""
    arguments = _arguments()
    if "path" in arguments.goals:
        print(path.report())
        return
    # `path` needs nothing that is installed.
    from notifyproject.stack import bytecode

    from . import measures
    from .figures import HEADING

    bytecode.enable_cache()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        machine, figures = measures.measure(arguments)
    except KeyboardInterrupt:
        sys.exit("stopped")
    print(f"\n{machine}\n\n{HEADING}")
    for figure in figures:
        print(figure.as_line())
    print()
    for figure in figures:
        if figure.note:
            print(f"{figure.key}: {figure.note}")
    if arguments.json:
        found = {figure.key: figure.as_json() for figure in figures}
        result = {"command": sys.argv[1:], "machine": machine, "figures": found}
        arguments.json.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "goals", nargs="+", choices=["all", *GOALS, *OTHERS, "path"], metavar="GOAL"
    )
    text = "write the figures, such as to .data/speed.json, which git ignores"
    parser.add_argument("--json", type=Path, metavar="FILE", help=text)
    for name, (default, text) in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=text)
    text = "of load in S8; the goal is 60"
    parser.add_argument("--minutes", type=float, default=2, help=text)
    text = "until the provider answers in S1; 0: at once; `all` takes 0, 100, and 300"
    parser.add_argument("--latency", type=int, nargs="+", default=[0], metavar="MS", help=text)
    arguments = parser.parse_args()
    if "all" in arguments.goals:
        arguments.goals += GOALS
        arguments.latency = LATENCIES
    return arguments


if __name__ == "__main__":
    main()
