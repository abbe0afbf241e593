"""Faults of the broker: emptied, killed, unavailable for minutes, and repeated wake-ups."""

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

from ...processes import Program
from ..analysis import acceptances, waits
from ..evidence import Answer, Evidence
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, publish_wakeups, run_installation
from ..load import mail_body

FINAL_SECONDS = 300.0
MAX_DELAY_SECONDS = 90.0
"""The maximum delay of a delivery that lost its wake-up, in seconds."""
PRIORITY = "high"
FROZEN_POSTS, FROZEN_SECONDS = 20, 2.0
"""Requests while the broker is frozen, and the longest time of one until its answer."""


@scenario(
    8,
    injects="broker emptied under a backlog of 5,000; killed for 15 s; away for 5 min; frozen",
    shows="P5; 202s go on",
    full={"queued": 5_000, "rate": 10, "killed": 15, "away": 300},
    short={"queued": 200, "rate": 5, "killed": 5, "away": 20},
)
def lost_broker(*, queued: int, rate: float, killed: float, away: float) -> Findings:
    """Empty the broker under a backlog, kill it, keep it away for minutes, and freeze it."""
    with run_installation(webhooks=False) as installation:
        worker = installation.worker()
        installation.start(installation.web(), installation.beat())
        installation.start_load(count=queued, rate=1_000, body=mail_body, name="backlog").finish()
        installation.broker.empty()
        installation.start(worker)
        emptied_at = datetime.now(UTC)
        installation.wait_final(timeout=FINAL_SECONDS)
        outages = [
            _outage(installation, f"away-{n}", rate, seconds, worker)
            for n, seconds in enumerate((killed, away))
        ]
        slowest = _freeze(installation, worker)
        evidence = installation.collect_evidence()
        spans = [(emptied_at - timedelta(days=1), emptied_at), *outages]
        waited = [_longest(evidence, since, until) for since, until in spans]
        what = "seconds until all was sent after the broker's being"
        refused = sum(not answer.is_accepted for answer in evidence.answers)
        return make_findings(
            evidence,
            *(
                at_most(f"{what} {name}", seconds, MAX_DELAY_SECONDS)
                for name, seconds in zip(("emptied", "killed", "away"), waited, strict=True)
            ),
            at_most("requests that were not accepted", refused, 0),
            at_most("slowest request with a frozen broker, in seconds", slowest, FROZEN_SECONDS),
        )


def _outage(
    installation: Installation, name: str, rate: float, seconds: float, worker: Program
) -> tuple[datetime, datetime]:
    load = installation.start_load(
        count=int(rate * (seconds + 20)), rate=rate, body=mail_body, name=name
    )
    time.sleep(10)
    since = datetime.now(UTC)
    installation.broker.kill()
    time.sleep(seconds)
    installation.broker.start()
    until = datetime.now(UTC)
    load.finish()
    # A worker without a broker connection ends, and its supervisor starts another.
    installation.wait_final(timeout=FINAL_SECONDS, restarted=[worker])
    return since, until


def _freeze(installation: Installation, worker: Program) -> float:
    """Freeze the broker, and send mails; return the seconds of the slowest request."""
    os.kill(installation.broker.pid, signal.SIGSTOP)
    waits = []
    for number in range(FROZEN_POSTS):
        began = time.monotonic()
        installation.client.send(mail_body(number), key=f"frozen-{number}")
        waits.append(time.monotonic() - began)
    os.kill(installation.broker.pid, signal.SIGCONT)
    installation.wait_final(timeout=FINAL_SECONDS, restarted=[worker])
    return max(waits)


def _longest(evidence: Evidence, since: datetime, until: datetime) -> float | None:
    """Return the longest wait, after ``until``, of notifications accepted in the time before."""
    waiting = {
        notification_id: until
        for notification_id, at in acceptances(evidence).items()
        if since <= at <= until
    }
    return max(waits(evidence, waiting), default=None)


@scenario(
    9,
    injects="every wake-up delivered 10 times more, 5 at once, to 3 workers",
    shows="nothing doubled",
    full={"count": 2_000, "rate": 20, "times": 10, "at_once": 5, "workers": 3},
    short={"count": 100, "rate": 10, "times": 10, "at_once": 5, "workers": 2},
)
def repeated_wakeups(
    *, count: int, rate: float, times: int, at_once: int, workers: int
) -> Findings:
    """Publish each wake-up many times more, several at the same time, to several workers."""
    with run_installation() as installation, ThreadPoolExecutor(at_once) as pool:
        programs = installation.workers(workers)
        installation.start(installation.web(), installation.beat(), *programs)
        published: list[bool] = []

        def republish(answer: Answer) -> None:
            ids = [answer.notification_id or ""]
            published.append(publish_wakeups(ids, channel="email", priority=PRIORITY))

        def repeat(answer: Answer) -> None:
            for _ in range(times):
                pool.submit(republish, answer)

        installation.client.on_accepted = repeat
        body = partial(mail_body, priority=PRIORITY)
        installation.start_load(count=count, rate=rate, body=body).finish()
        pool.shutdown()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        return make_findings(
            evidence,
            at_least("wake-ups published again", sum(published), count * times * 0.99),
            copies="none",
        )
