"""S1: how fast due mail leaves, over HTTP and over SMTP."""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from notifyproject.db.collections import collection

from . import environment, mail, post_office
from .environment import Bench
from .figures import Figure, Measure, at_least, at_most, median, ratio, run_rounds

WARM_UP = 200
TIMEOUT = 900.0
CLAIM_PROCESSES = 4
PROCESSES = os.cpu_count() or 1
"""Worker processes: a process of Python uses one core, and is run once for each."""


@dataclass(frozen=True, slots=True)
class DrainResult:
    """How fast it was, and what an email cost."""

    rate: float
    """Emails a second."""
    cpu: float
    """Microseconds of the processor for an email: of the sender and its database."""

    @classmethod
    def from_totals(cls, count: int, *, seconds: float, cpu_seconds: float) -> "DrainResult":
        """Return what ``count`` emails make of it."""
        return cls(count / seconds, 1_000_000 * cpu_seconds / count)

    def __str__(self) -> str:
        return f"{self.rate:,.0f}/s, {self.cpu:,.0f} µs of the processor each"


Run = Callable[[], DrainResult]


def measure_rates(
    bench: Bench, *, count: int, rounds: int, log_progress: Callable[[str], None]
) -> Iterator[Figure]:
    """Measure S1: by SendGrid's API, and by SMTP."""

    def checked_by_nginx(run: Run) -> Run:
        return lambda: _check_request_count(bench, run, count=count + WARM_UP)

    results = run_rounds(
        {
            "ours": checked_by_nginx(
                lambda: drain_with_service(bench, count=count, provider="sendgrid")
            ),
            "ours, one process": checked_by_nginx(
                lambda: drain_with_service(bench, count=count, provider="sendgrid", processes=1)
            ),
            "floor": checked_by_nginx(lambda: drain_with_floor(bench, count=count)),
            "peer": checked_by_nginx(
                lambda: drain_with_post_office(bench, count=count, backend=post_office.SENDGRID)
            ),
            "ours, SMTP": lambda: drain_with_service(bench, count=count, provider="smtp"),
            "peer, SMTP": lambda: drain_with_post_office(
                bench, count=count, backend=post_office.SMTP
            ),
        },
        rounds=rounds,
        log_progress=log_progress,
    )
    rate = {name: [one.rate for one in rounds_of] for name, rounds_of in results.items()}
    cpu = {name: [one.cpu for one in drained] for name, drained in results.items()}
    yield Figure(
        key="S1",
        label=f"drain {count:,} emails by SendGrid's API",
        unit="/s",
        ours=median(rate["ours"]),
        floor=median(rate["floor"]),
        peer=median(rate["peer"]),
        ratio_floor=ratio(rate["ours"], rate["floor"]),
        ratio_peer=ratio(rate["ours"], rate["peer"]),
        goals=(at_least(0.7, Measure.FLOOR), at_least(1.0, Measure.PEER)),
        note=(
            f"{PROCESSES} worker processes, one for each core; floor and peer are one each, beside "
            "mongod and nginx; peer: post_office with the lightest HTTP backend there is"
        ),
    )
    yield Figure(
        key="S1 one process",
        label="… by one worker process",
        unit="/s",
        ours=median(rate["ours, one process"]),
        floor=median(rate["floor"]),
        peer=median(rate["peer"]),
        ratio_floor=ratio(rate["ours, one process"], rate["floor"]),
        ratio_peer=ratio(rate["ours, one process"], rate["peer"]),
        note="Python uses one core",
    )
    yield Figure(
        key="S1 SMTP",
        label=f"drain {count:,} emails by SMTP",
        unit="/s",
        ours=median(rate["ours, SMTP"]),
        peer=median(rate["peer, SMTP"]),
        ratio_peer=ratio(rate["ours, SMTP"], rate["peer, SMTP"]),
        goals=(at_least(1.0, Measure.PEER),),
        note="peer: post_office with Django's SMTP backend",
    )
    yield Figure(
        key="S1 CPU",
        label="… and what one costs by SendGrid's API",
        unit="CPU µs",
        ours=median(cpu["ours"]),
        floor=median(cpu["floor"]),
        peer=median(cpu["peer"]),
        ratio_floor=ratio(cpu["ours"], cpu["floor"]),
        ratio_peer=ratio(cpu["ours"], cpu["peer"]),
        note="the sender's processor time and mongod's; says most where the machine is not idle",
    )


