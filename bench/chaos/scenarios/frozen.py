"""A worker is stopped for two minutes and goes on as if nothing had happened."""

import time

from notifyproject.platform.crash_points import Boundary

from .. import bodies, hinting
from ..crashing import is_frozen
from ..expecting import Expected
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..joining import judge
from ..processes import Program, wait_until
from ..scenario import Scenario
from ..stand import Stand, standing

PLACES = (Boundary.CLAIMED, Boundary.STARTED, Boundary.SEND_ANSWERED, Boundary.SETTLE_LOGGED)
"""After the claim, before the send, after the answer, between the two writes that settle."""
LANES = ("critical", "high", "normal", "low")
FREEZE_SECONDS = 60.0
FINAL_SECONDS = 1_500.0


def frozen_workers(*, count: int, seconds: float) -> Findings:
    """Stop a worker in each place, let others take over, and let it go on."""
    with standing() as stand:
        stand.start(stand.web())
        expected = Expected()
        sleepers = [
            _fall_asleep(stand, place, lane, expected, count=count)
            for place, lane in zip(PLACES, LANES, strict=True)
        ]
        hinting.forget(stand)
        stand.start(stand.worker(), stand.beat())
        time.sleep(seconds)
        for one in sleepers:
            one.thaw()
        stand.wait_final(timeout=FINAL_SECONDS)
        still_there = sum(one.is_alive for one in sleepers)
        evidence = gather(stand)
        return conclude(
            evidence,
            Bound(name="workers that slept and went on", value=still_there, least=len(PLACES)),
            expected.bound(evidence),
            Bound(
                name="copies after an unknown outcome",
                value=len(judge(evidence).double_unknown),
                most=0,
            ),
        )


def _fall_asleep(
    stand: Stand, place: Boundary, lane: str, expected: Expected, *, count: int
) -> Program:
    """Let a worker of one lane stop at a boundary with notifications in its hands; return it."""
    ids = []
    for number in range(count):
        body = bodies.mail(number, priority=lane)
        ids.append(expected.add(stand.client.send(body, key=f"{lane}-{number}"), copies=1))
    hinting.forget(stand)
    hinting.publish(ids, channel="email", priority=lane)
    worker = stand.worker(f"sleeper-{place}", queues=f"email.{lane}")
    worker.start(FREEZE_AT=place)
    wait_until(lambda: is_frozen(worker), timeout=FREEZE_SECONDS, what=f"{place} was not come to")
    return worker


FROZEN_WORKERS = Scenario(
    number=7,
    injects="SIGSTOP for 120 s after the claim, before the send, after it; then SIGCONT",
    shows="fenced, aborted unsent",
    run=frozen_workers,
    full={"count": 20, "seconds": 125},
    short={"count": 3, "seconds": 125},
)
