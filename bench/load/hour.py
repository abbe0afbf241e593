"""S9: a steady load for an hour: latency per minute, memory per process, and index sizes."""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from domain.time import utc_now
from notifyproject.db.collections import collection

from .. import posting
from ..environment import Bench
from ..figures import Figure, Progress, at_most
from ..processes import ScenarioError, resident_megabytes, wait_until
from ..results import RESULTS
from .sink import Arrival, Limits, LoadSink
from .stack import CRITICAL_PER_SECOND, CRITICAL_SCOPE, SteadyPosts, run_stack
from .tables import markdown_table, percentile_of

PER_SECOND, BATCH = 278, 139
"""A million mails in an hour, in bulk requests."""
LATENCY = 0.1
MAIL, CRITICAL = "mail", "critical"
MEMORY_SECONDS = 5.0
WARM_UP = 600.0
"""Seconds after which memory must not grow; half of a shorter run."""
MEMORY_WINDOW = 60.0
"""Seconds of which the median is the memory at a time."""
SERVERS = frozenset({"mongod"})
"""Processes whose memory is reported and has no goal: a cache fills up to its limit."""
STORED = ("notifications", "delivery_attempts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """The waits of the mails that were due in one minute, in seconds, and sizes at its end."""

    minute: int
    mails: int
    p50: float
    p99: float
    critical_p50: float
    critical_p99: float
    slowest: float
    memory: Mapping[str, float]
    """MB by process."""
    index_megabytes: Mapping[str, float]
    """By index, such as ``notifications.ntf_due``."""


@dataclass(frozen=True, slots=True)
class MemorySample:
    """The MB of each process, at a time in seconds after the beginning."""

    at: float
    megabytes: Mapping[str, float]


def measure_hour(
    bench: Bench, *, minutes: float, writes_results: bool, log_progress: Progress
) -> Iterator[Figure]:
    """Measure waits and memory under a steady load."""
    limits = Limits(latencies=((0.0, LATENCY),))
    sink = LoadSink(folder=bench.fresh_folder("load-sink"), limits=limits)
    key = posting.create_key(CRITICAL_SCOPE)
    memory: list[MemorySample] = []
    rows: list[Minute] = []
    arrivals: list[Arrival] = []
    new: list[Arrival] = []
    with ExitStack() as context:
        context.enter_context(sink.running())
        reader = sink.arrival_reader()
        programs = ("web", "worker", "urgent", "beat")
        stack = context.enter_context(run_stack(bench, *programs, SENDGRID_URL=sink.url))
        pids = {**stack.pids(), "mongod": bench.mongod_pid}
        url = stack.addresses.web
        loads = [
            SteadyPosts(
                url=url,
                key=key,
                kind=MAIL,
                priority="normal",
                per_second=PER_SECOND,
                batch=BATCH,
            ),
            SteadyPosts(
                url=url,
                key=key,
                kind=CRITICAL,
                priority="critical",
                per_second=CRITICAL_PER_SECOND,
            ),
        ]
        began_at = time.time()
        with loads[0], loads[1]:
            while (elapsed := time.time() - began_at) < 60 * minutes:
                sizes = {name: resident_megabytes(pid) for name, pid in pids.items()}
                memory.append(MemorySample(elapsed, sizes))
                if elapsed >= 60 * (len(rows) + 1):
                    # Only those of two minutes: this process posts, and reading all holds it up.
                    last, new = new, reader.read_new()
                    arrivals += new
                    rows.append(_minute([*last, *new], len(rows) + 1, began_at, sizes))
                    log_progress(_describe(rows[-1]))
                time.sleep(MEMORY_SECONDS)
        posted = sum(load.posted for load in loads)
        what = "mails that didn't arrive"

        def have_arrived() -> bool:
            arrivals.extend(reader.read_new())
            return len(arrivals) >= posted

        try:
            wait_until(have_arrived, timeout=60, what=what, poll=1.0)
        except ScenarioError as error:
            log_progress(str(error))
    if errors := [error for load in loads for error in load.errors]:
        log_progress(f"{len(errors)} refused POSTs, the first: {errors[0]}")
    if writes_results:
        write_results(rows, memory, minutes=minutes)
    yield from _figures(arrivals, memory, minutes=minutes)
    yield Figure(
        key="S9 lost",
        label="… mails lost, sent twice, or refused by the API",
        unit="",
        ours=abs(posted - len(arrivals)) + len(errors),
        goals=(at_most(0),),
    )


def _figures(
    arrivals: Sequence[Arrival], memory: Sequence[MemorySample], *, minutes: float
) -> Iterator[Figure]:
    waits = {kind: [one.wait for one in arrivals if one.kind == kind] for kind in (MAIL, CRITICAL)}
    load = f"{PER_SECOND}/s for {minutes:g} min"
    for kind, percent, limit in ((CRITICAL, 99, 1), (CRITICAL, 99.9, 5), (MAIL, 99, 10)):
        yield Figure(
            key=f"S9 {kind} p{percent:g}",
            label=f"{load}: POST → provider, {kind}, p{percent:g}",
            unit="s",
            ours=percentile_of(waits[kind], percent),
            goals=(at_most(limit),),
            note=f"of {len(waits[kind]):,}",
        )
    start = memory_start(minutes)
    for name, percent in growth(memory, start=start).items():
        yield Figure(
            key=f"S9 {name}",
            label=f"memory growth of {name} after {start / 60:g} min",
            unit="%",
            ours=percent,
            goals=() if name in SERVERS else (at_most(2),),
            note=f"{memory[-1].megabytes[name]:.0f} MB at the end",
        )


def memory_start(minutes: float) -> float:
    """Return the seconds from which on memory must not grow."""
    return min(WARM_UP, 60 * minutes / 2)


def growth(memory: Sequence[MemorySample], *, start: float) -> dict[str, float]:
    """Return by process how much its memory grew from ``start`` to the end, in percent."""
    end = memory[-1].at
    first = [one.megabytes for one in memory if start <= one.at <= start + MEMORY_WINDOW]
    last = [one.megabytes for one in memory if end - MEMORY_WINDOW <= one.at]
    return {
        name: 100 * (median(one[name] for one in last) / median(one[name] for one in first) - 1)
        for name in memory[-1].megabytes
    }


def _minute(
    arrivals: Sequence[Arrival], number: int, began_at: float, memory: Mapping[str, float]
) -> Minute:
    start = began_at + 60 * (number - 1)
    found = [one for one in arrivals if start <= one.due_at < start + 60]
    waits = {kind: [one.wait for one in found if one.kind == kind] for kind in (MAIL, CRITICAL)}
    return Minute(
        minute=number,
        mails=len(found),
        p50=percentile_of(waits[MAIL], 50),
        p99=percentile_of(waits[MAIL], 99),
        critical_p50=percentile_of(waits[CRITICAL], 50),
        critical_p99=percentile_of(waits[CRITICAL], 99),
        slowest=max((one.wait for one in found), default=0.0),
        memory=memory,
        index_megabytes=_index_sizes(),
    )


def _index_sizes() -> dict[str, float]:
    sizes = {}
    for name in STORED:
        (found,) = collection(name).aggregate([{"$collStats": {"storageStats": {}}}])
        for index, size in found["storageStats"]["indexSizes"].items():
            sizes[f"{name}.{index}"] = size / 2**20
    return sizes


def _describe(row: Minute) -> str:
    return (
        f"minute {row.minute}: {row.mails:,} mails, p50 {row.p50:.2f} s, p99 {row.p99:.2f} s; "
        f"critical p50 {row.critical_p50:.2f} s, p99 {row.critical_p99:.2f} s"
    )


def write_results(
    rows: Sequence[Minute], memory: Sequence[MemorySample], *, minutes: float
) -> None:
    """Write the samples as JSON, and a row per minute as a Markdown table."""
    RESULTS.mkdir(exist_ok=True)
    found: dict[str, Any] = {
        "measured_at": f"{utc_now():%Y-%m-%d}",
        "minutes": [asdict(row) for row in rows],
        "memory": [asdict(one) for one in memory],
    }
    (RESULTS / "load_hour.json").write_text(json.dumps(_rounded(found), indent=1) + "\n")
    title = f"# {PER_SECOND} mails per second for {minutes:g} minutes\n\n"
    text = (
        f"`python -m bench S9 --minutes {minutes:g} --results`, {utc_now():%Y-%m-%d}. Waits are "
        "seconds from POST to provider; memory and indexes are MB.\n\n"
    )
    (RESULTS / "load_hour.md").write_text(title + text + table(rows))


def table(rows: Sequence[Minute]) -> str:
    """Return the rows as a Markdown table: waits, memory by process, and index sizes."""
    names = list(rows[0].memory) if rows else []
    headings = ["minute", "mails", "p50", "p99", "critical p50", "critical p99", "slowest"]
    lines = [
        [
            row.minute,
            f"{row.mails:,}",
            *(f"{wait:.2f}" for wait in (row.p50, row.p99, row.critical_p50, row.critical_p99)),
            f"{row.slowest:.2f}",
            *(f"{row.memory[name]:.0f}" for name in names),
            *(f"{_total(row, name):.1f}" for name in STORED),
        ]
        for row in rows
    ]
    return markdown_table([*headings, *names, *(f"indexes of {name}" for name in STORED)], lines)


def _total(row: Minute, name: str) -> float:
    sizes = row.index_megabytes.items()
    return sum(size for index, size in sizes if index.startswith(f"{name}."))


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    return [_rounded(one) for one in value] if isinstance(value, list) else value
