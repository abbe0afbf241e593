"""Faults of workers: killed at random instants, and frozen for two minutes."""

import random
import time

from notifyproject.platform.crash_points import Boundary

from ...processes import Program, wait_until
from ..analysis import analyze, final_statuses
from ..findings import Expected, Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, publish_wakeups, run_installation
from ..load import Body, mail_body, uniform_mail_body

OUTCOMES = ("user", "user", "user", "user", "no-events", "slow")
"""Most mail gets a delivery receipt; some gets none, and some is answered slowly."""
MAX_LIFE_SECONDS = 4.0
TAKEOVER_SECONDS = 150
FREEZE_AT = {
    Boundary.CLAIMED: "critical",
    Boundary.STARTED: "high",
    Boundary.SEND_ANSWERED: "normal",
    Boundary.SETTLE_LOGGED: "low",
}
"""Boundaries after the claim, before the send, after the answer, and between the writes that
settle. Each has its own priority, so that each worker freezes on its own notifications."""


@scenario(
    2,
    injects="kill -9 of workers, at random instants",
    shows="P1, P2, P10",
    full={"count": 10_000, "kills": 200, "workers": 4},
    short={"count": 300, "kills": 6, "workers": 2},
)
def killed_workers(*, count: int, kills: int, workers: int) -> Findings:
    """Kill workers at random moments, each time under a load of new notifications."""
    with run_installation() as installation:
        programs = installation.workers(workers)
        installation.start(installation.web(), installation.beat(), *programs)
        rng = random.Random()
        loads = []
        for number in range(kills):
            first, end = (count * n // kills for n in (number, number + 1))
            load = installation.start_load(
                count=end - first,
                rate=1_000,
                body=lambda number, first=first: _body(first + number),
                name=f"from-{first}",
            )
            loads.append(load)
            while not (ready := [program for program in programs if program.is_ready]):
                time.sleep(0.05)
            victim = rng.choice(ready)
            time.sleep(rng.uniform(0, MAX_LIFE_SECONDS))
            installation.kill(victim)
            victim.start()
        for load in loads:
            load.finish()
        # A lease, two sweeps, and the wait for a receipt, twice.
        evidence = installation.finish(timeout=900)
        what = "seconds until a dead worker's delivery was taken over"
        return make_findings(
            evidence,
            at_most(what, analyze(evidence).slowest_takeover, TAKEOVER_SECONDS),
            at_most("failed without a refusal", final_statuses(evidence).get("failed", 0), 0),
            copies="in flight",
        )


def _body(number: int) -> Body:
    priority = ("high", "critical")[number % 2]
    if number % 10 == 9:
        return uniform_mail_body(number, priority=priority)
    return mail_body(number, to=OUTCOMES[number % len(OUTCOMES)], priority=priority)


@scenario(
    7,
    injects="SIGSTOP for 120 s after the claim, before the send, after it; then SIGCONT",
    shows="fenced, aborted unsent",
    full={"count": 20, "seconds": 125},
    short={"count": 3, "seconds": 125},
)
def frozen_workers(*, count: int, seconds: float) -> Findings:
    """Freeze a worker at each boundary, let others take over, and resume it."""
    with run_installation() as installation:
        installation.start(installation.web())
        expected = Expected()
        frozen = [
            _freeze_worker(installation, boundary, priority, expected, count=count)
            for boundary, priority in FREEZE_AT.items()
        ]
        installation.clear_broker()
        installation.start(installation.worker(), installation.beat())
        time.sleep(seconds)
        for worker in frozen:
            worker.resume()
        installation.wait_final(timeout=1_500)
        alive = sum(worker.is_alive for worker in frozen)
        evidence = installation.collect_evidence()
        return make_findings(
            evidence,
            at_least("frozen workers that continued", alive, len(FREEZE_AT)),
            expected.bound(evidence),
            copies="none",
        )


def _freeze_worker(
    installation: Installation, boundary: Boundary, priority: str, expected: Expected, *, count: int
) -> Program:
    bodies = (mail_body(number, priority=priority) for number in range(count))
    answers = installation.client.send_each(bodies, name=priority)
    ids = [expected.add(answer, copies=1) for answer in answers]
    installation.clear_broker()
    publish_wakeups(ids, channel="email", priority=priority)
    worker = installation.worker(f"sleeper-{boundary}", queues=f"email.{priority}")
    worker.start(FREEZE_AT=boundary)
    wait_until(lambda: worker.is_stopped, timeout=60, what=f"no freeze at {boundary}")
    return worker
