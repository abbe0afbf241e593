"""The broker forgets everything, dies, and stays away."""

import time
from datetime import UTC, datetime, timedelta

from .. import bodies
from ..bodies import Body
from ..evidence import Evidence
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import acceptances, waits
from ..load import Load
from ..processes import Program
from ..scenario import Scenario
from ..stand import Installation, run_installation

FINAL_SECONDS = 300.0
MAX_DELAY_SECONDS = 90.0
"""Seconds within which what no hint reached is sent."""
LONG_BEFORE = timedelta(days=1)


def lost_broker(*, queued: int, rate: float, killed: float, away: float) -> Findings:
    """Empty the broker under a backlog, kill it for a moment, and keep it away for minutes."""
    with run_installation(webhooks=False) as installation:
        worker = installation.worker()
        installation.start(installation.web(), installation.beat())
        backlog = _load(installation, "backlog", count=queued, rate=1_000)
        backlog.finish()
        installation.broker.flushall()
        installation.start(worker)
        emptied_at = datetime.now(UTC)
        installation.wait_final(timeout=FINAL_SECONDS)
        outages = [
            _outage(installation, f"away-{n}", rate, seconds, worker)
            for n, seconds in enumerate((killed, away))
        ]
        evidence = collect_evidence(installation)
        spans = [(emptied_at - LONG_BEFORE, emptied_at), *outages]
        names = ("being emptied", "being killed", "being away")
        return make_findings(
            evidence,
            *(
                Bound(
                    name=f"seconds until all was sent after the broker's {name}",
                    value=_longest(evidence, since, until),
                    maximum=MAX_DELAY_SECONDS,
                )
                for name, (since, until) in zip(names, spans, strict=True)
            ),
            Bound(
                name="requests that were not accepted",
                value=sum(not answer.is_accepted for answer in evidence.answers),
                maximum=0,
            ),
        )


def _outage(
    installation: Installation, name: str, rate: float, seconds: float, worker: Program
) -> tuple[datetime, datetime]:
    """Take the broker away while notifications come in; return from when to when it was."""
    load = _load(installation, name, count=int(rate * (seconds + 20)), rate=rate)
    time.sleep(10)
    since = datetime.now(UTC)
    installation.valkey.kill()
    time.sleep(seconds)
    installation.valkey.start()
    until = datetime.now(UTC)
    load.finish()
    # A worker that has lost its hearing ends; whoever runs workers starts another.
    installation.wait_final(timeout=FINAL_SECONDS, restarted=[worker])
    return since, until


def _load(installation: Installation, name: str, *, count: int, rate: float) -> Load:
    load = Load(installation.client, count=count, rate=rate, body=_body, name=name)
    load.start()
    return load


def _body(number: int) -> Body:
    return bodies.mail(number)


def _longest(evidence: Evidence, since: datetime, until: datetime) -> float | None:
    """Return the most seconds from ``until`` to the first request about what came in before it."""
    waiting = {one: until for one, at in acceptances(evidence).items() if since <= at <= until}
    return max(waits(evidence, waiting), default=None)


LOST_BROKER = Scenario(
    number=8,
    injects="FLUSHALL under a backlog of 5,000; Valkey killed for 15 s; Valkey away for 5 min",
    shows="P5; 202s go on",
    run=lost_broker,
    full={"queued": 5_000, "rate": 10, "killed": 15, "away": 300},
    short={"queued": 200, "rate": 5, "killed": 5, "away": 20},
)
