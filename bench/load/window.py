"""The send window against a provider with limits, and a thousand requests in flight."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf

from delivery.window import DEFAULT_MAXIMUM
from domain.time import utc_now
from notifyproject.db.collections import collection
from notifyproject.settings.environment import BASE_DIR

from .. import draining, mail
from ..environment import Bench, run_workers
from ..figures import Figure, Progress, at_least, at_most
from ..processes import Program, resident_megabytes, wait_until
from . import chart
from .chart import Line, Panel
from .sink import Limits, LoadSink, Sample

CHART = BASE_DIR / "docs/images/send_window.svg"
SHARE = 0.9
"""Goal: the share of what the provider allows."""
PROCESSES = 2
PER_SECOND = 200
CONCURRENT, CONCURRENT_LATENCY = 20, 0.1
FAST, SLOW = 0.05, 2.0
"""Seconds of latency of the provider that slows down."""
SETTLING = 5.0
"""Seconds after a change of the provider that don't count."""
SWEEP_SECONDS = 5.0
ALLOWED = "share of what the provider allows"
SLOWDOWN = "the smaller of: share of the window while slow, share of the first rate afterwards"
MANY = 1_000
"""Requests in flight in one process."""
MANY_COUNT = 10 * MANY


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the provider saw, and what became of the mails."""

    samples: Sequence[Sample]
    wasted: int
    """Mails that failed, are in doubt, or used up an attempt without being sent by it."""

    def rate(self, start: float, end: float) -> float:
        """Return the mails accepted per second between two times after the beginning."""
        return self.total("accepted", start, end) / (end - start)

    def total(self, name: str, start: float, end: float) -> float:
        """Return the sum of a field of the samples between two times after the beginning."""
        began_at = self.samples[0].at
        found = [one for one in self.samples if start < one.at - began_at <= end]
        return float(sum(getattr(one, name) for one in found))


@dataclass(frozen=True, kw_only=True)
class ModeResult:
    """How much of what a provider allows was used, and its chart."""

    label: str
    share: float
    note: str
    run: Run
    panel: Panel

    def figures(self, mode: str) -> Iterator[Figure]:
        """Return the figures of the mode."""
        yield Figure(
            key=f"window {mode}",
            label=self.label,
            unit="of it",
            ours=self.share,
            goals=(at_least(SHARE),),
            note=self.note,
        )
        yield Figure(
            key=f"window {mode} waste",
            label="… mails that failed or used up an attempt",
            unit="",
            ours=self.run.wasted,
            goals=(at_most(0),),
        )
        yield Figure(
            key=f"window {mode} 429",
            label="… refusals for each accepted mail",
            unit="",
            ours=self.run.total("refused", 0, inf) / self.run.total("accepted", 0, inf),
        )


def measure_window(
    bench: Bench, *, modes: str, seconds: float, writes_results: bool, log_progress: Progress
) -> Iterator[Figure]:
    """Measure the share of a limited provider that is used, and a process with a large window."""
    measures = {"a": _measure_rate, "b": _measure_slowdown, "c": _measure_concurrency}
    panels = []
    for mode in sorted(measures.keys() & set(modes)):
        result = measures[mode](bench, seconds)
        panels.append(result.panel)
        log_progress(panels[-1].title)
        yield from result.figures(mode)
    if writes_results:
        caption = f"Measured on {utc_now():%Y-%m-%d}: {PROCESSES} worker processes on two cores."
        CHART.write_text(chart.render(panels, caption=caption))
    if "d" in modes:
        yield from _measure_many(bench, log_progress=log_progress)


def _measure_rate(bench: Bench, seconds: float) -> ModeResult:
    run = _run(bench, Limits(per_second=PER_SECOND), rate=PER_SECOND, seconds=seconds)
    share = run.rate(SETTLING, seconds) / PER_SECOND
    text = f"429 with the time of the reset above {PER_SECOND}/s"
    title = f"{text}: {share:.2f} of it used"
    panel = _panel(title, run, PER_SECOND)
    return ModeResult(label=text, share=share, note=ALLOWED, run=run, panel=panel)


def _measure_slowdown(bench: Bench, seconds: float) -> ModeResult:
    latencies = ((0.0, FAST), (seconds, SLOW), (2 * seconds, FAST))
    run = _run(bench, Limits(latencies=latencies), rate=3_000, seconds=3 * seconds)
    slow = run.rate(seconds + SETTLING, 2 * seconds) / (PROCESSES * DEFAULT_MAXIMUM / SLOW)
    before = run.rate(SETTLING, seconds)
    again = run.rate(2 * seconds + SETTLING, 3 * seconds)
    text = f"answers after {1000 * FAST:.0f} ms, then {SLOW:g} s, then {1000 * FAST:.0f} ms"
    title = f"{text}: {before:,.0f}/s, {slow:.2f} of the window, {again:,.0f}/s"
    share, panel = min(slow, again / before), _panel(title, run)
    return ModeResult(label=text, share=share, note=SLOWDOWN, run=run, panel=panel)


def _measure_concurrency(bench: Bench, seconds: float) -> ModeResult:
    limits = Limits(concurrent=CONCURRENT, latencies=((0.0, CONCURRENT_LATENCY),))
    allowed = CONCURRENT / CONCURRENT_LATENCY
    run = _run(bench, limits, rate=allowed, seconds=seconds)
    # The sink takes a little longer than its latency, which is no fault of the service.
    busy = run.total("busy", SETTLING, seconds)
    share = busy / (CONCURRENT * (seconds - SETTLING))
    text = f"429 above {CONCURRENT} requests at once, {1000 * CONCURRENT_LATENCY:.0f} ms each"
    panel = _panel(f"{text}: {share:.2f} of it used", run, allowed)
    return ModeResult(label=text, share=share, note=ALLOWED, run=run, panel=panel)


def _panel(title: str, run: Run, allowed: float | None = None) -> Panel:
    return Panel(title=title, lines=tuple(chart_lines(run.samples, allowed=allowed)))


def chart_lines(samples: Sequence[Sample], *, allowed: float | None) -> Iterator[Line]:
    """Return the lines of the samples, per second."""
    began_at = samples[0].at
    seconds: dict[int, list[Sample]] = {}
    for one in samples:
        seconds.setdefault(int(one.at - began_at), []).append(one)
    rows = {second: some for second, some in seconds.items() if len(some) > 1}

    def line(label: str, color: str, values: dict[int, float]) -> Line:
        return Line(label=label, color=color, points=[(float(x), y) for x, y in values.items()])

    accepted = {x: float(sum(one.accepted for one in some)) for x, some in rows.items()}
    refused = {x: float(sum(one.refused for one in some)) for x, some in rows.items()}
    yield line("accepted per second", "#2563eb", accepted)
    if any(refused.values()):
        yield line("refused per second", "#dc2626", refused)
    in_flight = {x: float(max(one.in_flight for one in some)) for x, some in rows.items()}
    yield line("in flight", "#059669", in_flight)
    if allowed is not None and rows:
        points = [(0.0, allowed), (float(max(rows)), allowed)]
        yield Line(label="allowed per second", color="#64748b", points=points, is_dashed=True)


def _run(bench: Bench, limits: Limits, *, rate: float, seconds: float) -> Run:
    """Send with more mail than the provider takes for some seconds, then stop the workers."""
    from delivery import sweeper

    collection("notifications").delete_many({})
    with LoadSink(folder=bench.fresh_folder("load-sink"), limits=limits).running() as sink:
        variables = {"SENDGRID_URL": sink.url}
        with run_workers(bench, processes=PROCESSES, environment=variables):
            mail.store_due(round(rate * seconds * 1.2), at=utc_now())
            sweeper.sweep(now=utc_now())
            wait_until(sink.samples, timeout=60, what="nothing was sent")
            until = time.monotonic() + seconds
            while (left := until - time.monotonic()) > 0:
                time.sleep(min(SWEEP_SECONDS, left))
                sweeper.sweep(now=utc_now())
        return Run(samples=sink.samples(), wasted=_count_wasted())


def _count_wasted() -> int:
    used = {
        "$subtract": [{"$sum": "$delivery.attempt_count"}, {"$sum": "$delivery.uncounted_attempts"}]
    }
    useful = {"$cond": [{"$in": ["$status", ["sent", "delivered"]]}, 1, 0]}
    return collection("notifications").count_documents({"$expr": {"$gt": [used, useful]}})


def _measure_many(bench: Bench, *, log_progress: Progress) -> Iterator[Figure]:
    """Stop one process with a thousand requests in flight, then send the rest."""
    collection("notifications").delete_many({})
    limits = Limits(latencies=((0.0, SLOW),))
    with LoadSink(folder=bench.fresh_folder("load-sink"), limits=limits).running() as sink:
        variables = {"SENDGRID_URL": sink.url, "PROVIDER_MAX_IN_FLIGHT": str(MANY)}
        run_one = partial(run_workers, bench, environment=variables)
        mail.store_due(MANY_COUNT, at=utc_now())
        with run_one() as (worker,):
            memory = [_run_until(sink, worker, accepted=MANY_COUNT // 2)]
            stopped_after = worker.terminate()
        log_progress(f"d: stopped after {stopped_after} s")
        notifications = collection("notifications")
        in_doubt = notifications.count_documents(
            {"delivery.status": {"$in": ["sending", "unknown"]}}
        )
        with run_one() as (worker,):
            memory.append(_run_until(sink, worker, accepted=MANY_COUNT))
            wait_until(draining.is_all_final, timeout=60, what="the rest was not sent")
        samples = sink.samples()
    surplus = sum(one.accepted for one in samples) - MANY_COUNT
    figures = (
        ("in flight", "requests in flight in one process, at most", "", at_least(0.98 * MANY)),
        ("memory", "… its resident memory, at most", "MB", at_most(250)),
        ("stop", "… until it ended after SIGTERM", "s", at_most(30)),
        ("doubt", "… lost, in doubt, or sent twice", "", at_most(0)),
    )
    values = (
        max(one.in_flight for one in samples),
        max(memory),
        float("inf") if stopped_after is None else stopped_after,
        in_doubt + abs(surplus) + _count_wasted(),
    )
    for (key, label, unit, goal), value in zip(figures, values, strict=True):
        yield Figure(key=f"window d {key}", label=label, unit=unit, ours=value, goals=(goal,))


def _run_until(sink: LoadSink, worker: Program, *, accepted: int) -> float:
    """Wait until the sink has accepted so many mails; return the worker's largest memory."""
    from delivery import sweeper

    sweeper.sweep(now=utc_now())
    largest = 0.0

    def is_done() -> bool:
        nonlocal largest
        largest = max(largest, resident_megabytes(worker.pid))
        return sum(one.accepted for one in sink.samples()) >= accepted

    wait_until(is_done, timeout=300, what="the mails were not sent", poll=0.25)
    return largest
