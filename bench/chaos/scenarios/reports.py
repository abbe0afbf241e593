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
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..joining import judge
from ..scenario import Scenario
from ..stand import Stand, standing

FINAL_SECONDS = 600.0
TIMES = 10
IN_ONE_POST = 100
LATE = timedelta(days=8)
HISTORIES = (
    ("delivered", ("processed", "deferred", "delivered")),
    ("delivered", ("processed", "delivered", "open")),
    ("failed", ("processed", "deferred", "bounce")),
)
"""What a mail is to end as, and what is reported of it. That it was opened may be a machine's."""
OK = 200


def disordered_reports(*, count: int, early: int) -> Findings:
    """Report on mails in every way a provider may, and without a signature."""
    with standing() as stand:
        stand.start(stand.web(), stand.worker(), stand.beat())
        for number in range(early):
            slow = bodies.mail(number, to="slow", priority="critical")
            stand.client.send(slow, key=f"early-{number}")
        histories = {}
        for number in range(count):
            mail = bodies.mail(early + number, to="no-events", priority="critical")
            answer = stand.client.send(mail, key=f"reported-{number}")
            histories[answer.notification_id] = HISTORIES[number % len(HISTORIES)]
        stand.wait_final(timeout=FINAL_SECONDS)
        events = _events(stand, histories)
        dice = random.Random()
        unsigned = _post(stand, events, signed=False)
        repeated = events * TIMES
        dice.shuffle(repeated)
        taken = _post(stand, repeated)
        evidence = gather(stand)
        stored = {one.notification_id: set(one.deliveries.values()) for one in evidence.stored}
        return conclude(
            evidence,
            Bound(name="reports that were posted", value=len(repeated), least=count * TIMES * 3),
            Bound(name="posts that were refused", value=len(taken) - taken.count(OK), most=0),
            Bound(
                name="posts without a signature that were taken", value=unsigned.count(OK), most=0
            ),
            Bound(
                name="mails that did not end as their reports say",
                value=sum(stored[one] != {end} for one, (end, _) in histories.items() if one),
                most=0,
            ),
            Bound(
                name="mails reported before their answer that did not end as delivered",
                value=sum(
                    statuses != {"delivered"}
                    for one, statuses in stored.items()
                    if one not in histories
                ),
                most=0,
            ),
            Bound(
                name="copies after an unknown outcome",
                value=len(judge(evidence).double_unknown),
                most=0,
            ),
        )


def _events(
    stand: Stand, histories: Mapping[str | None, tuple[str, Sequence[str]]]
) -> list[dict[str, Any]]:
    """Return the reports on each mail, eight days late."""
    from domain.states import Channel
    from notifications.store import AttemptReference

    attempts = stand.database["delivery_attempts"].find({"channel": "email"})
    late = datetime.now(UTC) - LATE
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


def _post(stand: Stand, events: Sequence[dict[str, Any]], *, signed: bool = True) -> list[int]:
    """Post reports as the provider does; return the statuses."""
    ours = keys.load(Path(stand.folder, "sandbox"))
    key = ours if signed else ec.generate_private_key(ec.SECP256R1())
    return [_post_some(stand, some, key) for some in _chunks(events)]


def _post_some(
    stand: Stand, events: Sequence[dict[str, Any]], key: ec.EllipticCurvePrivateKey
) -> int:
    hooks = SignedWebhooks(private_key=key)
    body = hooks.encode(events)
    answer = urllib3.request(
        "POST",
        f"{stand.url}/webhooks/sendgrid",
        body=body,
        headers=hooks.headers(body, now=datetime.now(UTC)),
        timeout=30,
        retries=False,
    )
    return answer.status


def _chunks(events: Sequence[dict[str, Any]]) -> Iterable[Sequence[dict[str, Any]]]:
    for start in range(0, len(events), IN_ONE_POST):
        yield events[start : start + IN_ONE_POST]


DISORDERED_REPORTS = Scenario(
    number=16,
    injects="reports before the answer, ten times each, shuffled, 8 days late, unsigned",
    shows="P14",
    run=disordered_reports,
    full={"count": 300, "early": 50},
    short={"count": 30, "early": 5},
)
