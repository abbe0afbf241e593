"""SendGrid's magic recipients: the local part of an address chooses the outcome."""

from ...outcomes import Moment, Outcome, Outcomes, Step
from .. import spoiled

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
            name="ratelimit-once",
            says="The same 429 once for an address, then accepted; then it begins anew.",
            status=429,
            accepted=False,
            failures_first=1,
        ),
        Outcome(
            name="ratelimit-long",
            says="429 with Retry-After: 120.",
            status=429,
            accepted=False,
        ),
        Outcome(
            name="ratelimit-date",
            says="429 with Retry-After as a date, and no X-RateLimit-Reset.",
            status=429,
            accepted=False,
        ),
        Outcome(
            name="ratelimit-odd",
            says="429 with Retry-After: soon, which means nothing.",
            status=429,
            accepted=False,
        ),
        *spoiled.rows(202, steps=ORDINARY),
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
            says="500, until the address is let through.",
            status=500,
            accepted=False,
        ),
        Outcome(name="unavailable", says="503.", status=503, accepted=False),
        Outcome(
            name="huge",
            says="500 with a body of ten megabytes.",
            status=500,
            accepted=False,
        ),
        spoiled.BAD_GATEWAY,
        Outcome(
            name="invalid",
            says="400: the address is not a valid one, for personalizations.0.to.0.email.",
            status=400,
            accepted=False,
        ),
        Outcome(
            name="too-large", says="413: the message is too large.", status=413, accepted=False
        ),
        spoiled.REDIRECT,
    ),
    ordinary="delivered",
)


def magic(address: str) -> str:
    """Return the outcome an address asks for: its local part up to a plus sign."""
    return address.partition("@")[0].partition("+")[0].lower()
