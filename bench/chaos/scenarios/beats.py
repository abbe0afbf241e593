"""Faults of beat: it is killed, or several beats and sweepers run at once."""

import time
from datetime import UTC, datetime, timedelta

import urllib3

from ..analysis import waits
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import SWEEP_TEXT, Installation, run_installation
from ..load import mail_body

MAX_DELAY_SECONDS = 90.0
FINAL_SECONDS = 900.0
FINAL_SECONDS_OF_TROUBLE = 3_600.0
"""Most of that mail fails at first: an open circuit or a 429 holds the account much of the time."""
SCHEDULE_AHEAD = timedelta(seconds=65)
"""Longer than the minute before the send time in which wake-ups are published."""
RECIPIENTS = ("user", "user", "user", "reset", "flaky", "timeout", "truncated", "ratelimit-once")


@scenario(
    4,
    injects="kill -9 of beat for 10 min, a sweeper beside it from the fourth on",
    shows="P5; readiness reports it within 180 s",
    full={"red": 180, "away": 420, "every": 20},
    short={"red": 180, "away": 60, "every": 20},
)
def beat_killed(*, red: float, away: float, every: float) -> Findings:
    """Kill beat, wait until readiness degrades, and replace beat by a sweeper.

    A delivery that is scheduled more than a minute ahead gets no wake-up, so only a sweep finds it.
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
        evidence = installation.finish(timeout=FINAL_SECONDS)
        late = waits(evidence, due)
        swept = max(waits(evidence, dict.fromkeys(overdue, swept_from)), default=None)
        what = "seconds from the sweeper's start to what had fallen due"
        return make_findings(
            evidence,
            at_most("seconds until readiness reports missing sweeps", waited, red),
            at_most(what, swept, MAX_DELAY_SECONDS),
            at_most("seconds late at most", max(late, default=None), MAX_DELAY_SECONDS),
            at_least("seconds late at least", min(late, default=None), 0),
            at_least("ready again by the sweeper", int(readiness == "ready"), 1),
        )


@scenario(
    5,
    injects="3 beats and 3 sweepers at once, over mail that meets all kinds of trouble",
    shows="nothing doubled",
    full={"count": 2_000, "rate": 10, "beats": 3, "sweepers": 3},
    short={"count": 60, "rate": 5, "beats": 2, "sweepers": 2},
)
def many_sweepers(*, count: int, rate: float, beats: int, sweepers: int) -> Findings:
    """Run several beats and sweepers at once while mail meets all kinds of faults."""
    with run_installation() as installation:
        several = [installation.beat(f"beat-{number}") for number in range(beats)]
        several += installation.sweepers(sweepers, every="2")
        installation.start(installation.web(), *installation.workers(2), *several)
        installation.start_load(
            count=count,
            rate=rate,
            body=lambda n: mail_body(n, to=RECIPIENTS[n % len(RECIPIENTS)], priority="critical"),
        ).finish()
        evidence = installation.finish(timeout=FINAL_SECONDS_OF_TROUBLE)
        swept = sum(program.count_logged(SWEEP_TEXT) for program in installation.programs)
        return make_findings(evidence, at_least("sweeps", swept, sweepers * 5))


def _scheduled(installation: Installation, name: str, *, count: int) -> dict[str, datetime]:
    """Schedule notifications so far ahead that they get no wake-up; return their times by ID."""
    first = datetime.now(UTC).replace(microsecond=0) + SCHEDULE_AHEAD
    times = [first + timedelta(seconds=number) for number in range(count)]
    bodies = (mail_body(n, scheduled_at=at.isoformat()) for n, at in enumerate(times))
    answers = installation.client.send_each(bodies, name=name)
    return {
        answer.notification_id or answer.key: at for answer, at in zip(answers, times, strict=True)
    }


def _readiness(installation: Installation) -> str:
    answer = urllib3.request("GET", f"{installation.url}/readyz", timeout=10, retries=False)
    return str(answer.json()["status"])


def _wait_for_readiness(installation: Installation, status: str, *, timeout: float) -> float | None:
    """Wait for a readiness status; return the seconds, or None after the timeout."""
    started = time.monotonic()
    while time.monotonic() < started + timeout:
        if _readiness(installation) == status:
            return time.monotonic() - started
        time.sleep(1)
    return None
