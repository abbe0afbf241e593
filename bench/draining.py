"""S1 and S8: the rate at which due mail is sent, and a worker's memory; the size of sent mail."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

from domain.states import Priority
from domain.time import utc_now
from notifyproject.db.collections import collection, database

from . import browsers, latency, mail, post_office, room_posts, texts
from .environment import Bench, run_program, run_workers
from .figures import Figure, Goal, Measure, Progress, at_least, at_most, compare, run_rounds
from .processes import cpu_seconds, resident_megabytes, wait_until

WARM_UP = 200
TIMEOUT = 900.0
PROCESSES = os.cpu_count() or 1
"""Worker processes: one for each core, because a Python process uses one core."""
FLOOR_WINDOW = 512
"""Requests that the floor has in flight if the provider takes its time."""
PEER_LATENCY = 100
"""Milliseconds for which the goal against the peer is set."""
SERVICE_LATENCY = 100
"""Milliseconds until an email service answers."""
SERVICES: Mapping[str, Mapping[str, str]] = {
    "sendgrid": {},
    "ses": {
        "SES_ACCESS_KEY_ID": "AKIABENCH0000000001",
        "SES_SECRET_ACCESS_KEY": "bench-secret",
    },
    "postmark": {"POSTMARK_SERVER_TOKEN": "bench-token"},
}
"""The variables of email services: one with a builder of our own, for comparison, and the others,
which have a goal."""
SERVICE_NOTES: Mapping[str, str] = {
    "sendgrid": "JSON of our own, for comparison",
    "ses": "MIME of our own, signed requests",
    "postmark": "JSON and answers by django-anymail",
}
SMS_LATENCY = 100
"""Milliseconds until the provider of SMS answers."""
PUSH_LATENCY = 100
"""Milliseconds until the push service of browsers answers."""
ROOM_LATENCY = 100
"""Milliseconds until rooms answer."""
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
    bench: Bench, *, count: int, rounds: int, latencies: Sequence[int], log_progress: Progress
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
        before = bench.http.request_count()
        result = run()
        # The first count was a request, too.
        posted = bench.http.request_count() - before - 1
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
    rate = {name: [result.rate for result in drained] for name, drained in results.items()}
    cpu = {name: [result.cpu for result in drained] for name, drained in results.items()}
    baselines = {"floor": rate["floor"], "peer": rate["peer"]}
    goals = (at_least(0.7, Measure.FLOOR), at_least(1.0, Measure.PEER))
    label = f"drain {count:,} emails by SendGrid's API"
    note = (
        f"{PROCESSES} worker processes, one for each core; floor and peer are one each, beside "
        "mongod and nginx; peer: post_office with the lightest HTTP backend there is"
    )
    yield compare(
        ours=rate["ours"], **baselines, key="S1", label=label, unit="/s", goals=goals, note=note
    )
    label, note = "… by one worker process", "Python uses one core"
    one_process = rate["ours, one process"]
    yield compare(
        ours=one_process, **baselines, key="S1 one process", label=label, unit="/s", note=note
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
    with _sink(bench, milliseconds=milliseconds) as url:
        service = partial(drain_with_service, bench, count=count, provider="sendgrid")
        variables = {"SENDGRID_URL": url}
        # The peer has five requests in flight, so that it takes minutes for all.
        peer_count = max(count // 10, 1)
        runs: dict[str, Run] = {
            "ours": partial(service, environment=variables),
            "ours, at once": service,
            "floor": partial(drain_with_floor, bench, count=count, window=FLOOR_WINDOW, sink=url),
            "peer": partial(
                drain_with_post_office,
                bench,
                count=peer_count,
                backend=post_office.SENDGRID,
                environment=variables,
            ),
        }
        results = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    rate = {name: [result.rate for result in drained] for name, drained in results.items()}
    at_once = rate.pop("ours, at once")
    yield compare(
        **rate,
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
        ours=median(rate["ours"]) / median(at_once),
        goals=(at_least(0.8),),
    )


def measure_services(
    bench: Bench, *, count: int, rounds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure the rate of emails by services that answer after SERVICE_LATENCY, in turn."""
    with ExitStack() as sinks:
        runs: dict[str, Run] = {}
        for name, variables in SERVICES.items():
            url = sinks.enter_context(_sink(bench, milliseconds=SERVICE_LATENCY, provider=name))
            environment = {**variables, f"{name.upper()}_URL": url}
            runs[name] = partial(
                drain_with_service, bench, count=count, provider=name, environment=environment
            )
        results = run_rounds(runs, rounds=rounds, log_progress=log_progress)
    for name, found in results.items():
        yield from _rate_and_cost(
            found,
            key=name,
            label=f"send {count:,} emails by {name}, answered after {SERVICE_LATENCY} ms",
            goals=(at_least(350),) if SERVICES[name] else (),
            note=SERVICE_NOTES[name],
        )


