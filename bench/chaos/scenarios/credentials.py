"""A provider refuses the credentials while much waits for it."""

import time

from ...figures import percentile
from .. import bodies
from ..bodies import Body
from ..crashing import USER_ID
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import waits_since_accepted
from ..load import Load
from ..scenario import Scenario
from ..stand import Installation, run_installation

FINAL_SECONDS = 1_800.0
FAILURES_UNTIL_OPEN = 20
"""Failures after which the circuit is open."""
PROBES = 4
"""Tries after that: one after 30 s, then after twice as long each time."""
REVOKED = "SG.revoked"
MAX_SLOWDOWN = 0.1
"""How much slower the other channels may become ..."""
NOISE_SECONDS = 0.25
"""... or by so many seconds, which a busy machine makes of nothing."""


def bad_credentials(*, pending: int, pushes: int, rate: float, seconds: float) -> Findings:
    """Send mail with a revoked key, pushes beside it; then give the worker a good key."""
    with run_installation(webhooks=False) as installation:
        worker = installation.worker()
        installation.start(installation.web(), worker, installation.beat())
        installation.client.call("PUT", "/devices", bodies.phone(user_id=USER_ID))
        before = _pushes(installation, "before", count=pushes, rate=rate)
        installation.wait_final(timeout=FINAL_SECONDS)
        worker.terminate()
        installation.start(worker, SENDGRID_API_KEY=REVOKED)
        installation.client.send_in_bulk(pending, body=bodies.mail, name="mails")
        beside = _pushes(installation, "beside", count=pushes, rate=rate)
        time.sleep(seconds)
        used_attempts = _count_used_attempts(installation)
        refused = installation.database["delivery_attempts"].count_documents(
            {"channel": "email", "status": "failed"}
        )
        worker.terminate()
        installation.start(worker)
        drain_seconds = installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        usual, slowest = (
            percentile(waits_since_accepted(evidence, one.name), 99) for one in (before, beside)
        )
        return make_findings(
            evidence,
            Bound(
                name="requests with the refused key",
                value=refused,
                minimum=1,
                maximum=FAILURES_UNTIL_OPEN + PROBES,
            ),
            Bound(name="tries that were used up", value=used_attempts, maximum=0),
            Bound(name="push p99 in seconds before", value=usual),
            Bound(
                name="push p99 in seconds beside it",
                value=slowest,
                maximum=None if usual is None else usual * (1 + MAX_SLOWDOWN) + NOISE_SECONDS,
            ),
            Bound(
                name="seconds until all was sent with a good key",
                value=drain_seconds,
                maximum=1_200,
            ),
        )


def _pushes(installation: Installation, name: str, *, count: int, rate: float) -> Load:
    """Send pushes at a rate, to the last."""
    load = Load(installation.client, count=count, rate=rate, body=_push, name=name)
    load.start()
    load.finish()
    return load


def _push(number: int) -> Body:
    return bodies.push(number, user_id=USER_ID, priority="critical")


def _count_used_attempts(installation: Installation) -> int:
    """Return how many tries of mails count against their limit."""
    documents = installation.database["notifications"].find(
        {"delivery.channel": "email"}, {"delivery": 1}
    )
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
