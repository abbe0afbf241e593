"""``python -m bench all``: measure what the service promises of its speed, and print it.

Every figure stands beside what it is compared to, measured in the same run. What was measured, and
how, is in docs/performance.md.
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
ALONE = {
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
    signal.signal(signal.SIGTERM, _stop)
    try:
        figures = _measure(arguments)
    except KeyboardInterrupt:
        sys.exit("stopped")
    print(f"\n{machine()}\n\n{HEADING}")
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
    parser.add_argument("goals", nargs="+", choices=["all", *GOALS, *ALONE], metavar="GOAL")
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
    wanted = {ALONE.get(goal, goal) for goal in arguments.goals}
    wanted |= set(GOALS) if "all" in wanted else set()
    found: list[Figure] = []
    with environment.running() as bench:
        for goal in ("S1", "S2", "S3", "S7", "S8", "claims", "slow_connections", "path"):
            if goal in wanted:
                with bench.database(f"bench_{goal.lower()}"):
                    found += _of(goal, bench, arguments)
        if wanted & {"S4", "S5"}:
            found += _at_volume(wanted, bench, arguments)
        if "S6" in wanted:
            found += _of("S6", bench, arguments)
    return sorted(found, key=lambda figure: figure.key[:2])


def _of(goal: str, bench: Bench, asked: argparse.Namespace) -> Iterator[Figure]:
    """Measure one goal in a database of its own."""

    def say(text: str) -> None:
        print(f"{goal}: {text}", flush=True)

    measure: Mapping[str, Callable[[], Iterator[Figure]]] = {
        "S1": lambda: draining.rates(bench, count=asked.count, rounds=asked.rounds, say=say),
        "S2": lambda: posting.one(bench, rounds=asked.rounds, seconds=5, say=say),
        "S3": lambda: posting.many(bench, rounds=asked.rounds, count=asked.count, say=say),
        "S6": lambda: admin.pages(bench, stored=asked.notifications, say=say),
        "S7": lambda: latency.of_sends(bench, seconds=asked.seconds, say=say),
        "S8": lambda: memory.of_a_worker(bench, count=asked.count, minutes=asked.minutes, say=say),
        "claims": lambda: draining.by_four(bench, count=asked.mails, say=say),
        "slow_connections": lambda: slow_connections.of_the_web(
            bench, count=asked.slow, seconds=asked.seconds, say=say
        ),
        "path": lambda: path.ways(bench, say=say),
    }
    return measure[goal]()


def _at_volume(wanted: set[str], bench: Bench, asked: argparse.Namespace) -> Iterator[Figure]:
    """Measure what needs a collection of millions: it is filled once for all of them."""

    def say(text: str) -> None:
        print(f"at volume: {text}", flush=True)

    with bench.database(due.STORED_NAME):
        began = time.monotonic()
        final = asked.stored - due.SMALL - inbox.FULL
        volume.fill([volume.sent(final), volume.due(due.SMALL), volume.inbox(inbox.FULL)])
        say(f"{asked.stored:,} stored: filled in {time.monotonic() - began:.0f} s")
        if "S5" in wanted:
            yield from inbox.reads(rounds=10)
        if "S4" in wanted:
            yield from due.costs(bench, due=asked.due, rounds=20, say=say)


def machine() -> str:
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


def _stop(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
