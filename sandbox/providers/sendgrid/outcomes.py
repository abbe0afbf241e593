"""SendGrid's magic recipients: the local part of an address chooses the outcome."""

from functools import partial

from ...outcomes import Outcomes, Step, accepted, refused
from .. import network_faults

NO_ID = "no-id"
PROCESSED = Step("processed", is_early=True)
DELIVERED = Step("delivered")
DEFAULT_STEPS = (PROCESSED, DELIVERED)
_accepted = partial(accepted, status=202)

OUTCOMES = Outcomes(
    (
        _accepted(
            "delivered",
            "Accepted, processed, delivered. So is every address that is not in this table.",
            *DEFAULT_STEPS,
        ),
        _accepted(
            "bounce",
            "Accepted, then a hard bounce: 550 5.1.1, the mailbox does not exist.",
            PROCESSED,
            Step("bounce"),
        ),
        _accepted(
            "blocked",
            "Accepted, then a bounce of type blocked: the receiving server refused for now.",
            PROCESSED,
            Step("blocked"),
        ),
        _accepted(
            "soft-bounce",
            "Accepted, deferred three times, then delivered.",
            PROCESSED,
            *(Step("deferred", multiple=attempt) for attempt in (1, 2, 3)),
            Step("delivered", multiple=4),
        ),
        _accepted(
            "dropped",
            "Accepted, then dropped: the address is on SendGrid's own bounce list.",
            Step("dropped", is_early=True),
        ),
        _accepted(
            "dropped-quota",
            "Accepted, then dropped: the list exceeds the quota of the account's package.",
            Step("dropped-quota", is_early=True),
        ),
        _accepted(
            "dropped-complaint",
            "Accepted, then dropped: the recipient once reported spam.",
            Step("dropped-complaint", is_early=True),
        ),
        _accepted(
            "bounce-by-mail",
            "Accepted and delivered, then a bounce by mail: an event without any ID of ours.",
            *DEFAULT_STEPS,
            Step("bounce-by-mail", multiple=2),
        ),
        _accepted(
            "full",
            "Accepted, then a bounce: 552 5.2.2, the mailbox is full.",
            PROCESSED,
            Step("full"),
        ),
        _accepted(
            "refused-sender",
            "Accepted, then a bounce that is about the sending server: it is on a blocklist.",
            PROCESSED,
            Step("refused-sender"),
        ),
        _accepted(
            "beside-others",
            "Accepted and delivered; beside it come an event of another application and one that "
            "can't be read.",
            PROCESSED,
            Step("foreign"),
            Step("unreadable"),
            Step("delivered"),
        ),
        _accepted(
            "spam",
            "Accepted and delivered, then reported as spam.",
            *DEFAULT_STEPS,
            Step("spamreport", multiple=2),
        ),
        _accepted(
            "unsubscribed",
            "Accepted and delivered, then the recipient unsubscribes.",
            *DEFAULT_STEPS,
            Step("unsubscribe", multiple=2),
        ),
        _accepted(
            "no-events", "Accepted, and never an event: for tests that send the events themselves."
        ),
        refused(
            "ratelimit", 429, "429 with X-RateLimit-Reset and Retry-After a few seconds ahead."
        ),
        refused(
            "ratelimit-once",
            429,
            "The same 429 once for an address, then accepted; then from the start.",
            initial_failures=1,
        ),
        refused("ratelimit-long", 429, "429 with Retry-After: 120."),
        refused("ratelimit-date", 429, "429 with Retry-After as a date, and no X-RateLimit-Reset."),
        refused("ratelimit-odd", 429, "429 with Retry-After: soon, which means nothing."),
        *network_faults.fault_outcomes(202, *DEFAULT_STEPS),
        _accepted(NO_ID, "Accepted with a 202 that has no X-Message-Id.", *DEFAULT_STEPS),
        refused(
            "flaky",
            500,
            "500 twice for the same address, then accepted; then from the start.",
            initial_failures=2,
        ),
        refused(
            "server-error",
            500,
            "500, until the address is let through.",
            "servererror",
            "server_error",
            "error",
        ),
        refused("unavailable", 503, "503."),
        refused("huge", 500, "500 with a body of ten megabytes."),
        network_faults.BAD_GATEWAY,
        refused(
            "invalid",
            400,
            "400: the address is not a valid one, for personalizations.0.to.0.email.",
        ),
        refused(
            "unverified-sender", 403, "403: the sender isn't a verified Sender Identity, for from."
        ),
        refused("too-large", 413, "413: the message is too large."),
        network_faults.REDIRECT,
    ),
    default="delivered",
)
