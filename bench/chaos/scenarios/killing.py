"""Workers are killed outright, at any instant."""

import random
import time
from collections.abc import Sequence

from .. import bodies
from ..bodies import Body
from ..findings import Bound, Findings, kill_bounds, make_findings
from ..gathering import collect_evidence
from ..joining import analyze, final_statuses
from ..load import Load
from ..processes import Program
from ..scenario import Scenario
from ..stand import Installation, run_installation

OUTCOMES = ("user", "user", "user", "user", "no-events", "slow")
"""Most mail is reported delivered; some is never reported on, some is answered slowly."""
PRIORITIES = ("high", "critical")
MAX_LIFE_SECONDS = 4.0
"""A worker is killed within so many seconds of being chosen."""
FINAL_SECONDS = 900.0
"""A lease, two sweeps and the wait for a receipt, twice."""


def killed_workers(*, count: int, kills: int, workers: int) -> Findings:
    """Kill workers at random instants while notifications come in: some for each kill."""
    with run_installation() as installation:
        worker_programs = [installation.worker(f"worker-{number}") for number in range(workers)]
        installation.start(installation.web(), installation.beat(), *worker_programs)
        rng = random.Random()
        loads = []
        for number in range(kills):
            first, end = (count * n // kills for n in (number, number + 1))
            loads.append(_load(installation, first, end))
            victim = _choose_ready(worker_programs, rng)
            time.sleep(rng.uniform(0, MAX_LIFE_SECONDS))
            installation.kill(victim)
            victim.start()
        for one in loads:
            one.finish()
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        failed = final_statuses(evidence).get("failed", 0)
        return make_findings(
            evidence,
            *kill_bounds(analyze(evidence)),
            Bound(name="failed, though nobody refused them", value=failed, maximum=0),
        )


def _load(installation: Installation, first: int, end: int) -> Load:
    """Send the notifications from one number to before another, in the background."""
    load = Load(
        installation.client,
        count=end - first,
        rate=1_000,
        body=lambda number: _body(first + number),
        name=f"from-{first}",
    )
    load.start()
    return load


def _choose_ready(workers: Sequence[Program], rng: random.Random) -> Program:
    """Return one of those that work, as soon as there is one."""
    while True:
        ready = [one for one in workers if one.is_ready]
        if ready:
            return rng.choice(ready)
        time.sleep(0.05)


def _body(number: int) -> Body:
    to = OUTCOMES[number % len(OUTCOMES)]
    priority = PRIORITIES[number % len(PRIORITIES)]
    if number % 10 == 9:
        return bodies.same_mail(number, priority=priority)
    return bodies.mail(number, to=to, priority=priority)


KILLED_WORKERS = Scenario(
    number=2,
    injects="kill -9 of workers, at random instants",
    shows="P1, P2, P10",
    run=killed_workers,
    full={"count": 10_000, "kills": 200, "workers": 4},
    short={"count": 300, "kills": 6, "workers": 2},
)
