"""Operators retry or cancel a notification at the same moment as the service sends it."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ...processes import wait_until
from ..findings import Bound, Expected, Findings, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import mail_body

FINAL_SECONDS = 300.0
PRIORITY = "critical"


@scenario(
    18,
    injects="each failed one re-opened twice at once while sweeps run; cancelling races claiming",
    shows="one send; cancelled or sent, never both",
    full={"reopened": 300, "cancelled": 1_000, "sweepers": 2},
    short={"reopened": 20, "cancelled": 60, "sweepers": 1},
)
def racing_people(*, reopened: int, cancelled: int, sweepers: int) -> Findings:
    """Retry failed notifications twice at the same time, and cancel others while claimed."""
    with run_installation() as installation:
        sweeping = installation.sweepers(sweepers, every="0.5")
        installation.start(installation.web(), *installation.workers(2), *sweeping)
        expected = Expected()
        failed = _failed(installation, expected, count=reopened)
        client = installation.client
        twice = _run_in_pairs(
            lambda notification_id: (
                client.call("POST", f"/notifications/{notification_id}/retry", {})[0] == 200
            ),
            failed,
        )
        withdrawn = _cancel_while_claimed(installation, count=cancelled)
        evidence = installation.finish(timeout=FINAL_SECONDS)
        accepted = {request.notification_id for request in evidence.requests if request.accepted}
        ended = {
            document.notification_id: document.deliveries.get("email")
            for document in evidence.stored
        }
        cancelled_ids = {
            notification_id
            for notification_id in withdrawn
            if ended[notification_id] == "cancelled"
        }
        for notification_id in withdrawn:
            expected.copies[notification_id] = 0 if notification_id in cancelled_ids else 1
        return make_findings(
            evidence,
            at_most("retried twice at once", twice, 0),
            at_most("cancelled and sent", len(cancelled_ids & accepted), 0),
            Bound("cancelled in time", len(cancelled_ids), minimum=1, maximum=cancelled - 1),
            expected.bound(evidence),
        )


def _failed(installation: Installation, expected: Expected, *, count: int) -> list[str]:
    """Return the IDs of notifications that have failed, and that a retry will send."""
    bodies = (mail_body(number, to="invalid", priority=PRIORITY) for number in range(count))
    answers = installation.client.send_each(bodies, name="failed")
    ids = [expected.add(answer, copies=1) for answer in answers]
    notifications = installation.database["notifications"]
    wait_until(
        lambda: notifications.count_documents({"status": "failed"}) == count,
        timeout=FINAL_SECONDS,
        what="not all have failed",
    )
    installation.script_outcome("*", "delivered")
    return ids


def _run_in_pairs(action: Callable[[str], bool], ids: Sequence[str]) -> int:
    """Run an action twice at the same time for each ID; count the IDs for which both succeeded."""
    barrier = threading.Barrier(2)

    def at_once(notification_id: str) -> bool:
        barrier.wait()
        return action(notification_id)

    both = 0
    with ThreadPoolExecutor(2) as pair:
        for notification_id in ids:
            both += sum(pair.map(at_once, (notification_id, notification_id))) == 2
    return both


def _cancel_while_claimed(installation: Installation, *, count: int) -> list[str]:
    rng = random.Random()
    ids = []

    def cancel(notification_id: str, pause: float) -> None:
        time.sleep(pause)
        installation.client.call("POST", f"/notifications/{notification_id}/cancel", {})

    with ThreadPoolExecutor(8) as threads:
        for number in range(count):
            body = mail_body(number, priority=PRIORITY)
            answer = installation.client.send(body, key=f"cancelled-{number}")
            ids.append(answer.notification_id or answer.key)
            threads.submit(cancel, ids[-1], rng.uniform(0, 0.06))
    return ids
