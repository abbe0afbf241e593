"""People do something to a notification in the very moment in which the service does."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from .. import bodies
from ..evidence import Evidence
from ..expecting import Expected
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..processes import wait_until
from ..scenario import Scenario
from ..stand import Installation, run_installation

FINAL_SECONDS = 300.0
PRIORITY = "critical"
OK = 200


def racing_people(*, reopened: int, cancelled: int, sweepers: int) -> Findings:
    """Re-open each failed notification twice at once while sweeps run; cancel what is claimed."""
    with run_installation() as installation:
        installation.start(
            installation.web(),
            *(installation.worker(f"worker-{number}") for number in range(2)),
            *(
                installation.sweeper(f"sweeper-{number}", "--every", "0.5")
                for number in range(sweepers)
            ),
        )
        expected = Expected()
        failed = _failed(installation, expected, count=reopened)
        twice = _run_in_pairs(lambda one: _retry(installation, one), failed)
        withdrawn = _cancel_while_claimed(installation, count=cancelled)
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        accepted = {one.notification_id for one in evidence.requests if one.accepted}
        ended = _email_statuses(evidence)
        for one in withdrawn:
            expected.copies[one] = 0 if ended[one] == "cancelled" else 1
        return make_findings(
            evidence,
            Bound(name="re-opened by both at once", value=twice, maximum=0),
            Bound(
                name="cancelled and sent",
                value=sum(ended[one] == "cancelled" and one in accepted for one in withdrawn),
                maximum=0,
            ),
            Bound(
                name="cancelled in time",
                value=sum(ended[one] == "cancelled" for one in withdrawn),
                minimum=1,
                maximum=cancelled - 1,
            ),
            expected.bound(evidence),
        )


def _failed(installation: Installation, expected: Expected, *, count: int) -> list[str]:
    """Return notifications that have failed, and that the provider takes from now on."""
    ids = []
    for number in range(count):
        body = bodies.mail(number, to="invalid", priority=PRIORITY)
        ids.append(expected.add(installation.client.send(body, key=f"failed-{number}"), copies=1))
    notifications = installation.database["notifications"]
    wait_until(
        lambda: notifications.count_documents({"status": "failed"}) == count,
        timeout=FINAL_SECONDS,
        what="not all have failed",
    )
    installation.script_outcome("*", "delivered")
    return ids


def _run_in_pairs(action: Callable[[str], bool], ids: Sequence[str]) -> int:
    """Do something twice at the same instant to each; return how often both succeeded."""
    barrier = threading.Barrier(2)

    def at_once(one: str) -> bool:
        barrier.wait()
        return action(one)

    both = 0
    with ThreadPoolExecutor(2) as pair:
        for one in ids:
            both += sum(pair.map(at_once, (one, one))) == 2
    return both


def _retry(installation: Installation, notification_id: str) -> bool:
    status, _ = installation.client.call("POST", f"/notifications/{notification_id}/retry", {})
    return status == OK


def _cancel_while_claimed(installation: Installation, *, count: int) -> list[str]:
    """Accept notifications and cancel each a moment later; return them."""
    rng = random.Random()
    ids = []

    def cancel(one: str, pause: float) -> None:
        time.sleep(pause)
        installation.client.call("POST", f"/notifications/{one}/cancel", {})

    with ThreadPoolExecutor(8) as threads:
        for number in range(count):
            body = bodies.mail(number, priority=PRIORITY)
            answer = installation.client.send(body, key=f"cancelled-{number}")
            ids.append(answer.notification_id or answer.key)
            threads.submit(cancel, ids[-1], rng.uniform(0, 0.06))
    return ids


def _email_statuses(evidence: Evidence) -> dict[str, str]:
    """Return how each notification's mail ended."""
    return {one.notification_id: one.deliveries.get("email", "") for one in evidence.stored}


RACING_PEOPLE = Scenario(
    number=18,
    injects="each failed one re-opened twice at once while sweeps run; cancelling races claiming",
    shows="one send; cancelled or sent, never both",
    run=racing_people,
    full={"reopened": 300, "cancelled": 1_000, "sweepers": 2},
    short={"reopened": 20, "cancelled": 60, "sweepers": 1},
)
