"""Faults of a provider: errors, harmful answers, no answers, and refused credentials."""

import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from domain.time import utc_now

from ...processes import resident_megabytes
from ..evidence import Evidence
from ..findings import (
    Bound,
    Expected,
    Findings,
    at_least,
    at_most,
    make_findings,
    p99_bounds,
    scenario,
)
from ..installation import Installation, run_installation
from ..load import device_body, mail_body, push_body

PRIORITY = "critical"
USER_ID = "ada"
RETRIES = 2
RATE_LIMITED_FOR = timedelta(minutes=15)
"""Lifetime of the mails that always get a 429, which uses no attempt. Each blocks the account, so
that a retry behind the other mails takes minutes."""
ACCEPTED_OUTCOMES = ("user",) * 14
TRANSIENT_OUTCOMES = ("flaky", "ratelimit-once")
LASTING_OUTCOMES = ("server-error", "unavailable")
REFUSED_OUTCOMES = ("invalid", "too-large")
MIXED_OUTCOMES = (*ACCEPTED_OUTCOMES, *TRANSIENT_OUTCOMES, *LASTING_OUTCOMES, *REFUSED_OUTCOMES)
NOTICED_SECONDS = 20.0
SEND_LIMIT = 15_000 + 2_000
"""Milliseconds of a request at most, whatever a provider does, and a tolerance."""
MEMORY_GROWTH = 64
"""MB by which a worker may grow; one body that is read completely has ten."""

MAX_REFUSED = 20 + 4
"""Failures that open the circuit breaker, and probes: the first after 30 s, then at twice the
interval each time."""


@scenario(
    13,
    injects="30 % mixed provider errors; 429 with Retry-After 120, a date, garbage",
    shows="P8",
    full={"count": 2_000},
    short={"count": 40},
)
def mixed_errors(*, count: int) -> Findings:
    """Answer almost a third of the mail with errors, and three mails with a 429."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        outcomes = (MIXED_OUTCOMES * (count // len(MIXED_OUTCOMES) + 1))[:count]
        sent = _post(installation, outcomes)
        ends_at = (utc_now() + RATE_LIMITED_FOR).isoformat()
        rate_limited = ("ratelimit-date", "ratelimit-odd", "ratelimit-long")
        endless = _post(installation, rate_limited, name="rate-limited", expires_at=ends_at)
        evidence = installation.finish(timeout=2_400)
        requested = Counter(request.notification_id for request in evidence.requests)
        accepted = {request.notification_id for request in evidence.requests if request.accepted}
        acceptable = set(_sent_to(sent, (*ACCEPTED_OUTCOMES, *TRANSIENT_OUTCOMES)))
        most = max(map(requested.__getitem__, sent), default=None)
        retried = sum(
            requested[notification_id] != 1 for notification_id in _sent_to(sent, REFUSED_OUTCOMES)
        )
        shortest = _shortest_retry(evidence, _sent_to(endless, ("ratelimit-long",)))
        return make_findings(
            evidence,
            at_most("most requests for one mail", most, 1 + RETRIES),
            at_most("mails that were retried after a permanent error", retried, 0),
            at_most("acceptable mails that were not sent", len(acceptable - accepted), 0),
            at_least("seconds until the retry after Retry-After: 120", shortest, 120),
        )


@scenario(
    15,
    injects="answers a byte a second, of ten megabytes, and pointing elsewhere",
    shows="15 s and 64 KB at most",
    # Fewer failures than open the circuit breaker.
    full={"count": 8},
    short={"count": 3},
)
def spoiled_answers(*, count: int) -> Findings:
    """Answer with one byte a second, with ten megabytes, with HTML, and with a redirect."""
    with run_installation() as installation:
        worker = installation.worker()
        installation.start(installation.web(), worker, installation.beat())
        before = _post(installation, ["user"] * count, name="before")
        installation.wait_final(timeout=2_400)
        memory = resident_megabytes(worker.pid)
        expected = Expected(Counter(before.keys()))

        def send(outcome: str, *, copies: int) -> None:
            fields: dict[str, Any] = {"to": outcome, "priority": PRIORITY, "max_retries": 0}
            mails = (mail_body(number, **fields) for number in range(count))
            for answer in installation.client.send_each(mails, name=outcome):
                expected.add(answer, copies=copies)

        for outcome, copies in {"dripping": 1, "huge": 0, "bad-gateway": 0}.items():
            send(outcome, copies=copies)
        installation.wait_final(timeout=2_400)
        # A redirect suggests a wrong URL in the settings, so deliveries are held until a change.
        send("redirect", copies=1)
        time.sleep(NOTICED_SECONDS)
        installation.script_outcome("*", "delivered")
        installation.wait_final(timeout=2_400)
        grown = resident_megabytes(worker.pid) - memory
        attempts = installation.database["delivery_attempts"]
        longest = max(
            attempt["duration_ms"] for attempt in attempts.find({"duration_ms": {"$gte": 0}})
        )
        evidence = installation.collect_evidence()
        return make_findings(
            evidence,
            at_most("longest send in milliseconds", longest, SEND_LIMIT),
            at_most("memory growth of the worker in MB", grown, MEMORY_GROWTH),
            expected.bound(evidence),
        )


def _post(
    installation: Installation, outcomes: Sequence[str], *, name: str = "mail", **fields: str
) -> dict[str, str]:
    bodies = (
        mail_body(number, to=outcome, priority=PRIORITY, max_retries=RETRIES, **fields)
        for number, outcome in enumerate(outcomes)
    )
    answers = installation.client.send_each(bodies, name=name)
    return {
        answer.accepted_id(): outcome for answer, outcome in zip(answers, outcomes, strict=True)
    }


def _sent_to(sent: dict[str, str], outcomes: Sequence[str]) -> list[str]:
    return [notification_id for notification_id, outcome in sent.items() if outcome in outcomes]


def _shortest_retry(evidence: Evidence, ids: Sequence[str]) -> float | None:
    times = [
        sorted(r.at for r in evidence.requests if r.notification_id == notification_id)
        for notification_id in ids
    ]
    waits = [(some[1] - some[0]).total_seconds() for some in times if len(some) > 1]
    return min(waits, default=None)


@scenario(
    12,
    injects="the provider takes a message and never answers, with and without a later report",
    shows="unknown, then settled by the report or the type's policy",
    # Twenty failures would open the circuit breakers and hold the retries.
    full={"count": 6},
    short={"count": 2},
)
def silent_provider(*, count: int) -> Findings:
    """Accept messages without an answer; a receipt or the type's policy resolves them."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        phone = device_body(user_id=USER_ID, token="timeout-phone")
        installation.client.call("PUT", "/devices", phone)
        expected = Expected()
        groups: dict[str, set[str]] = defaultdict(set)
        for number in range(count):
            mail = mail_body(number, to="timeout", priority=PRIORITY)
            retried = push_body(number, user_id=USER_ID, priority=PRIORITY, max_retries=1)
            content = {"subject": "News", "body": "Once or never."}
            once = {**retried, "type": "marketing", "content": content, "data": {}}
            # A marketing type allows no critical priority.
            once["priority"] = "high"
            for name, body in {"reported": mail, "repeated": retried, "once": once}.items():
                answer = installation.client.send(body, key=f"{name}-{number}")
                groups[name].add(expected.add(answer, copies=2 if name == "repeated" else 1))
        evidence = installation.finish(timeout=1_200)
        ends = {
            document.notification_id: set(document.deliveries.values())
            for document in evidence.stored
        }
        return make_findings(
            evidence,
            *(
                at_least(text, sum(ends[group] == {end} for group in groups[name]), count)
                for name, text, end in (
                    ("reported", "settled by a later receipt", "delivered"),
                    ("repeated", "sent again by policy, then given up", "failed"),
                    ("once", "given up by policy", "failed"),
                )
            ),
            expected.bound(evidence),
        )


