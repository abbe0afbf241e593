"""SendGrid's magic recipients: the local part of an address chooses the outcome."""

from ...outcomes import Moment, Outcome, Outcomes, Step
from ...replies import Manner

NO_MESSAGE_ID = "no message id"
PROCESSED = Step(kind="processed", after=Moment.PROCESSED)
DELIVERED = Step(kind="delivered")
ORDINARY = (PROCESSED, DELIVERED)

OUTCOMES = Outcomes(
    (
        Outcome(
            name="delivered",
            says="Accepted, processed, delivered. So is every address that is not in this table.",
            status=202,
            steps=ORDINARY,
        ),
        Outcome(
            name="bounce",
            says="Accepted, then a hard bounce: 550 5.1.1, the mailbox does not exist.",
            status=202,
            steps=(PROCESSED, Step(kind="bounce")),
        ),
        Outcome(
            name="blocked",
            says="Accepted, then a bounce of type blocked: the receiving server refused for now.",
            status=202,
            steps=(PROCESSED, Step(kind="blocked")),
        ),
        Outcome(
            name="soft-bounce",
            says="Accepted, deferred three times, then delivered.",
            status=202,
            steps=(
                PROCESSED,
                *(Step(kind="deferred", times=attempt) for attempt in (1, 2, 3)),
                Step(kind="delivered", times=4),
            ),
        ),
        Outcome(
            name="dropped",
            says="Accepted, then dropped: the address is on SendGrid's own bounce list.",
            status=202,
            steps=(Step(kind="dropped", after=Moment.PROCESSED),),
        ),
        Outcome(
            name="spam",
            says="Accepted and delivered, then reported as spam.",
            status=202,
            steps=(*ORDINARY, Step(kind="spamreport", times=2)),
        ),
        Outcome(
            name="unsubscribed",
            says="Accepted and delivered, then the recipient unsubscribes.",
            status=202,
            steps=(*ORDINARY, Step(kind="unsubscribe", times=2)),
        ),
        Outcome(
            name="no-events",
            says="Accepted, and never an event: for tests that send the events themselves.",
            status=202,
        ),
        Outcome(
            name="ratelimit",
            says="429 with X-RateLimit-Reset and Retry-After a few seconds ahead.",
            status=429,
            accepted=False,
        ),
        Outcome(
            name="timeout",
            says="Accepted but never answered; the events come twenty seconds later.",
            status=202,
            manner=Manner.STALLED,
            steps=ORDINARY,
            late=True,
        ),
        Outcome(
            name="timeout-lost",
            says="Never answered, and the message is lost.",
            status=202,
            manner=Manner.STALLED,
            accepted=False,
        ),
        Outcome(
            name="reset",
            says="Accepted, then the connection is reset instead of an answer.",
            status=202,
            manner=Manner.RESET,
            steps=ORDINARY,
        ),
        Outcome(
            name="truncated",
            says="Accepted, but the 202 is cut off before its end.",
            status=202,
            manner=Manner.TRUNCATED,
            steps=ORDINARY,
        ),
        Outcome(
            name="dripping",
            says="Accepted, but the 202 comes one byte a second.",
            status=202,
            manner=Manner.DRIPPING,
            steps=ORDINARY,
        ),
        Outcome(
            name="slow",
            says="Accepted after two seconds.",
            status=202,
            manner=Manner.SLOW,
            steps=ORDINARY,
        ),
        Outcome(
            name="no-id",
            says="Accepted with a 202 that has no X-Message-Id.",
            status=202,
            steps=ORDINARY,
            traits=frozenset({NO_MESSAGE_ID}),
        ),
        Outcome(
            name="flaky",
            says="500 twice for the same address, then accepted; then it begins anew.",
            status=500,
            accepted=False,
            failures_first=2,
        ),
        Outcome(
            name="server-error",
            aliases=("servererror", "server_error", "error"),
            says="500.",
            status=500,
            accepted=False,
        ),
        Outcome(name="unavailable", says="503.", status=503, accepted=False),
        Outcome(
            name="bad-gateway",
            says="502 with a page of HTML, as from a proxy in between.",
            status=502,
            accepted=False,
        ),
        Outcome(
            name="invalid",
            says="400: the address is not a valid one, for personalizations.0.to.0.email.",
            status=400,
            accepted=False,
        ),
        Outcome(
            name="too-large", says="413: the message is too large.", status=413, accepted=False
        ),
        Outcome(
            name="redirect",
            says="302 to another host. A client that follows it gives its key away.",
            status=302,
            accepted=False,
        ),
    ),
    ordinary="delivered",
)


def magic(address: str) -> str:
    """Return the outcome an address asks for: its local part up to a plus sign."""
    return address.partition("@")[0].partition("+")[0].lower()
