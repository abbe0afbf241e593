"""``python -m bench all``: measure the service's performance goals and print the figures.

Most figures have a baseline of the same run. docs/reference/performance.md describes the methods.
"""

import argparse
import json
import os
import platform
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from notifyproject.stack import bytecode

from . import brokers, console_pages, draining, environment, path, posting, scaling, volume
from .environment import Bench
from .figures import HEADING, Figure
from .load import hour, people, slow_connections, streams, timers, window

GOALS = ("S1", "S2", "S3", "S4", "S5", "S7", "S8")
LOAD_GOALS = ("window", "S9", "S10", "S11", "S12", "S13")
EXCLUDED_FROM_ALL = (
    "S6",
    "admin",
    "claims",
    "slow_connections",
    "path",
    "scale",
    "brokers",
    "sizes",
    *LOAD_GOALS,
)
"""Benchmarks that `all` excludes: they take long, or measure no speed. "admin" is S6."""


def main() -> None:
    """Run the selected benchmarks and print their figures."""
    arguments = _arguments()
    bytecode.enable_cache()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
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
    goals = ["all", *GOALS, *EXCLUDED_FROM_ALL]
    parser.add_argument("goals", nargs="+", choices=goals, metavar="GOAL")
    parser.add_argument("--json", type=Path, metavar="FILE")
    numbers = {
        "rounds": (3, "of S1, S2 and S3"),
        "count": (15_000, "emails of S1, items of S3"),
        "due": (1_000_000, "due in S4"),
        "stored": (1_000_000, "in S4 and S5; the goal is 5,000,000, which take minutes to create"),
        "notifications": (1_000_000, "in S6, with three attempts each"),
        "mails": (200_000, "of claims: four workers"),
        "seconds": (60, "of S7, slow_connections, and S10, and each phase of window"),
        "slow": (500, "clients of slow_connections"),
        "streams": (5_000, "of S10"),
        "timers": (3_000_000, "waiting in S11"),
        "due_timers": (100_000, "that fall due in one second in S11"),
        "digests": (100_000, "that close in one minute in S12"),
        "steps": (10_000, "that open in one second in S13"),
        "latency": (0, "milliseconds after which the provider answers in S1 and scale; 0: at once"),
    }
    for name, (default, text) in numbers.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default, help=text)
    parser.add_argument(
        "--minutes", type=float, default=2, help="of load in S8 and S9; the goal is 60"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2, 4], help="worker processes of scale"
    )
    parser.add_argument("--modes", default="abcd", help="of window")
    parser.add_argument(
        "--results",
        action="store_true",
        help="write the chart of window into docs/images, and the samples of S9 into docs/results",
    )
    return parser.parse_args()


def _measure(arguments: argparse.Namespace) -> list[Figure]:
    wanted = {"S6" if goal == "admin" else goal for goal in arguments.goals}
    wanted |= set(GOALS) if "all" in wanted else set()
    found: list[Figure] = []
    with environment.run_environment() as bench:
        for goal in (*GOALS[:3], "S7", "S8", *EXCLUDED_FROM_ALL[2:]):
            if goal in wanted:
                with bench.database(f"bench_{goal.lower()}"):
                    found += _measure_goal(goal, bench, arguments)
        if wanted & {"S4", "S5"}:
            found += _measure_at_volume(wanted, bench, arguments)
        if "S6" in wanted:
            found += _measure_goal("S6", bench, arguments)
    return sorted(found, key=lambda figure: figure.key[:2])


def _measure_goal(goal: str, bench: Bench, arguments: argparse.Namespace) -> Iterator[Figure]:
    count, rounds, timed = arguments.count, arguments.rounds, {"seconds": arguments.seconds}
    measures: Mapping[str, tuple[Callable[..., Iterator[Figure]], dict[str, Any]]] = {
        "S1": (draining.measure_rates, {"count": count, "rounds": rounds}),
        "S2": (posting.measure_single, {"rounds": rounds, "seconds": 5}),
        "S3": (posting.measure_bulk, {"rounds": rounds, "count": count}),
        "S6": (console_pages.measure_pages, {"stored": arguments.notifications}),
        "S7": (posting.measure_latency, timed),
        "S8": (draining.measure_memory, {"count": count, "minutes": arguments.minutes}),
        "claims": (draining.measure_claims, {"count": arguments.mails}),
        "slow_connections": (slow_connections.measure, {"count": arguments.slow, **timed}),
        "path": (path.measure_paths, {}),
        "window": (
            window.measure_window,
            {**timed, "modes": arguments.modes, "writes_results": arguments.results},
        ),
        "scale": (
            scaling.measure_scaling,
            {
                "count": count,
                "rounds": rounds,
                "workers": arguments.workers,
                "milliseconds": arguments.latency or draining.PEER_LATENCY,
            },
        ),
        "sizes": (scaling.measure_sizes, {"count": count}),
        "brokers": (brokers.measure_brokers, {"count": count, "rounds": rounds, **timed}),
        "S9": (
            hour.measure_hour,
            {"minutes": arguments.minutes, "writes_results": arguments.results},
        ),
        "S10": (streams.measure_streams, {"streams": arguments.streams, **timed}),
        "S11": (timers.measure_timers, {"waiting": arguments.timers, "due": arguments.due_timers}),
        "S12": (people.measure_digests, {"count": arguments.digests}),
        "S13": (people.measure_steps, {"count": arguments.steps}),
    }
    measure, options = measures[goal]
    if goal == "S1" and arguments.latency:
        measure = draining.measure_rates_with_latency
        options = {**options, "milliseconds": arguments.latency}
    return measure(bench, **options, log_progress=partial(print, f"{goal}:", flush=True))


def _measure_at_volume(
    wanted: set[str], bench: Bench, arguments: argparse.Namespace
) -> Iterator[Figure]:
    log_progress = partial(print, "at volume:", flush=True)
    with bench.database(volume.STORED_NAME):
        began = time.monotonic()
        due, inbox = volume.due_mails(volume.SMALL_COUNT), volume.inbox_items(volume.INBOX_SIZE)
        volume.fill([volume.sent_mails(arguments.stored - due.count - inbox.count), due, inbox])
        log_progress(f"{arguments.stored:,} stored: filled in {time.monotonic() - began:.0f} s")
        if "S5" in wanted:
            yield from volume.measure_inbox(rounds=10)
        if "S4" in wanted:
            yield from volume.measure_sweeps_and_claims(
                bench, due=arguments.due, rounds=20, log_progress=log_progress
            )


def describe_machine() -> str:
    """Return a text on the machine, the versions of its software, and its load."""
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {model[1] if model else 'unknown processor'}, "
        f"{memory_gb:.0f} GB, {platform.system()} {platform.release()}, Python "
        f"{platform.python_version()}, load {os.getloadavg()[2]:.1f} over 15 min; "
        "everything, the providers too, on these cores"
    )


if __name__ == "__main__":
    main()
