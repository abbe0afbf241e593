"""Providers that answer badly: with errors of all kinds, too slowly, too much, from elsewhere."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from ...environment import resident_megabytes
from .. import bodies
from ..evidence import Evidence
from ..expecting import Expected, accepted_id
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..scenario import Scenario
from ..stand import Installation, run_installation

FINAL_SECONDS = 2_400.0
PRIORITY = "critical"
RETRIES = 2
ACCEPTED_OUTCOMES = ("user",) * 14
TRANSIENT_OUTCOMES = ("flaky", "ratelimit-once")
"""They take it in the end."""
LASTING_OUTCOMES = ("server-error", "unavailable")
RATE_LIMIT_OUTCOMES = ("ratelimit-date", "ratelimit-odd", "ratelimit-long")
REFUSED_OUTCOMES = ("invalid", "too-large")
"""Refused for good: nobody asks twice."""
MIXED_OUTCOMES = (*ACCEPTED_OUTCOMES, *TRANSIENT_OUTCOMES, *LASTING_OUTCOMES, *REFUSED_OUTCOMES)

SLOW_OUTCOMES = ("dripping",)
MALFORMED_OUTCOMES = ("huge", "bad-gateway")
REDIRECT_OUTCOME = "redirect"
"""A wrong address in our settings: everything waits until it is put right."""
NOTICED_SECONDS = 20.0
SEND_LIMIT = 15_000
"""Milliseconds a request may take, whatever a provider does."""
GRACE = 2_000
MEMORY_GROWTH = 64
"""MB a worker may grow by; one body that is read to its end has ten."""


def mixed_errors(*, count: int) -> Findings:
    """Let almost a third of the mail meet errors, and a few of it be told to come later."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        recipients = [
            *(MIXED_OUTCOMES * (count // len(MIXED_OUTCOMES) + 1))[:count],
            *RATE_LIMIT_OUTCOMES,
        ]
        sent = _post(installation, recipients)
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        requested = Counter(one.notification_id for one in evidence.requests)
        return make_findings(
            evidence,
            Bound(
                name="requests for one mail, at most",
                value=max(requested.values(), default=None),
                maximum=1 + RETRIES,
            ),
            Bound(
                name="mails that were refused for good and sent again",
                value=sum(requested[one] != 1 for one in _sent_to(sent, REFUSED_OUTCOMES)),
                maximum=0,
            ),
            Bound(
                name="mails that would have been taken and were not",
                value=_not_accepted(
                    evidence, _sent_to(sent, (*ACCEPTED_OUTCOMES, *TRANSIENT_OUTCOMES))
                ),
                maximum=0,
            ),
            Bound(
                name="seconds until a mail was tried again that was to wait for 120",
                value=_second_try(evidence, _sent_to(sent, ("ratelimit-long",))),
                minimum=120,
            ),
        )


def spoiled_answers(*, count: int) -> Findings:
    """Let a provider answer a byte a second, send ten megabytes, and point elsewhere."""
    with run_installation() as installation:
        worker = installation.worker()
        installation.start(installation.web(), worker, installation.beat())
        _post(installation, ["user"] * count, name="before")
        installation.wait_final(timeout=FINAL_SECONDS)
        memory = resident_megabytes(worker.pid)
        expected = Expected()
        for word in (*SLOW_OUTCOMES, *MALFORMED_OUTCOMES):
            for number in range(count):
                mail = bodies.mail(number, to=word, priority=PRIORITY, max_retries=0)
                answer = installation.client.send(mail, key=f"{word}-{number}")
                expected.add(answer, copies=1 if word in SLOW_OUTCOMES else 0)
        installation.wait_final(timeout=FINAL_SECONDS)
        for number in range(count):
            mail = bodies.mail(number, to=REDIRECT_OUTCOME, priority=PRIORITY, max_retries=0)
            expected.add(
                installation.client.send(mail, key=f"{REDIRECT_OUTCOME}-{number}"), copies=1
            )
        time.sleep(NOTICED_SECONDS)
        installation.script_outcome("*", "delivered")
        installation.wait_final(timeout=FINAL_SECONDS)
        grown = resident_megabytes(worker.pid) - memory
        longest = max(
            record["duration_ms"]
            for record in installation.database["delivery_attempts"].find(
                {"duration_ms": {"$gte": 0}}
            )
        )
        evidence = collect_evidence(installation)
        before = {a.notification_id for a in evidence.answers if a.key.startswith("before")}
        for one in before:
            if one is not None:
                expected.copies[one] = 1
        return make_findings(
            evidence,
            Bound(name="milliseconds of a send at most", value=longest, maximum=SEND_LIMIT + GRACE),
            Bound(name="MB the worker grew by", value=grown, maximum=MEMORY_GROWTH),
            expected.bound(evidence),
        )


def _post(
    installation: Installation, recipients: Iterable[str], *, name: str = "mail"
) -> dict[str, str]:
    """Send a mail to each of these words; return the word by the notification's id."""
    found = {}
    for number, word in enumerate(recipients):
        mail = bodies.mail(number, to=word, priority=PRIORITY, max_retries=RETRIES)
        found[accepted_id(installation.client.send(mail, key=f"{name}-{number}"))] = word
    return found


def _sent_to(sent: dict[str, str], recipients: Sequence[str]) -> list[str]:
    return [one for one, word in sent.items() if word in recipients]


def _not_accepted(evidence: Evidence, ids: Iterable[str]) -> int:
    accepted = {one.notification_id for one in evidence.requests if one.accepted}
    return len(set(ids) - accepted)


def _second_try(evidence: Evidence, ids: Sequence[str]) -> float | None:
    """Return the least seconds between two requests for one of these."""
    times = [sorted(r.at for r in evidence.requests if r.notification_id == one) for one in ids]
    waits = [(some[1] - some[0]).total_seconds() for some in times if len(some) > 1]
    return min(waits, default=None)


MIXED_ERRORS = Scenario(
    number=13,
    injects="30 % mixed provider errors; 429 with Retry-After 120, a date, garbage",
    shows="P8",
    run=mixed_errors,
    full={"count": 2_000},
    short={"count": 40},
)
SPOILED_ANSWERS = Scenario(
    number=15,
    injects="answers a byte a second, of ten megabytes, and pointing elsewhere",
    shows="15 s and 64 KB at most",
    run=spoiled_answers,
    # Fewer failures than open a circuit.
    full={"count": 8},
    short={"count": 3},
)
