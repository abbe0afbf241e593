"""S1 and S8: the rate at which due mail is sent, over HTTP and SMTP, and a worker's memory."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from domain.states import Priority
from domain.time import utc_now
from notifyproject.db.collections import collection

from . import mail, post_office
from .environment import Bench, run_program, run_workers
from .figures import Figure, Measure, Progress, at_least, at_most, compare, run_rounds
from .load.sink import Limits, LoadSink
from .processes import cpu_seconds, resident_megabytes, wait_until

WARM_UP = 200
TIMEOUT = 900.0
CLAIM_PROCESSES = 4
PROCESSES = os.cpu_count() or 1
"""Worker processes: one for each core, because a Python process uses one core."""
FLOOR_WINDOW = 512
"""Requests that the floor has in flight if the provider takes its time."""
PEER_LATENCY = 100
"""Milliseconds for which the goal against the peer is set."""
LOAD = 100
"""Emails per second in S8."""


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The rate at which due emails were sent, and the CPU time of one email."""

    rate: float
    """Emails per second."""
    cpu: float
    """Microseconds of CPU time per email, of the sender and its database."""

    @classmethod
    def from_totals(cls, count: int, *, seconds: float, cpu_seconds: float) -> "DrainResult":
        """Create from the total wall time and CPU time of ``count`` emails."""
        return cls(count / seconds, 1_000_000 * cpu_seconds / count)

    def __str__(self) -> str:
        return f"{self.rate:,.0f}/s, {self.cpu:,.0f} µs of the processor each"


Run = Callable[[], DrainResult]


def measure_drain(
    bench: Bench,
    *,
    count: int,
    rounds: int,
    latencies: Sequence[int],
    log_progress: Progress,
) -> Iterator[Figure]:
    """Measure S1 with a provider that answers after each of some latencies, in milliseconds."""
    options: dict[str, Any] = {"count": count, "rounds": rounds, "log_progress": log_progress}
    for milliseconds in latencies:
        if milliseconds:
            yield from _measure_with_latency(bench, milliseconds=milliseconds, **options)
        else:
            yield from _measure_at_once(bench, **options)


