"""Workers whose clocks are ten minutes fast or slow, and are then corrected."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from notifyproject.platform.clock_check import CHECK_SECONDS
from notifyproject.settings.environment import BASE_DIR

from ...processes import START_SECONDS, Program, ScenarioError, wait_until
from ..analysis import waits
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import mail_body

FAKETIME = "usr/lib/*/faketime/libfaketime.so.1"
"""From Debian's package; `make bench-servers` unpacks it."""
FAST, SLOW, RIGHT = "+600s", "-600s", "+0s"
SKEWS = {"fast": FAST, "slow": SLOW}
FINAL_SECONDS = 300.0
SCHEDULE_AHEAD = timedelta(seconds=90)
READY_AHEAD = timedelta(seconds=30)
"""Time before the first scheduled send at which the clocks are corrected: workers then start."""
BRIEF_TTL = 30
"""The TTL, in seconds, of the notifications that must expire unsent."""
MAX_DELAY_SECONDS = 2.0
"""P6: the largest delay of a scheduled notification (p99)."""
SCHEDULE_STEP = timedelta(milliseconds=100)
END_SECONDS = CHECK_SECONDS + 120
"""Seconds in which a running worker ends after its clock was moved."""


@scenario(
    17,
    injects="one worker's clock ten minutes fast, another's ten minutes slow, until both are right",
    shows="P6, P7",
    full={"scheduled": 500, "expiring": 100},
    short={"scheduled": 30, "expiring": 10},
)
def wrong_clocks(*, scheduled: int, expiring: int) -> Findings:
    """Start a fast and a slow worker, correct their clocks before work is due, and move one again.

    Without the clock check, the fast worker would send early, and the slow worker after the expiry.
    """
    with run_installation(webhooks=False) as installation:
        installation.start(installation.web(), installation.beat())
        brief = [_send(installation, f"brief-{n}", n, ttl=BRIEF_TTL) for n in range(expiring)]
        installation.broker.empty()
        due = datetime.now(UTC) + SCHEDULE_AHEAD
        # Spread out, so that the sandbox's throughput doesn't limit the delays.
        times = [due + SCHEDULE_STEP * n for n in range(scheduled)]
        later = {
            _send(installation, f"later-{n}", expiring + n, scheduled_at=at.isoformat()): at
            for n, at in enumerate(times)
        }
        workers = [installation.worker(name) for name in SKEWS]
        for worker in workers:
            clock = _set_clock(installation, worker, SKEWS[worker.name])
            worker.start(**_fake_clock(clock))
        for worker in workers:
            wait_until(
                partial(worker.has_logged, "clock_wrong"),
                timeout=START_SECONDS,
                what=f"{worker.name} did not find its clock wrong",
            )
        time.sleep(max((due - READY_AHEAD - datetime.now(UTC)).total_seconds(), 0))
        ready_early = [worker for worker in workers if worker.is_ready]
        corrected_at = datetime.now(UTC)
        for worker in workers:
            _set_clock(installation, worker, RIGHT)
        for worker in workers:
            worker.wait_ready()
        installation.wait_final(timeout=FINAL_SECONDS)
        fast = workers[0]
        _set_clock(installation, fast, FAST)
        fast.wait_ended(timeout=END_SECONDS)
        evidence = installation.collect_evidence()
        late = waits(evidence, later)
        requested = {request.notification_id for request in evidence.requests}
        early = sum(request.at < corrected_at for request in evidence.requests)
        ended = fast.count_logged('"reason": "clock_wrong"')
        return make_findings(
            evidence,
            at_most("workers ready with a wrong clock", len(ready_early), 0),
            at_most("requests while the clocks were wrong", early, 0),
            at_least("seconds late at least", min(late, default=None), 0.0),
            at_most("seconds late at most", max(late, default=None), MAX_DELAY_SECONDS),
            at_most("sent after their time was over", len(requested & set(brief)), 0),
            at_least("workers that ended when their clock was moved", ended, 1),
        )


def _send(installation: Installation, key: str, number: int, **fields: Any) -> str:
    return installation.client.send(mail_body(number, **fields), key=key).accepted_id()


def _fake_clock(file: Path) -> dict[str, str]:
    """Return the environment variables that make libfaketime read the clock's skew from a file."""
    found = [*Path(BASE_DIR, ".data", "debian").glob(FAKETIME), *Path("/").glob(FAKETIME)]
    if not found:
        raise ScenarioError("There is no libfaketime: run `make bench-servers`.")
    return {
        "LD_PRELOAD": str(found[0]),
        "FAKETIME_TIMESTAMP_FILE": str(file),
        "FAKETIME_CACHE_DURATION": "1",
        # Waits and time limits stay right: only the time of day is wrong.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _set_clock(installation: Installation, worker: Program, skew: str) -> Path:
    """Set the skew of a worker's clock; return its file, which is replaced atomically."""
    target = installation.folder / f"{worker.name}.clock"
    new = target.with_suffix(".new")
    new.write_text(f"{skew}\n")
    return new.replace(target)
