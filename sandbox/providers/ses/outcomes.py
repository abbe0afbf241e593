"""Magic recipients of SES: the local part of an address chooses the outcome."""

from collections.abc import Mapping

from ...outcomes import Outcomes, Step, accepted, refused
from .. import network_faults
from ..aws.signature import AwsProblem
from ..mailboxes import EMPTY, NOT_JSON

SENT = Step("send", is_early=True)
DELIVERED = Step("delivery")
DEFAULT_STEPS = (SENT, DELIVERED)
PROBLEMS: Mapping[str, AwsProblem] = {
    "ratelimit": AwsProblem(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
    "ratelimit-once": AwsProblem(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
    "throttled": AwsProblem(400, "ThrottlingException", "Rate exceeded"),
    "quota": AwsProblem(429, "TooManyRequestsException", "Daily message quota exceeded."),
    "limit": AwsProblem(400, "LimitExceededException", "Too many instances of the resource."),
    "suspended": AwsProblem(400, "AccountSuspendedException", "The account is suspended."),
    "paused": AwsProblem(400, "SendingPausedException", "Sending paused for this account."),
    "mail-from": AwsProblem(
        400, "MailFromDomainNotVerifiedException", "The MAIL FROM domain isn't verified."
    ),
    "no-set": AwsProblem(404, "NotFoundException", "Configuration set <gone> does not exist."),
    "not-verified": AwsProblem(
        400,
        "MessageRejected",
        "Email address is not verified. The following identities failed the check in region "
        "EU-WEST-1: ada@example.com",
    ),
    "shut": AwsProblem(400, "MessageRejected", "Sending suspended for this account."),
    "rejected": AwsProblem(400, "MessageRejected", "Transaction failed: unsupported file type"),
    "invalid": AwsProblem(400, "BadRequestException", "Domain contains illegal character"),
    "too-long": AwsProblem(
        400, "BadRequestException", "Message length is more than 41943040 bytes long: '41943041'."
    ),
    "too-large": AwsProblem(413, "RequestEntityTooLarge", "Request is too large."),
    "server-error": AwsProblem(500, "InternalFailure", "An internal error occurred."),
    "flaky": AwsProblem(500, "InternalFailure", "An internal error occurred."),
    "unavailable": AwsProblem(503, "ServiceUnavailable", "The service is unavailable."),
    "unknown-error": AwsProblem(400, "OddException", "Something odd."),
}
"""The errors of refused outcomes."""


OUTCOMES = Outcomes(
    (
        accepted(
            "delivered",
            "Accepted, sent, delivered. So is every address that is not in this table.",
            *DEFAULT_STEPS,
        ),
        accepted("bounce", "Accepted, then a permanent bounce: 550 5.1.1.", SENT, Step("bounce")),
        accepted(
            "suppressed",
            "Accepted, then a permanent bounce: the address is on the account's suppression list.",
            Step("suppressed"),
        ),
        accepted(
            "blocked",
            "Accepted, then a permanent bounce about the sending server: it is on a blocklist.",
            SENT,
            Step("blocked"),
        ),
        accepted(
            "transient",
            "Accepted, delayed, then a transient bounce: 450, after SES gave up.",
            SENT,
            Step("delay"),
            Step("transient", multiple=2),
        ),
        accepted(
            "full", "Accepted, then a transient bounce: the mailbox is full.", SENT, Step("full")
        ),
        accepted(
            "undetermined", "Accepted, then a bounce that says nothing.", Step("undetermined")
        ),
        accepted(
            "out-of-office",
            "Accepted and delivered, then a transient bounce, which is an automatic answer.",
            *DEFAULT_STEPS,
            Step("out-of-office", multiple=2),
        ),
        accepted(
            "delayed",
            "Accepted, delayed, then delivered.",
            SENT,
            Step("delay"),
            Step("delivery", multiple=2),
        ),
        accepted(
            "complaint",
            "Accepted and delivered, then reported as spam.",
            *DEFAULT_STEPS,
            Step("complaint", multiple=2),
        ),
        accepted(
            "not-spam",
            "Accepted and delivered, then taken out of the folder of spam.",
            *DEFAULT_STEPS,
            Step("not-spam", multiple=2),
        ),
        accepted("virus", "Accepted, then rejected: it has a virus.", Step("reject")),
        accepted(
            "twice",
            "Accepted, sent, delivered; SNS posts the delivery twice, with the same ID.",
            SENT,
            Step("delivery"),
            Step("delivery", multiple=2),
        ),
        accepted(
            "forged",
            "Accepted and delivered; between both comes a bounce that somebody else signed.",
            SENT,
            Step("forged-bounce"),
            Step("delivery", multiple=2),
        ),
        accepted(
            "other-topic",
            "Accepted and delivered; between both comes a bounce of another topic.",
            SENT,
            Step("foreign-bounce"),
            Step("delivery", multiple=2),
        ),
        accepted(
            "no-events", "Accepted, and never an event: for tests that send the events themselves."
        ),
        *(
            refused(
                name,
                PROBLEMS[name].status,
                f"{PROBLEMS[name].status} with {PROBLEMS[name].name}: {description}",
                initial_failures=failures,
            )
            for name, description, failures in (
                ("ratelimit", "the rate of the account.", 0),
                ("ratelimit-once", "once for an address, then accepted; then from the start.", 1),
                ("throttled", "the rate of requests.", 0),
                ("quota", "the daily quota of the account.", 0),
                ("limit", "another limit of the account.", 0),
                ("suspended", "the account is suspended.", 0),
                ("paused", "the account's sending is paused.", 0),
                ("mail-from", "the MAIL FROM domain isn't verified.", 0),
                ("no-set", "the configuration set doesn't exist.", 0),
                ("not-verified", "the account is in SES's sandbox.", 0),
                ("shut", "the account's sending is suspended.", 0),
                ("rejected", "the content.", 0),
                ("invalid", "the request.", 0),
                ("too-long", "the length of the message.", 0),
                ("too-large", "the size of the request.", 0),
                ("server-error", "until the address is let through.", 0),
                ("flaky", "twice for an address, then accepted; then from the start.", 2),
                ("unavailable", "SES is down.", 0),
                ("unknown-error", "an error that nobody knows.", 0),
            )
        ),
        *network_faults.fault_outcomes(200, *DEFAULT_STEPS),
        accepted(EMPTY, "Accepted with a 200 whose body is `{}`.", *DEFAULT_STEPS),
        accepted(NOT_JSON, "Accepted with a 200 whose body is a page of HTML.", *DEFAULT_STEPS),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="delivered",
)
