"""Faults while later steps of plans begin and recipients read."""

import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ..evidence import Answer, Evidence
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import run_installation
from ..load import Client, mail_body

PHONE = "+447700900001"
READ_SHARE = 0.7
"""Share of the recipients who read, half of them before the later step begins."""
IN_FLIGHT = timedelta(seconds=1)
"""A request that had begun before the read was committed may arrive this much later."""


class Readers:
    """Marks accepted notifications as read after random times, and records when."""

    def __init__(self, client: Client, *, within: float) -> None:
        self._client, self._within = client, within
        self._random = random.Random()
        self.read_at: dict[str, datetime] = {}
        """When the API confirmed the read of each notification."""
        self._timers: list[threading.Timer] = []

    def on_accepted(self, answer: Answer) -> None:
        """Let some recipients read, each at a random time."""
        if self._random.random() < READ_SHARE:
            wait = self._random.uniform(0, self._within)
            timer = threading.Timer(wait, self._read, [answer.accepted_id()])
            timer.daemon = True
            self._timers.append(timer)
            timer.start()

    def finish(self) -> None:
        """Wait until all have read."""
        for timer in self._timers:
            timer.join()

    def _read(self, notification_id: str) -> None:
        while self._client.call("POST", f"/notifications/{notification_id}/read", {})[0] != 200:
            time.sleep(0.5)
        self.read_at[notification_id] = datetime.now(UTC)


@scenario(
    27,
    injects="kill -9 of workers while later steps of plans begin and recipients read",
    shows="P1, P2, P19",
    full={"count": 5_000, "rate": 40.0, "kills": 60, "workers": 3, "after": 20},
    short={"count": 200, "rate": 20.0, "kills": 4, "workers": 2, "after": 5},
)
def plans_under_kills(*, count: int, rate: float, kills: int, workers: int, after: int) -> Findings:
    """Send by email, and ``after`` seconds later by WhatsApp unless it was read, among kills."""
    with run_installation() as installation:
        programs = installation.workers(workers)
        installation.start(installation.web(), installation.beat(), *programs)
        readers = Readers(installation.client, within=2.0 * after)
        installation.client.on_accepted = readers.on_accepted
        load = installation.start_load(count=count, rate=rate, body=_body(after))
        installation.kill_at_random(programs, kills=kills, every=(count / rate + after) / kills)
        load.finish()
        readers.finish()
        evidence = installation.finish(timeout=900)
        late, unneeded = _after_read(evidence, readers.read_at)
        missing = _unread(evidence, readers.read_at)
        return make_findings(
            evidence,
            at_most("requests of a step more than a second after the read", late, 0),
            at_least("steps that a read made unnecessary", unneeded, count // 10),
            at_most("steps without a read that were not sent", missing, 0),
            copies="in flight",
        )


def _body(after: int) -> Callable[[int], dict[str, Any]]:
    plan = {
        "until": "read",
        "steps": [{"channels": ["email"]}, {"after": after, "channels": ["whatsapp"]}],
    }

    def body(number: int) -> dict[str, Any]:
        sent = mail_body(number, plan=plan)
        sent["recipient"]["phone"] = PHONE
        del sent["channels"]
        return sent

    return body


def _after_read(evidence: Evidence, read_at: dict[str, datetime]) -> tuple[int, int]:
    """Count the steps that were sent after a read, and those that were not sent at all."""
    sent = {
        request.notification_id: request.at
        for request in evidence.requests
        if request.channel == "whatsapp"
    }
    late = sum(key in sent and sent[key] > at + IN_FLIGHT for key, at in read_at.items())
    return late, sum(key not in sent for key in read_at)


def _unread(evidence: Evidence, read_at: dict[str, datetime]) -> int:
    """Count the notifications that nobody read and whose later step no provider got."""
    sent = {
        request.notification_id for request in evidence.requests if request.channel == "whatsapp"
    }
    stored = {document.notification_id for document in evidence.stored}
    return len(stored - read_at.keys() - sent)