def _measure_at_once(
    bench: Bench, *, count: int, rounds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure S1: the rate of sending over SendGrid's API and over SMTP, and its CPU time."""

    def check_with_nginx(run: Run) -> DrainResult:
        result, posted = _count_requests(bench, run)
        if posted != count + WARM_UP:
            raise RuntimeError(f"{posted} requests for {count + WARM_UP} mails")
        return result

    service = partial(drain_with_service, bench, count=count)
    sendgrid = partial(service, provider="sendgrid")
    peer = partial(drain_with_post_office, bench, count=count)
    runs = {
        "ours": partial(check_with_nginx, sendgrid),
        "ours, one process": partial(check_with_nginx, partial(sendgrid, processes=1)),
        "floor": partial(check_with_nginx, partial(drain_with_floor, bench, count=count)),
        "peer": partial(check_with_nginx, partial(peer, backend=post_office.SENDGRID)),
        "ours, SMTP": partial(service, provider="smtp"),
        "peer, SMTP": partial(peer, backend=post_office.SMTP),
    }
    results = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    rate = {name: [one.rate for one in drained] for name, drained in results.items()}
    cpu = {name: [one.cpu for one in drained] for name, drained in results.items()}
    yield compare(
        ours=rate["ours"],
        floor=rate["floor"],
        peer=rate["peer"],
        key="S1",
        label=f"drain {count:,} emails by SendGrid's API",
        unit="/s",
        goals=(at_least(0.7, Measure.FLOOR), at_least(1.0, Measure.PEER)),
        note=f"{PROCESSES} worker processes, one for each core; floor and peer are one each, "
        "beside mongod and nginx; peer: post_office with the lightest HTTP backend there is",
    )
    yield compare(
        ours=rate["ours, one process"],
        floor=rate["floor"],
        peer=rate["peer"],
        key="S1 one process",
        label="… by one worker process",
        unit="/s",
        note="Python uses one core",
    )
    yield compare(
        ours=rate["ours, SMTP"],
        peer=rate["peer, SMTP"],
        key="S1 SMTP",
        label=f"drain {count:,} emails by SMTP",
        unit="/s",
        goals=(at_least(1.0, Measure.PEER),),
        note="peer: post_office with Django's SMTP backend",
    )
    yield compare(
        ours=cpu["ours"],
        floor=cpu["floor"],
        peer=cpu["peer"],
        key="S1 CPU",
        label="… and what one costs by SendGrid's API",
        unit="CPU µs",
        goals=(at_most(1_100),),
        note="the sender's processor time and mongod's; says most where the machine is not idle",
    )


def _measure_with_latency(
    bench: Bench, *, count: int, rounds: int, milliseconds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure S1 with a provider that answers after some milliseconds, and at once."""
    limits = Limits(latencies=((0, milliseconds / 1000),))
    sink = LoadSink(folder=bench.fresh_folder("load-sink"), limits=limits)
    url = {"SENDGRID_URL": sink.url}
    service = partial(drain_with_service, bench, count=count, provider="sendgrid")
    floor = partial(drain_with_floor, bench, count=count, window=FLOOR_WINDOW, sink=sink.url)
    # The peer has five requests in flight, so that it takes minutes for all.
    peer = partial(drain_with_post_office, bench, count=max(count // 10, 1), environment=url)
    runs: dict[str, Run] = {
        "ours": partial(service, environment=url),
        "ours, at once": service,
        "floor": floor,
        "peer": partial(peer, backend=post_office.SENDGRID),
    }
    with sink.running():
        results = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    rate = {name: [one.rate for one in drained] for name, drained in results.items()}
    yield compare(
        ours=rate["ours"],
        floor=rate["floor"],
        peer=rate["peer"],
        key=f"S1 {milliseconds} ms",
        label=f"drain {count:,} emails, answered after {milliseconds} ms",
        unit="/s",
        goals=(at_least(3.0, Measure.PEER),) if milliseconds == PEER_LATENCY else (),
        note=f"floor: {FLOOR_WINDOW} threads; peer: its default of {post_office.THREADS} threads",
    )
    yield Figure(
        key=f"S1 {milliseconds} ms share",
        label="… as a share of its own rate if answered at once",
        unit="",
        ours=median(rate["ours"]) / median(rate["ours, at once"]),
        goals=(at_least(0.8),),
    )


def drain_with_service(
    bench: Bench,
    *,
    count: int,
    provider: str,
    processes: int = PROCESSES,
    is_checked: bool = True,
    environment: Mapping[str, str] | None = None,
) -> DrainResult:
    """Send due emails with worker processes of the service.

    If ``is_checked``, raises RuntimeError unless the first attempt sent each email.
    """
    variables = {"EMAIL_PROVIDER": provider, **(environment or {})}
    with run_workers(bench, processes=processes, environment=variables) as workers:
        mail.store_due(WARM_UP, at=utc_now())
        drain_due(attempts=WARM_UP)
        mail.store_due(count, at=utc_now())
        pids = (*(worker.pid for worker in workers), bench.mongod_pid)
        began, cpu = time.perf_counter(), cpu_seconds(*pids)
        drain_due(attempts=WARM_UP + count)
        seconds = time.perf_counter() - began
        cpu = cpu_seconds(*pids) - cpu
    if is_checked and (count_missed := _count_not_sent_once()):
        raise RuntimeError(f"{count_missed} of {count} mails were not sent at the first try")
    return DrainResult.from_totals(count, seconds=seconds, cpu_seconds=cpu)


def drain_due(*, attempts: int) -> None:
    """Sweep, and wait until there are so many attempts in all and every mail is final."""
    from delivery import sweeper

    sweeper.sweep(now=utc_now())
    # MongoDB knows the number of attempts without a scan, so polling it costs little.
    what = "the mails were not sent"
    wait_until(lambda: _count_attempts() >= attempts, timeout=TIMEOUT, what=what, poll=0.02)
    wait_until(is_all_final, timeout=TIMEOUT, what=what, poll=0.02)


def drain_with_floor(bench: Bench, *, count: int, window: int = 32, sink: str = "") -> DrainResult:
    """Send due emails with the hand-written floor, ``window`` requests at a time."""
    path = mail.rendered_mail().save(bench.folder / "mail.json")
    arguments = (bench.mongodb_uri, bench.mongod_pid, sink or bench.http.url, path, count, window)
    return DrainResult.from_totals(count, **run_program(bench, "floor", *arguments))


def drain_with_post_office(
    bench: Bench, *, count: int, backend: str, environment: Mapping[str, str] | None = None
) -> DrainResult:
    """Send due emails with :mod:`bench.post_office`."""
    path = mail.rendered_mail().save(bench.folder / "mail.json")
    arguments = ("drain", bench.fresh_folder("post_office"), path, count, backend)
    cost = run_program(bench, "post_office", *arguments, environment=environment)
    return DrainResult.from_totals(count, **cost)


def is_all_final() -> bool:
    """Return whether every notification is final."""
    # With the priorities, MongoDB finds an open one in the index, whatever is stored.
    is_open = {"priority": {"$in": [one.value for one in Priority]}, "due_at": {"$exists": True}}
    return collection("notifications").find_one(is_open, {"_id": 1}) is None


def measure_claims(bench: Bench, *, count: int, log_progress: Progress) -> Iterator[Figure]:
    """Send with four worker processes, and count the mails that were not sent exactly once."""
    drain = partial(drain_with_service, bench, count=count, provider="sendgrid", is_checked=False)
    result, posted = _count_requests(bench, partial(drain, processes=CLAIM_PROCESSES))
    surplus = posted - WARM_UP - count
    log_progress(f"{result}; requests beyond one for each: {surplus}")
    yield Figure(
        key="claims",
        label=f"{count:,} emails by four workers: not sent exactly once",
        unit="",
        ours=abs(surplus) + _count_not_sent_once(),
        goals=(at_most(0),),
        note="what the provider got beyond one for each, what is not sent, and further attempts",
    )


def _count_not_sent_once() -> int:
    sent = {"delivery.status": "sent", "delivery.attempt_count": 1}
    stored = collection("notifications")
    unsent = stored.count_documents({"$nor": [sent]})
    return unsent + abs(_count_attempts() - stored.estimated_document_count())


def _count_attempts() -> int:
    return int(collection("delivery_attempts").estimated_document_count())


def _count_requests(bench: Bench, run: Run) -> tuple[DrainResult, int]:
    before = bench.http.request_count()
    result = run()
    # The first count was a request, too.
    return result, bench.http.request_count() - before - 1


def measure_memory(
    bench: Bench, *, count: int, minutes: float, log_progress: Progress
) -> Iterator[Figure]:
    """Measure S8: the memory of a worker after a drain, and under a steady load."""
    from delivery import sweeper

    with run_workers(bench, environment={"WORKER_THREADS": "32"}) as (worker,):
        mail.store_due(count, at=utc_now())
        sweeper.sweep(now=utc_now())
        wait_until(is_all_final, timeout=TIMEOUT, what="the mails were not sent")
        drained = resident_megabytes(worker.pid)
        log_progress(f"after {count:,} emails: {drained:.0f} MB")
        samples = []
        until = time.monotonic() + 60 * minutes
        while (began := time.monotonic()) < until:
            mail.store_due(LOAD, at=utc_now())
            sweeper.sweep(now=utc_now())
            samples.append(resident_megabytes(worker.pid))
            time.sleep(max(began + 1 - time.monotonic(), 0))
        log_progress(f"under load: {min(samples):.0f} to {max(samples):.0f} MB")
    quarter = max(len(samples) // 4, 1)
    yield Figure(
        key="S8 memory",
        label=f"a worker with 32 threads after {count:,} emails",
        unit="MB",
        ours=max(drained, *samples),
        goals=(at_most(200),),
        note="the most of the samples taken each second",
    )
    before, after = median(samples[quarter : 2 * quarter]), median(samples[-quarter:])
    yield Figure(
        key="S8 growth",
        label=f"its growth in {minutes:g} min at {LOAD}/s",
        unit="%",
        ours=100 * (after / before - 1),
        goals=(at_most(5),),
        note="the last quarter of the time against the second",
    )