def drain_with_service(
    bench: Bench,
    *,
    count: int,
    provider: str,
    processes: int = PROCESSES,
    is_checked: bool = True,
) -> DrainResult:
    """Send due emails with worker processes of the service.

    Raises RuntimeError if one was not sent at the first try, unless ``is_checked`` is false.
    """
    from delivery import sweeper
    from domain.time import utc_now

    variables = {"EMAIL_PROVIDER": provider}
    with environment.run_workers(bench, processes=processes, environment=variables) as workers:

        def drain(so_far: int) -> None:
            sweeper.sweep(now=utc_now())
            # Whoever counts must not cost what is measured: first what MongoDB knows by heart.
            environment.wait_for(lambda: _count_attempts() >= so_far, timeout=TIMEOUT, pause=0.02)
            environment.wait_for(is_all_final, timeout=TIMEOUT, pause=0.02)

        mail.store_due(WARM_UP, at=utc_now())
        drain(WARM_UP)
        mail.store_due(count, at=utc_now())
        pids = (*(worker.pid for worker in workers), bench.mongod_pid)
        began, cpu = time.perf_counter(), environment.cpu_seconds(*pids)
        drain(WARM_UP + count)
        seconds = time.perf_counter() - began
        cpu = environment.cpu_seconds(*pids) - cpu
    if is_checked and (count_missed := _count_not_sent_once()):
        raise RuntimeError(f"{count_missed} of {count} mails were not sent at the first try")
    return DrainResult.from_totals(count, seconds=seconds, cpu_seconds=cpu)


def drain_with_floor(bench: Bench, *, count: int) -> DrainResult:
    """Send them with the hand-written floor."""
    path = mail.rendered_mail().save(bench.folder / "mail.json")
    pid = str(bench.mongod_pid)
    arguments = (bench.mongodb_uri, pid, bench.http.url, str(path), str(count))
    return DrainResult.from_totals(count, **environment.run_program(bench, "floor", *arguments))


def drain_with_post_office(bench: Bench, *, count: int, backend: str) -> DrainResult:
    """Send them with django-post_office."""
    path = mail.rendered_mail().save(bench.folder / "mail.json")
    folder = bench.fresh_folder("post_office")
    arguments = ("drain", str(folder), str(path), str(count), backend)
    return DrainResult.from_totals(
        count, **environment.run_program(bench, "post_office", *arguments)
    )


def is_all_final() -> bool:
    """Return whether every notification is at its end."""
    wanted = {"priority": "normal", "due_at": {"$exists": True}}
    return collection("notifications").find_one(wanted, {"_id": 1}) is None


def measure_claims(
    bench: Bench, *, count: int, log_progress: Callable[[str], None]
) -> Iterator[Figure]:
    """Have four worker processes send what is due, and count what was sent once, and what not."""
    result, posted = _count_requests(
        bench,
        lambda: drain_with_service(
            bench, count=count, provider="sendgrid", processes=CLAIM_PROCESSES, is_checked=False
        ),
    )
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
    """Return how many stored mails are not sent by exactly one attempt."""
    sent = {"delivery.status": "sent", "delivery.attempt_count": 1}
    stored = collection("notifications")
    unsent = stored.count_documents({"$nor": [sent]})
    return unsent + abs(_count_attempts() - stored.estimated_document_count())


def _count_attempts() -> int:
    """Return how many attempts have begun."""
    return int(collection("delivery_attempts").estimated_document_count())


def _check_request_count(bench: Bench, run: Run, *, count: int) -> DrainResult:
    """Return what ``run`` returns; raises RuntimeError if nginx got another number of requests."""
    result, posted = _count_requests(bench, run)
    if posted != count:
        raise RuntimeError(f"{posted} requests for {count} mails")
    return result


def _count_requests(bench: Bench, run: Run) -> tuple[DrainResult, int]:
    """Return what ``run`` returns, and how many requests nginx got meanwhile."""
    before = bench.http.request_count()
    result = run()
    # One of the requests was this question.
    return result, bench.http.request_count() - before - 1
