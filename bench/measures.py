"""Runs the selected benchmarks, each in a database of its own."""

import argparse
import os
import platform
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from . import audience_files, console_pages, draining, environment, posting, volume
from .environment import Bench
from .figures import Figure
from .processes import cpu_times


def measure(arguments: argparse.Namespace) -> tuple[str, Sequence[Figure]]:
    """Return the machine as text, and the figures of the goals of a command line."""
    times = cpu_times()
    figures = sorted(_measure(arguments), key=lambda figure: figure.key.split(" ", 1)[0])
    return describe_machine(stolen=cpu_times().stolen_share_since(times)), figures


def _measure(arguments: argparse.Namespace) -> Iterator[Figure]:
    wanted = set(arguments.goals)
    count, rounds = arguments.count, arguments.rounds
    measures: Mapping[str, tuple[Callable[..., Iterator[Figure]], dict[str, Any]]] = {
        "S1": (
            draining.measure_drain,
            {"count": count, "rounds": rounds, "latencies": arguments.latency},
        ),
        "S2": (posting.measure_single, {"rounds": rounds, "seconds": 5}),
        "S3": (posting.measure_bulk, {"rounds": rounds, "count": count}),
        "S6": (console_pages.measure_pages, {"stored": arguments.notifications}),
        "S7": (posting.measure_latency, {"seconds": arguments.seconds}),
        "S8": (draining.measure_memory, {"count": count, "minutes": arguments.minutes}),
        "services": (draining.measure_services, {"count": count // 5, "rounds": rounds}),
        "sms": (draining.measure_sms, {"count": count // 5, "rounds": rounds}),
        "webpush": (draining.measure_web_push, {"count": count // 5, "rounds": rounds}),
        "rooms": (draining.measure_rooms, {"count": count // 5, "rounds": rounds}),
        "file": (audience_files.measure_files, {"rows": arguments.rows}),
        "sizes": (draining.measure_sizes, {"count": count}),
    }
    with environment.run_environment() as bench:
        for goal, (measure, options) in measures.items():
            if goal in wanted:
                log_progress = partial(print, f"{goal}:", flush=True)
                with bench.database(f"bench_{goal.lower()}"):
                    yield from measure(bench, **options, log_progress=log_progress)
        if wanted & {"S4", "S5"}:
            yield from _measure_at_volume(wanted, bench, arguments)


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
