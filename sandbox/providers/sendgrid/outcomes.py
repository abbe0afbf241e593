"""SendGrid's magic recipients: the local part of an address chooses the outcome."""

from ...outcomes import DelayUnit, Outcome, Outcomes, Step
from .. import spoiled

NO_MESSAGE_ID = "no message id"
PROCESSED = Step(kind="processed", unit=DelayUnit.PROCESSED)
DELIVERED = Step(kind="delivered")
DEFAULT_STEPS = (PROCESSED, DELIVERED)

OUTCOMES = Outcomes(
    (
        Outcome(
            name="delivered",
            description="Accepted, processed, delivered. So is every address that is "
            "not in this table.",
            status=202,
            steps=DEFAULT_STEPS,
        ),
        Outcome(
            name="bounce",
            description="Accepted, then a hard bounce: 550 5.1.1, the mailbox does not exist.",
            status=202,
            steps=(PROCESSED, Step(kind="bounce")),
        ),
        Outcome(
            name="blocked",
            description="Accepted, then a bounce of type blocked: the receiving "
            "server refused for now.",
            status=202,
            steps=(PROCESSED, Step(kind="blocked")),
        ),
        Outcome(
            name="soft-bounce",
            description="Accepted, deferred three times, then delivered.",
            status=202,
            steps=(
                PROCESSED,
                *(Step(kind="deferred", multiple=attempt) for attempt in (1, 2, 3)),
                Step(kind="delivered", multiple=4),
            ),
        ),
        Outcome(
            name="dropped",
            description="Accepted, then dropped: the address is on SendGrid's own bounce list.",
            status=202,
            steps=(Step(kind="dropped", unit=DelayUnit.PROCESSED),),
        ),
        Outcome(
            name="spam",
            description="Accepted and delivered, then reported as spam.",
            status=202,
            steps=(*DEFAULT_STEPS, Step(kind="spamreport", multiple=2)),
        ),
        Outcome(
            name="unsubscribed",
            description="Accepted and delivered, then the recipient unsubscribes.",
            status=202,
            steps=(*DEFAULT_STEPS, Step(kind="unsubscribe", multiple=2)),
        ),
        Outcome(
            name="no-events",
            description="Accepted, and never an event: for tests that send the events themselves.",
            status=202,
        ),
        Outcome(
            name="ratelimit",
            description="429 with X-RateLimit-Reset and Retry-After a few seconds ahead.",
            status=429,
            accepted=False,
        ),
        Outcome(
            name="ratelimit-once",
            description="The same 429 once for an address, then accepted; then it begins anew.",
            status=429,
            accepted=False,
            initial_failures=1,
        ),
        Outcome(
            name="ratelimit-long",
            description="429 with Retry-After: 120.",
            status=429,
            accepted=False,
        ),
        Outcome(
            name="ratelimit-date",
            description="429 with Retry-After as a date, and no X-RateLimit-Reset.",
            status=429,
            accepted=False,
        ),
        Outcome(
            name="ratelimit-odd",
            description="429 with Retry-After: soon, which means nothing.",
            status=429,
            accepted=False,
        ),
        *spoiled.fault_outcomes(202, steps=DEFAULT_STEPS),
        Outcome(
            name="no-id",
            description="Accepted with a 202 that has no X-Message-Id.",
            status=202,
            steps=DEFAULT_STEPS,
            traits=frozenset({NO_MESSAGE_ID}),
        ),
        Outcome(
            name="flaky",
            description="500 twice for the same address, then accepted; then it begins anew.",
            status=500,
            accepted=False,
            initial_failures=2,
        ),
        Outcome(
            name="server-error",
            aliases=("servererror", "server_error", "error"),
            description="500, until the address is let through.",
            status=500,
            accepted=False,
        ),
        Outcome(name="unavailable", description="503.", status=503, accepted=False),
        Outcome(
            name="huge",
            description="500 with a body of ten megabytes.",
            status=500,
            accepted=False,
        ),
        spoiled.BAD_GATEWAY,
        Outcome(
            name="invalid",
            description="400: the address is not a valid one, for personalizations.0.to.0.email.",
            status=400,
            accepted=False,
        ),
        Outcome(
            name="too-large",
            description="413: the message is too large.",
            status=413,
            accepted=False,
        ),
        spoiled.REDIRECT,
    ),
    default="delivered",
)


def magic(address: str) -> str:
    """Return the outcome an address asks for: its local part up to a plus sign."""
    return address.partition("@")[0].partition("+")[0].lower()
