"""Reports that come before the answer, ten times, in no order, and a week late."""

import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import urllib3
from cryptography.hazmat.primitives.asymmetric import ec

from sandbox import keys
from sandbox.providers.sendgrid.events import SignedWebhooks, payload

from .. import bodies
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import analyze
from ..scenario import Scenario
from ..stand import Installation, run_installation

FINAL_SECONDS = 600.0
REPETITIONS = 10
BATCH_SIZE = 100
DELAY = timedelta(days=8)
HISTORIES = (
    ("delivered", ("processed", "deferred", "delivered")),
    ("delivered", ("processed", "delivered", "open")),
    ("failed", ("processed", "deferred", "bounce")),
)
"""What a mail is to end as, and what is reported of it. That it was opened may be a machine's."""
OK = 200


def disordered_receipts(*, count: int, early: int) -> Findings:
    """Report on mails in every way a provider may, and without a signature."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        for number in range(early):
            slow = bodies.mail(number, to="slow", priority="critical")
            installation.client.send(slow, key=f"early-{number}")
        histories = {}
        for number in range(count):
            mail = bodies.mail(early + number, to="no-events", priority="critical")
            answer = installation.client.send(mail, key=f"reported-{number}")
            histories[answer.notification_id] = HISTORIES[number % len(HISTORIES)]
        installation.wait_final(timeout=FINAL_SECONDS)
        events = _events(installation, histories)
        rng = random.Random()
        unsigned = _post(installation, events, signed=False)
        repeated = events * REPETITIONS
        rng.shuffle(repeated)
        statuses_of_posts = _post(installation, repeated)
        evidence = collect_evidence(installation)
        stored = {one.notification_id: set(one.deliveries.values()) for one in evidence.stored}
        return make_findings(
            evidence,
            Bound(
                name="reports that were posted",
                value=len(repeated),
                minimum=count * REPETITIONS * 3,
            ),
            Bound(
                name="posts that were refused",
                value=len(statuses_of_posts) - statuses_of_posts.count(OK),
                maximum=0,
            ),
            Bound(
                name="posts without a signature that were taken",
                value=unsigned.count(OK),
                maximum=0,
            ),
            Bound(
                name="mails that did not end as their reports say",
                value=sum(stored[one] != {end} for one, (end, _) in histories.items() if one),
                maximum=0,
            ),
            Bound(
                name="mails reported before their answer that did not end as delivered",
                value=sum(
                    statuses != {"delivered"}
                    for one, statuses in stored.items()
                    if one not in histories
                ),
                maximum=0,
            ),
            Bound(
                name="copies after an unknown outcome",
                value=len(analyze(evidence).double_unknown),
                maximum=0,
            ),
        )


def _events(
    installation: Installation, histories: Mapping[str | None, tuple[str, Sequence[str]]]
) -> list[dict[str, Any]]:
    """Return the reports on each mail, eight days late."""
    from domain.states import Channel
    from notifications.store import AttemptReference

    attempts = installation.database["delivery_attempts"].find({"channel": "email"})
    late = datetime.now(UTC) - DELAY
    found = []
    for attempt in attempts:
        _, kinds = histories.get(str(attempt["notification_id"]), ("", ()))
        reference = AttemptReference(
            attempt["notification_id"], Channel.EMAIL, attempt["attempt_number"]
        )
        for step, kind in enumerate(kinds):
            event = payload(
                kind,
                address="somebody@example.com",
                message_id=attempt["provider_message_id"],
                args={"reference": str(reference)},
            )
            at = late + timedelta(seconds=step)
            found.append({**event, "timestamp": int(at.timestamp())})
    return found


def _post(
    installation: Installation, events: Sequence[dict[str, Any]], *, signed: bool = True
) -> list[int]:
    """Post reports as the provider does; return the statuses."""
    sendgrid_key = keys.load_webhook_key(Path(installation.folder, "sandbox"))
    key = sendgrid_key if signed else ec.generate_private_key(ec.SECP256R1())
    return [_post_batch(installation, batch, key) for batch in _batches(events)]


def _post_batch(
    installation: Installation, events: Sequence[dict[str, Any]], key: ec.EllipticCurvePrivateKey
) -> int:
    webhooks = SignedWebhooks(private_key=key)
    body = webhooks.encode(events)
    answer = urllib3.request(
        "POST",
        f"{installation.url}/webhooks/sendgrid",
        body=body,
        headers=webhooks.headers(body, now=datetime.now(UTC)),
        timeout=30,
        retries=False,
    )
    return answer.status


def _batches(events: Sequence[dict[str, Any]]) -> Iterable[Sequence[dict[str, Any]]]:
    for start in range(0, len(events), BATCH_SIZE):
        yield events[start : start + BATCH_SIZE]


DISORDERED_RECEIPTS = Scenario(
    number=16,
    injects="reports before the answer, ten times each, shuffled, 8 days late, unsigned",
    shows="P14",
    run=disordered_receipts,
    full={"count": 300, "early": 50},
    short={"count": 30, "early": 5},
)