def measure_sms(
    bench: Bench, *, count: int, rounds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure the rate of text messages, whose provider answers after SMS_LATENCY."""
    with _sink(bench, milliseconds=SMS_LATENCY, provider="twilio") as url:
        found = _drained(
            bench,
            count=count,
            rounds=rounds,
            environment={**texts.ENVIRONMENT, "TWILIO_URL": url},
            store_due=texts.store_due,
            log_progress=log_progress,
        )
    yield from _rate_and_cost(
        found,
        key="sms",
        label=f"send {count:,} SMS by Twilio, answered after {SMS_LATENCY} ms",
        goals=(at_least(600),),
        note="one part each, with the caps of the day",
    )


def measure_web_push(
    bench: Bench, *, count: int, rounds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure the rate of pushes to browsers, each encrypted, at PUSH_LATENCY."""
    key = browsers.create_browsers(max(count, WARM_UP), at=utc_now())
    with _sink(bench, milliseconds=PUSH_LATENCY, provider="webpush") as url:
        found = _drained(
            bench,
            count=count,
            rounds=rounds,
            environment={
                "WEBPUSH_KEYS": key,
                "WEBPUSH_SUBJECT": "mailto:bench@example.com",
                "SANDBOX_URL": url,
            },
            store_due=browsers.store_due,
            log_progress=log_progress,
        )
    yield from _rate_and_cost(
        found,
        key="webpush",
        label=f"push {count:,} messages to browsers, answered after {PUSH_LATENCY} ms",
        goals=(at_least(500),),
        note="a browser each, by one push service",
    )


def measure_rooms(
    bench: Bench, *, count: int, rounds: int, log_progress: Progress
) -> Iterator[Figure]:
    """Measure the rate of messages to rooms whose provider answers after ROOM_LATENCY."""
    room_posts.create_rooms(at=utc_now())
    with _sink(bench, milliseconds=ROOM_LATENCY) as url:
        found = _drained(
            bench,
            count=count,
            rounds=rounds,
            environment={"ROOMS_URL": url},
            store_due=room_posts.store_due,
            log_progress=log_progress,
        )
    yield from _rate_and_cost(
        found,
        key="rooms",
        label=f"post {count:,} messages to rooms, answered after {ROOM_LATENCY} ms",
        goals=(at_least(200),),
        note=f"cards of Teams to {room_posts.ROOMS} rooms without a minimum gap",
    )


def _sink(
    bench: Bench, *, milliseconds: int, provider: str = "sendgrid"
) -> AbstractContextManager[str]:
    """Run a provider that answers after some milliseconds, as a context with its address."""
    folder = bench.fresh_folder(f"sink-{provider}")
    return latency.run_sink(folder, seconds=milliseconds / 1000, provider=provider)


def _drained(
    bench: Bench,
    *,
    count: int,
    rounds: int,
    environment: Mapping[str, str],
    store_due: Callable[..., None],
    log_progress: Progress,
) -> Sequence[DrainResult]:
    """Return the results of draining messages of one kind by the service."""
    drain = partial(
        drain_with_service,
        bench,
        count=count,
        provider="sendgrid",
        environment=environment,
        store_due=store_due,
    )
    return run_rounds({"ours": drain}, rounds=rounds, log_progress=log_progress)["ours"]


def _rate_and_cost(
    found: Sequence[DrainResult], *, key: str, label: str, goals: Sequence[Goal], note: str
) -> Iterator[Figure]:
    yield compare(
        ours=[result.rate for result in found],
        key=key,
        label=label,
        unit="/s",
        goals=goals,
        note=note,
    )
    yield compare(
        ours=[result.cpu for result in found],
        key=f"{key} CPU",
        label="… and what one costs",
        unit="CPU µs",
        note="the workers' processor time and mongod's",
    )


def drain_with_service(
    bench: Bench,
    *,
    count: int,
    provider: str,
    processes: int = PROCESSES,
    environment: Mapping[str, str] | None = None,
    store_due: Callable[..., object] = mail.store_due,
) -> DrainResult:
    """Send due messages, emails unless ``store_due`` stores others, with workers of the service.

    Raises RuntimeError unless the first attempt sent each message.
    """
    variables = {"EMAIL_PROVIDER": provider, **(environment or {})}
    with run_workers(bench, processes=processes, environment=variables) as workers:
        store_due(WARM_UP, at=utc_now())
        drain_due(attempts=WARM_UP)
        store_due(count, at=utc_now())
        pids = (*(worker.pid for worker in workers), bench.mongod_pid)
        began, cpu = time.perf_counter(), cpu_seconds(*pids)
        drain_due(attempts=WARM_UP + count)
        seconds = time.perf_counter() - began
        cpu = cpu_seconds(*pids) - cpu
    sent = {"delivery.status": "sent", "delivery.attempt_count": 1}
    stored = collection("notifications")
    surplus = _count_attempts() - stored.estimated_document_count()
    if count_missed := stored.count_documents({"$nor": [sent]}) + abs(surplus):
        raise RuntimeError(f"{count_missed} of {count} messages were not sent at the first try")
    return DrainResult.from_totals(count, seconds=seconds, cpu_seconds=cpu)


def drain_due(*, attempts: int) -> None:
    """Sweep, and wait until there are ``attempts`` attempts in all and every mail is final."""
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
    is_open = {"priority": {"$in": [*map(str, Priority)]}, "due_at": {"$exists": True}}
    return collection("notifications").find_one(is_open, {"_id": 1}) is None


def _count_attempts() -> int:
    return int(collection("delivery_attempts").estimated_document_count())


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


def measure_sizes(bench: Bench, *, count: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure the size of a million sent mails, their attempts, and the indexes of both."""
    drain_with_service(bench, count=count, provider="sendgrid")
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
