"""Faults while recipients get more messages than a limit allows."""

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from ..evidence import Answer, Evidence
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import run_installation
from ..load import mail_body

MAXIMUM, PERIOD = 5, timedelta(seconds=60)
IN_FLIGHT = timedelta(seconds=10)
"""A request that was counted may reach the provider this much later, if its worker is slow."""
FINAL_SECONDS = 900.0


@scenario(
    28,
    injects="kill -9 of workers while recipients get twice what a limit allows",
    shows="P1, P2, P20",
    full={"count": 6_000, "rate": 30.0, "recipients": 180, "kills": 60, "workers": 3},
    short={"count": 300, "rate": 20.0, "recipients": 20, "kills": 4, "workers": 2},
)
def limits_under_kills(
    *, count: int, rate: float, recipients: int, kills: int, workers: int
) -> Findings:
    """Send to each recipient about twice as much as the limit allows, among kills."""
    with run_installation() as installation:
        programs = installation.workers(workers)
        installation.start(installation.web(), installation.beat(), *programs)
        limit = {"max": MAXIMUM, "period_seconds": int(PERIOD.total_seconds())}
        status, _ = installation.client.call("PUT", "/limits/minute", limit)
        if status != 201:
            raise RuntimeError(f"the limit was refused with {status}")
        recipient_of: dict[str, int] = {}

        def on_accepted(answer: Answer) -> None:
            number = int(answer.key.rpartition("-")[2])
            recipient_of[answer.accepted_id()] = number % recipients

        installation.client.on_accepted = on_accepted
        load = installation.start_load(
            count=count, rate=rate, body=lambda number: _body(number, recipients)
        )
        installation.kill_at_random(programs, kills=kills, every=count / rate / kills)
        load.finish()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        times = _times(evidence, recipient_of)
        held = sum("suppressed" in document.deliveries.values() for document in evidence.stored)
        return make_findings(
            evidence,
            at_most("most messages to one recipient within 50 s", _most(times), MAXIMUM),
            at_least("messages beyond the limit that were suppressed", held, 1),
            at_least("recipients who got as many as the limit allows", _full(times), 1),
            copies="in flight",
        )


def _body(number: int, recipients: int) -> dict[str, Any]:
    body = mail_body(number)
    body["user_id"] = f"recipient-{number % recipients}"
    return body


def _times(evidence: Evidence, recipient_of: Mapping[str, int]) -> dict[int, list[datetime]]:
    """Return when each recipient was first sent each message."""
    first: dict[str, datetime] = {}
    for request in evidence.requests:
        first[request.notification_id] = min(
            request.at, first.get(request.notification_id, request.at)
        )
    times: dict[int, list[datetime]] = defaultdict(list)
    for notification_id, at in first.items():
        if notification_id in recipient_of:
            times[recipient_of[notification_id]].append(at)
    return {number: sorted(found) for number, found in times.items()}


def _most(times: Mapping[int, list[datetime]]) -> int:
    """Return the most messages to one recipient within the period, less what may be in flight."""
    return max(
        (
            sum(1 for at in found if start <= at < start + PERIOD - IN_FLIGHT)
            for found in times.values()
            for start in found
        ),
        default=0,
    )


def _full(times: Mapping[int, list[datetime]]) -> int:
    return sum(len(found) >= MAXIMUM for found in times.values())
