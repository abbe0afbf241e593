"""Processes are restarted or killed while notifications arrive."""

import os
import random
import signal
import threading
import time

from ...processes import Program
from ..findings import Bound, Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import Body, Load, mail_body

FINAL_SECONDS = 600.0
GRACE = 30.0


@scenario(
    6,
    injects="SIGTERM to each worker, beat and web in turn, under load",
    shows="P11",
    full={"count": 4_000, "rate": 15, "burst": 150, "rounds": 8},
    short={"count": 200, "rate": 10, "burst": 50, "rounds": 1},
)
def rolling_restarts(*, count: int, rate: float, burst: int, rounds: int) -> Findings:
    """Stop and restart each worker, beat, and the web, one after the other, under load."""
    with run_installation() as installation:
        workers = installation.workers(2)
        web, beat = installation.web(), installation.beat()
        installation.start(web, beat, *workers)
        load = installation.start_load(count=count, rate=rate, body=_body, burst=burst)
        ends: list[float | None] = []
        for _ in range(rounds):
            for program in (*workers, beat, web):
                time.sleep(2)
                ends.append(program.terminate())
                installation.start(program)
        load.finish()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        slowest = max(GRACE * 2 if end is None else end for end in ends)
        return make_findings(
            evidence,
            at_least("processes restarted", len(ends), rounds * 4),
            at_most("slowest shutdown in seconds", slowest, GRACE),
            copies="none",
        )


@scenario(
    3,
    injects="kill -9 of the API's processes inside a POST; 200 identical POSTs at once",
    shows="P3",
    full={"count": 3_000, "rate": 15, "kills": 60, "at_once": 200},
    short={"count": 100, "rate": 10, "kills": 3, "at_once": 50},
)
def killed_api(*, count: int, rate: float, kills: int, at_once: int) -> Findings:
    """Kill the web's processes during requests; the client retries with the same key."""
    with run_installation() as installation:
        web = installation.web()
        installation.start(web, installation.worker(), installation.beat())
        load = installation.start_load(count=count, rate=rate, body=mail_body)
        killed = _kill_children(web, load, kills=kills, count=count)
        load.finish()
        same = _send_at_once(installation, at_once)
        evidence = installation.finish(timeout=FINAL_SECONDS)
        accepted = {answer.key for answer in evidence.answers if answer.is_accepted}
        broken = sum(answer.status is None for answer in evidence.answers)
        return make_findings(
            evidence,
            at_least("killed processes of the web", killed, kills),
            at_least("requests that ended without an answer", broken, 1),
            Bound("IDs of identical concurrent requests", len(same), maximum=1, minimum=1),
            at_most("keys without an acceptance", count + 1 - len(accepted), 0),
            copies="none",
        )


def _kill_children(web: Program, load: Load, *, kills: int, count: int) -> int:
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
    children = web.children()
    try:
        os.kill(rng.choice(children), signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        # There is no child process yet, or the chosen one has ended.
        return False
    return True


def _send_at_once(installation: Installation, times: int) -> set[str]:
    """Send one request from many threads at the same time; return the IDs in the answers."""
    barrier = threading.Barrier(times)
    ids: set[str] = set()

    def send() -> None:
        barrier.wait()
        answer = installation.client.send(mail_body(0), key="at-once")
        ids.add(answer.notification_id or f"{answer.status}")

    threads = [threading.Thread(target=send) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ids


def _body(number: int) -> Body:
    """Return a mail. Every fourth is answered slowly, so that a send is always in progress."""
    return mail_body(number, to="slow" if number % 4 == 0 else "user")
