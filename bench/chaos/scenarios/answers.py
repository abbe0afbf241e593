"""Providers that answer badly: with errors of all kinds, too slowly, too much, from elsewhere."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from ...environment import resident_megabytes
from .. import bodies
from ..evidence import Evidence
from ..expecting import Expected, accepted_id
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..scenario import Scenario
from ..stand import Stand, standing

FINAL_SECONDS = 2_400.0
PRIORITY = "critical"
RETRIES = 2
GOOD = ("user",) * 14
PASSING = ("flaky", "ratelimit-once")
"""They take it in the end."""
LASTING = ("server-error", "unavailable")
SLOWING = ("ratelimit-date", "ratelimit-odd", "ratelimit-long")
FINAL = ("invalid", "too-large")
"""Refused for good: nobody asks twice."""
MIXTURE = (*GOOD, *PASSING, *LASTING, *FINAL)

SLOW = ("dripping",)
WRONG = ("huge", "bad-gateway")
ELSEWHERE = "redirect"
"""A wrong address in our settings: everything waits until it is put right."""
NOTICED_SECONDS = 20.0
SEND_LIMIT = 15_000
"""Milliseconds a request may take, whatever a provider does."""
GRACE = 2_000
MEMORY_GROWTH = 64
"""MB a worker may grow by; one body that is read to its end has ten."""


def mixed_errors(*, count: int) -> Findings:
    """Let almost a third of the mail meet errors, and a few of it be told to come later."""
    with standing() as stand:
        stand.start(stand.web(), stand.worker(), stand.beat())
        words = [*(MIXTURE * (count // len(MIXTURE) + 1))[:count], *SLOWING]
        sent = _post(stand, words)
        stand.wait_final(timeout=FINAL_SECONDS)
        evidence = gather(stand)
        asked = Counter(one.notification_id for one in evidence.requests)
        return conclude(
            evidence,
            Bound(
                name="requests for one mail, at most",
                value=max(asked.values(), default=None),
                most=1 + RETRIES,
            ),
            Bound(
                name="mails that were refused for good and sent again",
                value=sum(asked[one] != 1 for one in _of(sent, FINAL)),
                most=0,
            ),
            Bound(
                name="mails that would have been taken and were not",
                value=_not_taken(evidence, _of(sent, (*GOOD, *PASSING))),
                most=0,
            ),
            Bound(
                name="seconds until a mail was tried again that was to wait for 120",
                value=_second_try(evidence, _of(sent, ("ratelimit-long",))),
                least=120,
            ),
        )


def spoiled_answers(*, count: int) -> Findings:
    """Let a provider answer a byte a second, send ten megabytes, and point elsewhere."""
    with standing() as stand:
        worker = stand.worker()
        stand.start(stand.web(), worker, stand.beat())
        _post(stand, ["user"] * count, name="before")
        stand.wait_final(timeout=FINAL_SECONDS)
        memory = resident_megabytes(worker.pid)
        expected = Expected()
        for word in (*SLOW, *WRONG):
            for number in range(count):
                mail = bodies.mail(number, to=word, priority=PRIORITY, max_retries=0)
                answer = stand.client.send(mail, key=f"{word}-{number}")
                expected.add(answer, copies=1 if word in SLOW else 0)
        stand.wait_final(timeout=FINAL_SECONDS)
        for number in range(count):
            mail = bodies.mail(number, to=ELSEWHERE, priority=PRIORITY, max_retries=0)
            expected.add(stand.client.send(mail, key=f"{ELSEWHERE}-{number}"), copies=1)
        time.sleep(NOTICED_SECONDS)
        stand.script("*", "delivered")
        stand.wait_final(timeout=FINAL_SECONDS)
        grown = resident_megabytes(worker.pid) - memory
        longest = max(
            record["duration_ms"]
            for record in stand.database["delivery_attempts"].find({"duration_ms": {"$gte": 0}})
        )
        evidence = gather(stand)
        before = {a.notification_id for a in evidence.answers if a.key.startswith("before")}
        for one in before:
            if one is not None:
                expected.copies[one] = 1
        return conclude(
            evidence,
            Bound(name="milliseconds of a send at most", value=longest, most=SEND_LIMIT + GRACE),
            Bound(name="MB the worker grew by", value=grown, most=MEMORY_GROWTH),
            expected.bound(evidence),
        )


def _post(stand: Stand, words: Iterable[str], *, name: str = "mail") -> dict[str, str]:
    """Send a mail to each of these words; return the word by the notification's id."""
    found = {}
    for number, word in enumerate(words):
        mail = bodies.mail(number, to=word, priority=PRIORITY, max_retries=RETRIES)
        found[accepted_id(stand.client.send(mail, key=f"{name}-{number}"))] = word
    return found


def _of(sent: dict[str, str], words: Sequence[str]) -> list[str]:
    return [one for one, word in sent.items() if word in words]


def _not_taken(evidence: Evidence, ids: Iterable[str]) -> int:
    taken = {one.notification_id for one in evidence.requests if one.accepted}
    return len(set(ids) - taken)


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
