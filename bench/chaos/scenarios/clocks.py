"""Workers whose clocks are ten minutes fast and ten minutes slow."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from notifyproject.settings.environment import BASE_DIR

from ...processes import ScenarioError
from ..analysis import waits
from ..findings import Bound, Findings, accepted_id, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import mail_body

FAKETIME = "usr/lib/*/faketime/libfaketime.so.1"
"""From Debian's package; `make bench-servers` unpacks it."""
SKEWS = {"fast": "+600s", "slow": "-600s"}
FINAL_SECONDS = 300.0
SCHEDULE_AHEAD = timedelta(seconds=60)
BRIEF_TTL = 30
"""Seconds after which what nobody was there to send expires."""
MAX_DELAY_SECONDS = 2.0
"""P6: how late what is scheduled may be (p99). A second more is the clocks' own tolerance."""
TOLERANCE = 1.0
SCHEDULE_STEP = timedelta(milliseconds=100)
"""Between two that are scheduled."""


@scenario(
    17,
    injects="one worker's clock ten minutes fast, another's ten minutes slow",
    shows="P6, P7",
    full={"scheduled": 500, "expiring": 100},
    short={"scheduled": 30, "expiring": 10},
)
def wrong_clocks(*, scheduled: int, expiring: int) -> Findings:
    """Let a fast and a slow worker send what is scheduled, and find what has expired."""
    with run_installation(webhooks=False) as installation:
        installation.start(installation.web(), installation.beat())
        brief = [_send(installation, f"brief-{n}", n, ttl=BRIEF_TTL) for n in range(expiring)]
        installation.broker.flushall()
        due = datetime.now(UTC) + SCHEDULE_AHEAD
        # One after the other: how late each is, and not how many the sandbox takes in a second.
        times = [due + SCHEDULE_STEP * n for n in range(scheduled)]
        later = {
            _send(installation, f"later-{n}", expiring + n, scheduled_at=at.isoformat()): at
            for n, at in enumerate(times)
        }
        _wait_until(datetime.now(UTC) + timedelta(seconds=BRIEF_TTL))
        for name, skew in SKEWS.items():
            installation.worker(name).start(**_wrong_clock(skew))
        for one in installation.programs:
            one.wait_ready()
        installation.wait_final(timeout=FINAL_SECONDS)
        logs = [(installation.folder / f"{name}.log").read_text() for name in SKEWS]
        evidence = installation.collect_evidence()
        late = waits(evidence, later)
        requested = {one.notification_id for one in evidence.requests}
        return make_findings(
            evidence,
            Bound(
                name="workers that found their clock wrong",
                value=sum("clock_corrected" in log for log in logs),
                minimum=len(SKEWS),
            ),
            Bound(name="seconds late at least", value=min(late, default=None), minimum=-TOLERANCE),
            Bound(
                name="seconds late at most",
                value=max(late, default=None),
                maximum=MAX_DELAY_SECONDS + TOLERANCE,
            ),
            Bound(
                name="sent after their time was over", value=len(requested & set(brief)), maximum=0
            ),
        )


def _send(installation: Installation, key: str, number: int, **fields: object) -> str:
    return accepted_id(installation.client.send(mail_body(number, **fields), key=key))


def _wrong_clock(skew: str) -> dict[str, str]:
    """Return the environment of a process that reads the time wrong."""
    found = [*Path(BASE_DIR, ".data", "debian").glob(FAKETIME), *Path("/").glob(FAKETIME)]
    if not found:
        raise ScenarioError("There is no libfaketime: run `make bench-servers`.")
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME": skew,
        # Waits and time limits run as they do: only the time of day is wrong.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _wait_until(moment: datetime) -> None:
    time.sleep(max((moment - datetime.now(UTC)).total_seconds(), 0))
