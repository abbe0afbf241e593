"""``python -m bench all``: measure what the service promises of its speed, and print it.

Every figure stands beside what it is compared to, measured in the same run. What was measured, and
how, is in docs/reference/performance.md.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from notifyproject.stack import bytecode

from . import (
    admin,
    draining,
    due,
    environment,
    inbox,
    latency,
    memory,
    path,
    posting,
    slow_connections,
    volume,
)
from .environment import Bench
from .figures import HEADING, Figure

GOALS = ("S1", "S2", "S3", "S4", "S5", "S7", "S8")
EXCLUDED_FROM_ALL = {
    "S6": "S6",
    "admin": "S6",
    "claims": "claims",
    "slow_connections": "slow_connections",
    "path": "path",
}
"""Benchmarks that `all` leaves out: they take long, or measure no speed."""


def main() -> None:
    """Run what is asked for."""
    arguments = _arguments()
    bytecode.enable_cache()
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        figures = _measure(arguments)
    except KeyboardInterrupt:
        sys.exit("stopped")
    print(f"\n{describe_machine()}\n\n{HEADING}")
    for figure in figures:
        print(figure.as_line())
    print()
    for figure in figures:
        if figure.note:
            print(f"{figure.key}: {figure.note}")
    if arguments.json:
        found = {figure.key: figure.as_json() for figure in figures}
        arguments.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "goals", nargs="+", choices=["all", *GOALS, *EXCLUDED_FROM_ALL], metavar="GOAL"
    )
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--rounds", type=int, default=3, help="of S1, S2 and S3")
    parser.add_argument("--count", type=int, default=15_000, help="emails of S1, items of S3")
    parser.add_argument("--due", type=int, default=1_000_000, help="due in S4")
    parser.add_argument(
        "--stored",
        type=int,
        default=1_000_000,
        help="stored in S4 and S5; the goal says 5,000,000, which take some minutes to fill in",
    )
    parser.add_argument(
        "--notifications",
        type=int,
        default=1_000_000,
        help="in S6; there are three attempts for each",
    )
    parser.add_argument("--mails", type=int, default=200_000, help="of claims: four workers")
    parser.add_argument("--seconds", type=int, default=60, help="of S7 and slow_connections")
    parser.add_argument("--slow", type=int, default=500, help="clients of slow_connections")
    parser.add_argument("--minutes", type=float, default=2, help="of load in S8; the goal says 60")
    return parser.parse_args()


def _measure(arguments: argparse.Namespace) -> list[Figure]:
    wanted = {EXCLUDED_FROM_ALL.get(goal, goal) for goal in arguments.goals}
    wanted |= set(GOALS) if "all" in wanted else set()
    found: list[Figure] = []
    with environment.run_environment() as bench:
        for goal in ("S1", "S2", "S3", "S7", "S8", "claims", "slow_connections", "path"):
            if goal in wanted:
                with bench.database(f"bench_{goal.lower()}"):
                    found += _measure_goal(goal, bench, arguments)
        if wanted & {"S4", "S5"}:
            found += _measure_at_volume(wanted, bench, arguments)
        if "S6" in wanted:
            found += _measure_goal("S6", bench, arguments)
    return sorted(found, key=lambda figure: figure.key[:2])


def _measure_goal(goal: str, bench: Bench, arguments: argparse.Namespace) -> Iterator[Figure]:
    """Measure one goal in a database of its own."""

    def log_progress(text: str) -> None:
        print(f"{goal}: {text}", flush=True)

    measure: Mapping[str, Callable[[], Iterator[Figure]]] = {
        "S1": lambda: draining.measure_rates(
            bench, count=arguments.count, rounds=arguments.rounds, log_progress=log_progress
        ),
        "S2": lambda: posting.measure_single(
            bench, rounds=arguments.rounds, seconds=5, log_progress=log_progress
        ),
        "S3": lambda: posting.measure_bulk(
            bench, rounds=arguments.rounds, count=arguments.count, log_progress=log_progress
        ),
        "S6": lambda: admin.measure_pages(
            bench, stored=arguments.notifications, log_progress=log_progress
        ),
        "S7": lambda: latency.measure_latency(
            bench, seconds=arguments.seconds, log_progress=log_progress
        ),
        "S8": lambda: memory.measure_memory(
            bench, count=arguments.count, minutes=arguments.minutes, log_progress=log_progress
        ),
        "claims": lambda: draining.measure_claims(
            bench, count=arguments.mails, log_progress=log_progress
        ),
        "slow_connections": lambda: slow_connections.measure_slow_connections(
            bench, count=arguments.slow, seconds=arguments.seconds, log_progress=log_progress
        ),
        "path": lambda: path.measure_paths(bench, log_progress=log_progress),
    }
    return measure[goal]()


def _measure_at_volume(
    wanted: set[str], bench: Bench, arguments: argparse.Namespace
) -> Iterator[Figure]:
    """Measure what needs a collection of millions: it is filled once for all of them."""

    def log_progress(text: str) -> None:
        print(f"at volume: {text}", flush=True)

    with bench.database(due.STORED_NAME):
        began = time.monotonic()
        final = arguments.stored - due.SMALL_COUNT - inbox.INBOX_SIZE
        volume.fill(
            [
                volume.sent_mails(final),
                volume.due_mails(due.SMALL_COUNT),
                volume.inbox_items(inbox.INBOX_SIZE),
            ]
        )
        log_progress(f"{arguments.stored:,} stored: filled in {time.monotonic() - began:.0f} s")
        if "S5" in wanted:
            yield from inbox.measure_inbox(rounds=10)
        if "S4" in wanted:
            yield from due.measure_sweeps_and_claims(
                bench, due=arguments.due, rounds=20, log_progress=log_progress
            )


def describe_machine() -> str:
    """Return what this runs on, for committed results."""
    cpu = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.partition(":")[2].strip()
            break
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = os.getloadavg()[2]
    return (
        f"{os.cpu_count()} cores of {cpu}, {memory_gb:.0f} GB, {platform.system()} "
        f"{platform.release()}, Python {platform.python_version()}, load {load:.1f} over 15 min; "
        f"everything, the providers too, on these cores"
    )


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
