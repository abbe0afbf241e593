"""A worker is stopped for two minutes and goes on as if nothing had happened."""

import time

from notifyproject.platform.crash_points import Boundary

from .. import bodies, hinting
from ..crashing import is_stopped
from ..expecting import Expected
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import analyze
from ..processes import Program, wait_until
from ..scenario import Scenario
from ..stand import Installation, run_installation

BOUNDARIES = (Boundary.CLAIMED, Boundary.STARTED, Boundary.SEND_ANSWERED, Boundary.SETTLE_LOGGED)
"""After the claim, before the send, after the answer, between the two writes that settle."""
PRIORITIES = ("critical", "high", "normal", "low")
FREEZE_SECONDS = 60.0
FINAL_SECONDS = 1_500.0


def frozen_workers(*, count: int, seconds: float) -> Findings:
    """Stop a worker in each place, let others take over, and let it go on."""
    with run_installation() as installation:
        installation.start(installation.web())
        expected = Expected()
        frozen = [
            _freeze_worker(installation, boundary, priority, expected, count=count)
            for boundary, priority in zip(BOUNDARIES, PRIORITIES, strict=True)
        ]
        hinting.clear_broker(installation)
        installation.start(installation.worker(), installation.beat())
        time.sleep(seconds)
        for one in frozen:
            one.resume()
        installation.wait_final(timeout=FINAL_SECONDS)
        still_there = sum(one.is_alive for one in frozen)
        evidence = collect_evidence(installation)
        return make_findings(
            evidence,
            Bound(
                name="workers that slept and went on", value=still_there, minimum=len(BOUNDARIES)
            ),
            expected.bound(evidence),
            Bound(
                name="copies after an unknown outcome",
                value=len(analyze(evidence).double_unknown),
                maximum=0,
            ),
        )


def _freeze_worker(
    installation: Installation, boundary: Boundary, priority: str, expected: Expected, *, count: int
) -> Program:
    """Let a worker of one lane stop at a boundary with notifications in its hands; return it."""
    ids = []
    for number in range(count):
        body = bodies.mail(number, priority=priority)
        ids.append(
            expected.add(installation.client.send(body, key=f"{priority}-{number}"), copies=1)
        )
    hinting.clear_broker(installation)
    hinting.publish_wakeups(ids, channel="email", priority=priority)
    worker = installation.worker(f"sleeper-{boundary}", queues=f"email.{priority}")
    worker.start(FREEZE_AT=boundary)
    wait_until(
        lambda: is_stopped(worker), timeout=FREEZE_SECONDS, what=f"{boundary} was not come to"
    )
    return worker


FROZEN_WORKERS = Scenario(
    number=7,
    injects="SIGSTOP for 120 s after the claim, before the send, after it; then SIGCONT",
    shows="fenced, aborted unsent",
    run=frozen_workers,
    full={"count": 20, "seconds": 125},
    short={"count": 3, "seconds": 125},
)
