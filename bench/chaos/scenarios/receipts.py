"""Receipts before the answer, ten times each, in random order, and a week late."""

import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import urllib3
from cryptography.hazmat.primitives.asymmetric import ec

from domain.channels import Channel
from sandbox import credentials
from sandbox.providers.sendgrid.events import SignedWebhooks, payload

from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import mail_body

FINAL_SECONDS = 600.0
REPETITIONS = 10
BATCH_SIZE = 100
DELAY = timedelta(days=8)
HISTORIES = (
    ("delivered", ("processed", "deferred", "delivered")),
    ("delivered", ("processed", "delivered", "open")),
    ("failed", ("processed", "deferred", "bounce")),
)
"""The final status of a mail, and its receipts. An open sets no status: a machine may open mail."""


@scenario(
    16,
    injects="reports before the answer, ten times each, shuffled, 8 days late, unsigned",
    shows="P14",
    full={"count": 300, "early": 50},
    short={"count": 30, "early": 5},
)
def disordered_receipts(*, count: int, early: int) -> Findings:
    """Send receipts repeatedly, in random order, early and late, and with a wrong signature."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        slow = (mail_body(number, to="slow", priority="critical") for number in range(early))
        installation.client.send_each(slow, name="early")
        mails = (mail_body(early + n, to="no-events", priority="critical") for n in range(count))
        answers = installation.client.send_each(mails, name="reported")
        histories = {
            answer.notification_id: HISTORIES[number % len(HISTORIES)]
            for number, answer in enumerate(answers)
        }
        installation.wait_final(timeout=FINAL_SECONDS)
        events = _events(installation, histories)
        rng = random.Random()
        unsigned = _post(installation, events, signed=False)
        repeated = events * REPETITIONS
        rng.shuffle(repeated)
        statuses = _post(installation, repeated)
        evidence = installation.collect_evidence()
        stored = {
            document.notification_id: set(document.deliveries.values())
            for document in evidence.stored
        }
        wrong = sum(
            stored[notification_id] != {end}
            for notification_id, (end, _) in histories.items()
            if notification_id
        )
        ends = [
            found for notification_id, found in stored.items() if notification_id not in histories
        ]
        early_wrong = sum(found != {"delivered"} for found in ends)
        return make_findings(
            evidence,
            at_least("receipts that were posted", len(repeated), count * REPETITIONS * 3),
            at_most("posts that were refused", len(statuses) - statuses.count(200), 0),
            at_most("accepted posts without a signature", unsigned.count(200), 0),
            at_most("mails whose final status contradicts their receipts", wrong, 0),
            at_most("mails with an early receipt that did not end as delivered", early_wrong, 0),
            copies="none",
        )


def _events(
    installation: Installation, histories: Mapping[str | None, tuple[str, Sequence[str]]]
) -> list[dict[str, Any]]:
    from notifications.store.references import AttemptReference

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
    sendgrid_key = credentials.load_webhook_key(Path(installation.folder, "sandbox"))
    key = sendgrid_key if signed else ec.generate_private_key(ec.SECP256R1())
    webhooks = SignedWebhooks(private_key=key)
    statuses = []
    for start in range(0, len(events), BATCH_SIZE):
        body = webhooks.encode(events[start : start + BATCH_SIZE])
        url = f"{installation.url}/webhooks/sendgrid"
        headers = webhooks.headers(body, url=url, now=datetime.now(UTC))
        answer = urllib3.request("POST", url, body=body, headers=headers, timeout=30, retries=False)
        statuses.append(answer.status)
    return statuses
