"""Workers are killed outright, at any instant."""

import random
import time
from collections.abc import Sequence

from .. import bodies
from ..bodies import Body
from ..findings import Bound, Findings, conclude, killing_bounds
from ..gathering import gather
from ..joining import final_statuses, judge
from ..load import Load
from ..processes import Program
from ..scenario import Scenario
from ..stand import Stand, standing

OUTCOMES = ("user", "user", "user", "user", "no-events", "slow")
"""Most mail is reported delivered; some is never reported on, some is answered slowly."""
PRIORITIES = ("high", "critical")
LIVES_SECONDS = 4.0
"""A worker is killed within so many seconds of being chosen."""
FINAL_SECONDS = 900.0
"""A lease, two sweeps and the wait for a receipt, twice."""


def killed_workers(*, count: int, kills: int, workers: int) -> Findings:
    """Kill workers at random instants while notifications come in: some for each kill."""
    with standing() as stand:
        team = [stand.worker(f"worker-{number}") for number in range(workers)]
        stand.start(stand.web(), stand.beat(), *team)
        dice = random.Random()
        loads = []
        for number in range(kills):
            first, end = (count * n // kills for n in (number, number + 1))
            loads.append(_load(stand, first, end))
            victim = _ready_one(team, dice)
            time.sleep(dice.uniform(0, LIVES_SECONDS))
            stand.kill(victim)
            victim.start()
        for one in loads:
            one.finish()
        stand.wait_final(timeout=FINAL_SECONDS)
        evidence = gather(stand)
        failed = final_statuses(evidence).get("failed", 0)
        return conclude(
            evidence,
            *killing_bounds(judge(evidence)),
            Bound(name="failed, though nobody refused them", value=failed, most=0),
        )


def _load(stand: Stand, first: int, end: int) -> Load:
    """Send the notifications from one number to before another, in the background."""
    load = Load(
        stand.client,
        count=end - first,
        rate=1_000,
        body=lambda number: _body(first + number),
        name=f"from-{first}",
    )
    load.start()
    return load


def _ready_one(team: Sequence[Program], dice: random.Random) -> Program:
    """Return one of those that work, as soon as there is one."""
    while True:
        ready = [one for one in team if one.is_ready]
        if ready:
            return dice.choice(ready)
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