@scenario(
    14,
    injects="bad credentials with 10,000 mails pending, pushes beside them",
    shows="P13: the circuit opens, no try is used up, all recover",
    full={"pending": 10_000, "pushes": 600, "rate": 10, "seconds": 30},
    short={"pending": 300, "pushes": 50, "rate": 5, "seconds": 10},
)
def bad_credentials(*, pending: int, pushes: int, rate: float, seconds: float) -> Findings:
    """Send mail with a revoked key, and pushes at the same time; then correct the key."""
    with run_installation(webhooks=False) as installation:
        worker = installation.worker()
        installation.start(installation.web(), worker, installation.beat())
        installation.client.call("PUT", "/devices", device_body(user_id=USER_ID))
        body = partial(push_body, user_id=USER_ID, priority=PRIORITY)
        start_load = partial(installation.start_load, count=pushes, rate=rate, body=body)
        start_load(name="before").finish()
        installation.wait_final(timeout=1_800)
        worker.terminate()
        installation.start(worker, SENDGRID_API_KEY="SG.revoked")
        installation.client.send_in_bulk(pending, body=mail_body, name="mails")
        start_load(name="beside").finish()
        time.sleep(seconds)
        mails = installation.database["notifications"].find({"delivery.channel": "email"})
        deliveries = [delivery for mail in mails for delivery in mail["delivery"]]
        used_attempts = sum(
            delivery["attempt_count"] - delivery.get("uncounted_attempts", 0)
            for delivery in deliveries
        )
        failed = {"channel": "email", "status": "failed"}
        refused = installation.database["delivery_attempts"].count_documents(failed)
        worker.terminate()
        installation.start(worker)
        drain_seconds = installation.wait_final(timeout=1_800)
        evidence = installation.collect_evidence()
        return make_findings(
            evidence,
            Bound("requests with the refused key", refused, minimum=1, maximum=MAX_REFUSED),
            at_most("attempts that counted against the limit", used_attempts, 0),
            *p99_bounds(
                evidence,
                before="push p99 in seconds before",
                beside="push p99 in seconds beside it",
            ),
            at_most("seconds until all was sent with a good key", drain_seconds, 1_200),
        )
