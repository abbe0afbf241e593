"""A provider refuses the credentials while much waits for it."""

import time

from ...figures import percentile
from .. import bodies
from ..bodies import Body
from ..crashing import PERSON
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..joining import waits_since_accepted
from ..load import Load
from ..scenario import Scenario
from ..stand import Stand, standing

FINAL_SECONDS = 1_800.0
WITHIN = 20
"""Failures after which the circuit is open."""
PROBES = 4
"""Tries after that: one after 30 s, then after twice as long each time."""
REVOKED = "SG.revoked"
SLOWER_BY = 0.1
"""How much slower the other channels may become ..."""
NOISE = 0.25
"""... or by so many seconds, which a busy machine makes of nothing."""


def bad_credentials(*, pending: int, pushes: int, rate: float, seconds: float) -> Findings:
    """Send mail with a revoked key, pushes beside it; then give the worker a good key."""
    with standing(webhooks=False) as stand:
        worker = stand.worker()
        stand.start(stand.web(), worker, stand.beat())
        stand.client.call("PUT", "/devices", bodies.phone(user_id=PERSON))
        before = _pushes(stand, "before", count=pushes, rate=rate)
        stand.wait_final(timeout=FINAL_SECONDS)
        worker.terminate()
        stand.start(worker, SENDGRID_API_KEY=REVOKED)
        stand.client.send_in_bulk(pending, body=bodies.mail, name="mails")
        beside = _pushes(stand, "beside", count=pushes, rate=rate)
        time.sleep(seconds)
        tries = _tries(stand)
        refused = stand.database["delivery_attempts"].count_documents(
            {"channel": "email", "status": "failed"}
        )
        worker.terminate()
        stand.start(worker)
        took = stand.wait_final(timeout=FINAL_SECONDS)
        evidence = gather(stand)
        usual, slowest = (
            percentile(waits_since_accepted(evidence, one.name), 99) for one in (before, beside)
        )
        return conclude(
            evidence,
            Bound(
                name="requests with the refused key",
                value=refused,
                least=1,
                most=WITHIN + PROBES,
            ),
            Bound(name="tries that were used up", value=tries, most=0),
            Bound(name="push p99 in seconds before", value=usual),
            Bound(
                name="push p99 in seconds beside it",
                value=slowest,
                most=None if usual is None else usual * (1 + SLOWER_BY) + NOISE,
            ),
            Bound(name="seconds until all was sent with a good key", value=took, most=1_200),
        )


def _pushes(stand: Stand, name: str, *, count: int, rate: float) -> Load:
    """Send pushes at a rate, to the last."""
    load = Load(stand.client, count=count, rate=rate, body=_push, name=name)
    load.start()
    load.finish()
    return load


def _push(number: int) -> Body:
    return bodies.push(number, user_id=PERSON, priority="critical")


def _tries(stand: Stand) -> int:
    """Return how many tries of mails count against their limit."""
    documents = stand.database["notifications"].find({"delivery.channel": "email"}, {"delivery": 1})
    return sum(
        one["attempt_count"] - one.get("excused_count", 0)
        for document in documents
        for one in document["delivery"]
    )


BAD_CREDENTIALS = Scenario(
    number=14,
    injects="bad credentials with 10,000 mails pending, pushes beside them",
    shows="P13: the circuit opens, no try is used up, all recover",
    run=bad_credentials,
    full={"pending": 10_000, "pushes": 600, "rate": 10, "seconds": 30},
    short={"pending": 300, "pushes": 50, "rate": 5, "seconds": 10},
)
