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

from domain.time import utc_now
from notifyproject.stack import bytecode

from . import brokers, console_pages, draining, environment, path, posting, results, scaling, volume
from .environment import Bench
from .figures import HEADING, Figure
from .load import hour, people, slow_connections, streams, timers, window
from .processes import cpu_times

GOALS = ("S1", "S2", "S3", "S4", "S5", "S7", "S8", "S9", "S10", "S11")
LATENCIES = (0, 100, 300)
"""Milliseconds until the provider answers in the runs of S1 in `all`."""
EXCLUDED_FROM_ALL = (
    "S6",
    "admin",
    "claims",
    "slow_connections",
    "path",
    "scale",
    "brokers",
    "sizes",
    "window",
    "S12",
    "S13",
)
"""Benchmarks that `all` excludes: they take long, or measure no speed. "admin" is S6."""


def main() -> None:
    """Run the selected benchmarks and print their figures."""
    arguments = _arguments()
    bytecode.enable_cache()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    began, times = utc_now(), cpu_times()
    try:
        figures = sorted(_measure(arguments), key=_order)
    except KeyboardInterrupt:
        sys.exit("stopped")
    machine = describe_machine(stolen=cpu_times().stolen_share_since(times))
    print(f"\n{machine}\n\n{HEADING}")
    for figure in figures:
        print(figure.as_line())
    print()
    for figure in figures:
        if figure.note:
            print(f"{figure.key}: {figure.note}")
    if arguments.json:
        found = {figure.key: figure.as_json() for figure in figures}
        arguments.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    if arguments.results and "all" in arguments.goals:
        command = " ".join(["python -m bench", *sys.argv[1:]])
        at = f"{began:%Y-%m-%d %H:%M}"
        results.record_run(
            results.Run(measured_at=at, command=command, machine=machine, figures=figures)
        )


def _order(figure: Figure) -> tuple[str, int]:
    """Return a sort key by the number of the goal: S2 before S10."""
    name = figure.key.split(" ", 1)[0]
    digits = name.lstrip("S")
    return ("S", int(digits)) if digits.isdigit() else (name, 0)


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
    }
    for name, (default, text) in numbers.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=default, help=text)
    parser.add_argument(
        "--minutes", type=float, default=2, help="of load in S8 and S9; the goal is 60"
    )
    parser.add_argument(
        "--workers", type=int, nargs="+", default=[1, 2, 4], help="worker processes of scale"
    )
    parser.add_argument(
        "--latency",
        type=int,
        nargs="+",
        default=[0],
        metavar="MS",
        help="until the provider answers in S1 and scale; 0: at once; `all` takes 0, 100, and 300",
    )
    parser.add_argument("--modes", default="abcd", help="of window")
    parser.add_argument(
        "--results",
        action="store_true",
        help="write the chart of window into docs/images; the samples of S9, and the figures of "
        "`all`, into docs/results",
    )
    arguments = parser.parse_args()
    if "all" in arguments.goals:
        arguments.goals += GOALS
        arguments.latency = LATENCIES
    return arguments


def _measure(arguments: argparse.Namespace) -> Iterator[Figure]:
    wanted = {"S6" if goal == "admin" else goal for goal in arguments.goals}
    with environment.run_environment() as bench:
        for goal in (*GOALS, *EXCLUDED_FROM_ALL[2:]):
            if goal in wanted and goal not in {"S4", "S5"}:
                with bench.database(f"bench_{goal.lower()}"):
                    yield from _measure_goal(goal, bench, arguments)
        if wanted & {"S4", "S5"}:
            yield from _measure_at_volume(wanted, bench, arguments)
        if "S6" in wanted:
            yield from _measure_goal("S6", bench, arguments)


def _measure_goal(goal: str, bench: Bench, arguments: argparse.Namespace) -> Iterator[Figure]:
    count, rounds, timed = arguments.count, arguments.rounds, {"seconds": arguments.seconds}
    measures: Mapping[str, tuple[Callable[..., Iterator[Figure]], dict[str, Any]]] = {
        "S1": (
            draining.measure_drain,
            {"count": count, "rounds": rounds, "latencies": arguments.latency},
        ),
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
                "milliseconds": max(arguments.latency) or draining.PEER_LATENCY,
            },
        ),
        "sizes": (scaling.measure_sizes, {"count": count}),
        "brokers": (brokers.measure_brokers, {"count": count, "rounds": rounds, **timed}),
        "S9": (
            hour.measure_hour,
            {
                "minutes": arguments.minutes,
                # The samples are of the longest run, so that a short one in `all` keeps them.
                "writes_results": arguments.results and "all" not in arguments.goals,
            },
        ),
        "S10": (streams.measure_streams, {"streams": arguments.streams, **timed}),
        "S11": (timers.measure_timers, {"waiting": arguments.timers, "due": arguments.due_timers}),
        "S12": (people.measure_digests, {"count": arguments.digests}),
        "S13": (people.measure_steps, {"count": arguments.steps}),
    }
    measure, options = measures[goal]
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


def describe_machine(*, stolen: float) -> str:
    """Return a text on the machine, its software, its load, and the CPU time it did not get."""
    model = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{os.cpu_count()} cores of {model[1] if model else 'unknown processor'}, "
        f"{memory_gb:.0f} GB, {platform.system()} {platform.release()}, Python "
        f"{platform.python_version()}, load {os.getloadavg()[2]:.1f} over 15 min, "
        f"{stolen:.1%} of the CPU time stolen by other virtual machines; "
        "everything, the providers too, on these cores"
    )


if __name__ == "__main__":
    main()
