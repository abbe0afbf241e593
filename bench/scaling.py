"""Throughput by worker processes at a provider's latency, with the CPU time of each program.

Measured twice: with a send window that bounds each worker, so that the cores aren't full, and with
the default window. docs/guides/scale.md explains the figures.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median

from domain.time import utc_now
from notifyproject.db.collections import database

from . import draining, mail, queueing
from .environment import Bench, run_workers
from .figures import Figure, Progress, at_least, run_rounds
from .load.sink import Limits, LoadSink
from .processes import cpu_seconds

NARROW_WINDOW = 20
"""Requests in flight with which a worker waits for the provider most of the time."""
CORES = os.cpu_count() or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleResult:
    """The rate of some workers, and the CPU microseconds of one mail by program."""

    rate: float
    cpu: Mapping[str, float]
    busy: float
    """Share of the machine's cores that all these programs used."""

    def __str__(self) -> str:
        costs = ", ".join(f"{name} {cost:.0f}" for name, cost in self.cpu.items())
        return f"{self.rate:.0f}/s, CPU µs: {costs}; {self.busy:.0%} of {CORES} cores"


def measure_scaling(
    bench: Bench,
    *,
    workers: Sequence[int],
    count: int,
    rounds: int,
    milliseconds: int,
    log_progress: Progress,
) -> Iterator[Figure]:
    """Measure the rate by worker processes, and compare the simulation with it."""
    limits = Limits(latencies=((0, milliseconds / 1000),))
    sink = LoadSink(folder=bench.fresh_folder("load-sink"), limits=limits)
    runs: dict[str, Callable[[], ScaleResult]] = {}
    for window in (NARROW_WINDOW, draining.FLOOR_WINDOW):
        for number in workers:
            # A narrow window sends a few hundred a second. Each run takes as long, since the first
            # second of a short one would count for more.
            some = count if window > NARROW_WINDOW else count // 4 * number
            drain = partial(_drain, bench, sink, processes=number, count=some, window=window)
            runs[f"{number} workers, window {window}"] = drain
    results = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    for window in (NARROW_WINDOW, draining.FLOOR_WINDOW):
        found = {n: results[f"{n} workers, window {window}"] for n in workers}
        yield from _figures(found, window=window, milliseconds=milliseconds)
    full = results[f"{min(workers)} workers, window {draining.FLOOR_WINDOW}"]
    log_progress("simulated, a core per worker and a machine per cell (mongod's use of its cores)")
    log_progress("\n" + queueing.table(_service_times(full, milliseconds=milliseconds)))


def measure_sizes(bench: Bench, *, count: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure the size of a million sent mails, their attempts, and the indexes of both."""
    draining.drain_with_service(bench, count=count, provider="sendgrid", is_checked=False)
    log_progress(f"{count:,} mails are sent")
    database().client.admin.command("fsync")
    for name in ("notifications", "delivery_attempts"):
        found = database().command("collStats", name)
        for field, text in (("storageSize", "documents"), ("totalIndexSize", "indexes")):
            yield Figure(
                key=f"sizes {name[:4]} {text[:3]}",
                label=f"{text} of {found['count']:,} {name}, for each million",
                unit="MB",
                ours=found[field] / found["count"],
                note=f"{len(found['indexSizes'])} indexes; a fresh collection, on disk",
            )


def _figures(
    found: Mapping[int, Sequence[ScaleResult]], *, window: int, milliseconds: int
) -> Iterator[Figure]:
    first = min(found)
    for number, results in found.items():
        rate = median(one.rate for one in results)
        base = found[first]
        pairs = zip(results, base, strict=True)
        linear = median(a.rate / b.rate * first / number for a, b in pairs)
        costs = _costs(results)
        service = _service_times(results, milliseconds=milliseconds)
        simulated = queueing.one_machine(service, workers=number, cores=CORES, window=window)
        busy = median(one.busy for one in results)
        # Linear growth is due as long as the cores have room for it.
        has_room = median(one.busy for one in base) * number / first < 1
        texts = ", ".join(f"{name} {cost:.0f}" for name, cost in costs.items())
        yield Figure(
            key=f"scale {number} w{window}",
            label=f"{number} worker processes, {milliseconds} ms, window {window}",
            unit="/s",
            ours=rate,
            floor=simulated,
            ratio_floor=rate / simulated,
            note=f"floor: simulated; CPU µs per mail: {texts}; {busy:.0%} of {CORES} cores",
        )
        yield Figure(
            key=f"scale {number} w{window} lin",
            label=f"… as a share of {number // first} times the rate of {first}",
            unit="",
            ours=linear,
            goals=(at_least(0.85),) if has_room else (),
            note="" if has_room else "the cores are full before",
        )


def _costs(results: Sequence[ScaleResult]) -> dict[str, float]:
    """Return the CPU microseconds of a mail by program."""
    return {name: median(one.cpu[name] for one in results) for name in results[0].cpu}


def _service_times(results: Sequence[ScaleResult], *, milliseconds: int) -> queueing.ServiceTimes:
    costs = _costs(results)
    return queueing.ServiceTimes(
        worker=costs["worker"] / 1e6,
        shared=(costs["mongod"] + costs["valkey"] + costs["sink"]) / 1e6,
        mongod=costs["mongod"] / 1e6,
        provider=milliseconds / 1000,
    )


def _drain(bench: Bench, sink: LoadSink, *, processes: int, count: int, window: int) -> ScaleResult:
    variables = {"SENDGRID_URL": sink.url, "PROVIDER_MAX_IN_FLIGHT": str(window)}
    server = sink.server()
    server.start()
    try:
        if server.process is None:
            raise RuntimeError("the sink has ended")
        with (
            bench.database("bench_scale"),
            run_workers(bench, processes=processes, environment=variables) as workers,
        ):
            pids = {
                "worker": [one.pid for one in workers],
                "mongod": [bench.mongod_pid],
                "valkey": [bench.valkey_pid],
                "sink": [server.process.pid],
            }
            mail.store_due(draining.WARM_UP, at=utc_now())
            draining.drain_due(attempts=draining.WARM_UP)
            mail.store_due(count, at=utc_now())
            began = time.perf_counter()
            before = {name: cpu_seconds(*ids) for name, ids in pids.items()}
            draining.drain_due(attempts=draining.WARM_UP + count)
            seconds = time.perf_counter() - began
            used = {name: cpu_seconds(*ids) - before[name] for name, ids in pids.items()}
    finally:
        server.stop()
    return ScaleResult(
        rate=count / seconds,
        cpu={name: 1e6 * cost / count for name, cost in used.items()},
        busy=sum(used.values()) / seconds / CORES,
    )
