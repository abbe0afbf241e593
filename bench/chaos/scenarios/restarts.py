"""Processes of the service are ended, politely or not, while notifications come in."""

import os
import random
import signal
import threading
import time

from .. import bodies
from ..bodies import Body
from ..evidence import Evidence
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import analyze
from ..load import Load
from ..processes import Program
from ..scenario import Scenario
from ..stand import Installation, run_installation

FINAL_SECONDS = 600.0
GRACE = 30.0
"""Seconds that a process may take to end when it is asked to."""


def rolling_restarts(*, count: int, rate: float, burst: int, rounds: int) -> Findings:
    """Ask one worker, web or beat after the other to end, and start it again."""
    with run_installation() as installation:
        workers = [installation.worker(f"worker-{number}") for number in range(2)]
        web, beat = installation.web(), installation.beat()
        installation.start(web, beat, *workers)
        load = Load(installation.client, count=count, rate=rate, body=_body, burst=burst)
        load.start()
        ends: list[float | None] = []
        for _ in range(rounds):
            for one in (*workers, beat, web):
                time.sleep(2)
                ends.append(one.terminate())
                installation.start(one)
        load.finish()
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        return make_findings(
            evidence,
            Bound(name="processes restarted", value=len(ends), minimum=rounds * 4),
            Bound(
                name="slowest end in seconds",
                value=max(GRACE * 2 if end is None else end for end in ends),
                maximum=GRACE,
            ),
            _no_copies(evidence),
        )


def killed_api(*, count: int, rate: float, kills: int, at_once: int) -> Findings:
    """Kill the web's processes inside requests; the client tries again with the same key."""
    with run_installation() as installation:
        web, worker, beat = installation.web(), installation.worker(), installation.beat()
        installation.start(web, worker, beat)
        load = Load(installation.client, count=count, rate=rate, body=bodies.mail)
        load.start()
        killed = _kill_children(web, load, kills=kills, count=count)
        load.finish()
        same = _send_at_once(installation, at_once)
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        broken = sum(answer.status is None for answer in evidence.answers)
        return make_findings(
            evidence,
            Bound(name="processes of the web killed", value=killed, minimum=kills),
            Bound(name="requests that ended without an answer", value=broken, minimum=1),
            Bound(
                name="ids given to identical requests at once",
                value=len(same),
                maximum=1,
                minimum=1,
            ),
            Bound(
                name="keys without an acceptance",
                value=count + 1 - len({a.key for a in evidence.answers if a.is_accepted}),
                maximum=0,
            ),
            _no_copies(evidence),
        )


def _kill_children(web: Program, load: Load, *, kills: int, count: int) -> int:
    """Kill one of gunicorn's processes as often as is wanted, spread over the load."""
    rng = random.Random()
    killed = 0
    for moment in sorted(rng.uniform(0.02, 0.98) * count for _ in range(kills)):
        while load.done < moment and not load.is_over:
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.05))
        while not _kill_one(web, rng):
            time.sleep(0.05)
        killed += 1
    return killed


def _kill_one(web: Program, rng: random.Random) -> bool:
    """Kill one of a web's processes; return whether there was one."""
    children = web.children()
    try:
        os.kill(rng.choice(children), signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        # None is there yet, or the last one killed was still in the list.
        return False
    return True


def _send_at_once(installation: Installation, times: int) -> set[str]:
    """Send one request from many threads at the same instant; return the ids it was given."""
    barrier = threading.Barrier(times)
    ids: set[str] = set()

    def send() -> None:
        barrier.wait()
        answer = installation.client.send(bodies.mail(0), key="at-once")
        ids.add(answer.notification_id or f"{answer.status}")

    threads = [threading.Thread(target=send) for _ in range(times)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return ids


def _body(number: int) -> Body:
    """Return mail of which some is answered slowly: something is always under way."""
    return bodies.mail(number, to="slow" if number % 4 == 0 else "user")


def _no_copies(evidence: Evidence) -> Bound:
    copies = len(analyze(evidence).double_unknown)
    return Bound(name="copies after an unknown outcome", value=copies, maximum=0)


ROLLING_RESTARTS = Scenario(
    number=6,
    injects="SIGTERM to each worker, beat and web in turn, under load",
    shows="P11",
    run=rolling_restarts,
    full={"count": 4_000, "rate": 15, "burst": 150, "rounds": 8},
    short={"count": 200, "rate": 10, "burst": 50, "rounds": 1},
)
KILLED_API = Scenario(
    number=3,
    injects="kill -9 of the API's processes inside a POST; 200 identical POSTs at once",
    shows="P3",
    run=killed_api,
    full={"count": 3_000, "rate": 15, "kills": 60, "at_once": 200},
    short={"count": 100, "rate": 10, "kills": 3, "at_once": 50},
)
