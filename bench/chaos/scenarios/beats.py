"""Whoever starts the sweep is gone, or there are too many of them."""

import time
from datetime import UTC, datetime, timedelta

import urllib3

from .. import bodies
from ..bodies import Body
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import waits
from ..load import Load
from ..scenario import Scenario
from ..stand import Installation, run_installation

MAX_DELAY_SECONDS = 90.0
FINAL_SECONDS = 900.0
SCHEDULE_AHEAD = timedelta(seconds=65)
"""A hint goes a minute ahead at most."""
RECIPIENTS = ("user", "user", "user", "reset", "flaky", "timeout", "truncated", "ratelimit-once")


def beat_killed(*, red: float, away: float, every: float) -> Findings:
    """Kill beat: readiness tells; then a second sweeper does its work.

    What is scheduled further ahead than a minute has no hint of its own: only a sweep finds it.
    """
    with run_installation() as installation:
        beat = installation.beat()
        installation.start(installation.web(), installation.worker(), beat)
        _wait_for_readiness(installation, "ready", timeout=120)
        beat.kill()
        overdue = _scheduled(installation, "overdue", count=10)
        waited = _wait_for_readiness(installation, "degraded", timeout=red + 60)
        swept_from = datetime.now(UTC)
        installation.start(installation.sweeper())
        due: dict[str, datetime] = {}
        until = time.monotonic() + away
        while time.monotonic() < until:
            due |= _scheduled(installation, f"at-{until - time.monotonic():.0f}", count=5)
            time.sleep(every)
        readiness = _readiness(installation)
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        late = waits(evidence, due)
        return make_findings(
            evidence,
            Bound(
                name="seconds until readiness says that nobody sweeps", value=waited, maximum=red
            ),
            Bound(
                name="seconds from the sweeper's start to what had fallen due",
                value=max(waits(evidence, dict.fromkeys(overdue, swept_from)), default=None),
                maximum=MAX_DELAY_SECONDS,
            ),
            Bound(
                name="seconds late at most",
                value=max(late, default=None),
                maximum=MAX_DELAY_SECONDS,
            ),
            Bound(name="seconds late at least", value=min(late, default=None), minimum=0),
            Bound(name="ready again by the sweeper", value=int(readiness == "ready"), minimum=1),
        )


def many_sweepers(*, count: int, rate: float, beats: int, sweepers: int) -> Findings:
    """Run several beats and several sweepers over notifications that meet all kinds of trouble."""
    with run_installation() as installation:
        installation.start(
            installation.web(),
            *(installation.worker(f"worker-{number}") for number in range(2)),
            *(installation.beat(f"beat-{number}") for number in range(beats)),
            *(
                installation.sweeper(f"sweeper-{number}", "--every", "2")
                for number in range(sweepers)
            ),
        )
        load = Load(installation.client, count=count, rate=rate, body=_body)
        load.start()
        load.finish()
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        swept = sum(one.count_logged("woken ") for one in installation.programs)
        return make_findings(evidence, Bound(name="sweeps", value=swept, minimum=sweepers * 5))


def _scheduled(installation: Installation, name: str, *, count: int) -> dict[str, datetime]:
    """Have notifications accepted for later than any hint goes; return when they fall due."""
    due: dict[str, datetime] = {}
    for number in range(count):
        at = datetime.now(UTC).replace(microsecond=0) + SCHEDULE_AHEAD + timedelta(seconds=number)
        body = bodies.mail(number, scheduled_at=at.isoformat())
        answer = installation.client.send(body, key=f"{name}-{number}")
        due[answer.notification_id or answer.key] = at
    return due


def _readiness(installation: Installation) -> str:
    answer = urllib3.request("GET", f"{installation.url}/readyz", timeout=10, retries=False)
    return str(answer.json()["status"])


def _wait_for_readiness(installation: Installation, status: str, *, timeout: float) -> float | None:
    """Return the seconds until readiness has this status; None if it does not in time."""
    started = time.monotonic()
    while time.monotonic() < started + timeout:
        if _readiness(installation) == status:
            return time.monotonic() - started
        time.sleep(1)
    return None


def _body(number: int) -> Body:
    return bodies.mail(number, to=RECIPIENTS[number % len(RECIPIENTS)], priority="critical")


BEAT_KILLED = Scenario(
    number=4,
    injects="kill -9 of beat for 10 min, a sweeper beside it from the fourth on",
    shows="P5; readiness tells within 180 s",
    run=beat_killed,
    full={"red": 180, "away": 420, "every": 20},
    short={"red": 180, "away": 60, "every": 20},
)
MANY_SWEEPERS = Scenario(
    number=5,
    injects="3 beats and 3 sweepers at once, over mail that meets all kinds of trouble",
    shows="nothing doubled",
    run=many_sweepers,
    full={"count": 2_000, "rate": 10, "beats": 3, "sweepers": 3},
    short={"count": 60, "rate": 5, "beats": 2, "sweepers": 2},
)
