"""Magic numbers of AWS SMS: the last six digits of a phone number choose the outcome.

The six digits are 900 and three more: +44 7700 900000 to 900999 belong to nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...outcomes import Outcome, Outcomes, Step, accepted, refused
from .. import network_faults

PENDING = Step("pending", is_early=True)
SUCCESSFUL = Step("successful", is_early=True)
DELIVERED = Step("delivered")
DEFAULT_STEPS = (PENDING, DELIVERED)
EMPTY, NOT_JSON = "empty", "not-json"
CONFLICT, VALIDATION = "ConflictException", "ValidationException"
QUOTA, DENIED = "ServiceQuotaExceededException", "AccessDeniedException"
MAGIC_PREFIX = "900"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmsProblem:
    """An error of the API: its name, its reason if it has one, and the member that it names."""

    name: str
    message: str
    reason: str = ""
    field: str = ""
    status: int = 400


PROBLEMS: Mapping[str, SmsProblem] = {
    "throttled": SmsProblem(name="ThrottlingException", message="Rate exceeded"),
    "throttled-once": SmsProblem(name="ThrottlingException", message="Rate exceeded"),
    "server-error": SmsProblem(
        name="InternalServerException", message="Internal error", status=500
    ),
    "flaky": SmsProblem(name="InternalServerException", message="Internal error", status=500),
    "unavailable": SmsProblem(
        name="ServiceUnavailableException", message="The service is unavailable", status=503
    ),
    "daily-limit": SmsProblem(
        name=QUOTA, message="Too many calls", reason="DAILY_DESTINATION_CALL_LIMIT"
    ),
    "spend-limit": SmsProblem(
        name=QUOTA, message="Spend limit reached", reason="MONTHLY_SPEND_LIMIT_REACHED_FOR_TEXT"
    ),
    "quota": SmsProblem(name=QUOTA, message="Too many pools", reason="POOLS_PER_ACCOUNT"),
    "disabled": SmsProblem(name=DENIED, message="Account disabled", reason="ACCOUNT_DISABLED"),
    "reputation": SmsProblem(
        name=DENIED, message="Low reputation", reason="INSUFFICIENT_ACCOUNT_REPUTATION"
    ),
    "opted-out": SmsProblem(
        name=CONFLICT,
        message="Destination phone number is opted out",
        reason="DESTINATION_PHONE_NUMBER_OPTED_OUT",
    ),
    "not-verified": SmsProblem(
        name=CONFLICT,
        message="Destination phone number isn't verified",
        reason="DESTINATION_PHONE_NUMBER_NOT_VERIFIED",
    ),
    "no-sender": SmsProblem(
        name=CONFLICT,
        message="No origination entities available",
        reason="NO_ORIGINATION_IDENTITIES_FOUND",
    ),
    "protected": SmsProblem(
        name=CONFLICT,
        message="Destination country is blocked",
        reason="DESTINATION_COUNTRY_BLOCKED_BY_PROTECT_CONFIGURATION",
    ),
    "protected-number": SmsProblem(
        name=CONFLICT,
        message="Destination phone number is blocked",
        reason="DESTINATION_PHONE_NUMBER_BLOCKED_BY_PROTECT_NUMBER_OVERRIDE",
    ),
    "wrong-type": SmsProblem(
        name=CONFLICT, message="Message types differ", reason="MESSAGE_TYPE_MISMATCH"
    ),
    "not-active": SmsProblem(
        name=CONFLICT, message="Resource isn't active", reason="RESOURCE_NOT_ACTIVE"
    ),
    "not-enabled": SmsProblem(
        name=VALIDATION, message="Country isn't enabled", reason="COUNTRY_NOT_ENABLED"
    ),
    "not-registered": SmsProblem(
        name=VALIDATION,
        message="Sender ID must be registered",
        reason="SENDER_ID_REQUIRES_REGISTRATION",
    ),
    "no-channel": SmsProblem(
        name=VALIDATION, message="Channel isn't enabled", reason="CHANNEL_NOT_ENABLED"
    ),
    "too-dear": SmsProblem(
        name=VALIDATION, message="Price is over MaxPrice", reason="PRICE_OVER_THRESHOLD"
    ),
    "too-long": SmsProblem(
        name=VALIDATION, message="Text is too long", reason="MAXIMUM_SIZE_EXCEEDED"
    ),
    "invalid-number": SmsProblem(
        name=VALIDATION,
        message="Invalid number",
        reason="FIELD_VALIDATION_FAILED",
        field="DestinationPhoneNumber",
    ),
    "invalid-sender": SmsProblem(
        name=VALIDATION,
        message="Invalid sender",
        reason="FIELD_VALIDATION_FAILED",
        field="OriginationIdentity",
    ),
    "invalid": SmsProblem(name=VALIDATION, message="Invalid request", reason="INVALID_REQUEST"),
    "unknown-error": SmsProblem(name="OddException", message="Something odd"),
}
"""The errors of refused outcomes."""
_INITIAL_FAILURES: Mapping[str, int] = {"throttled-once": 1, "flaky": 2}
FAILURES: Mapping[str, str] = {
    "unreachable": "the phone is off",
    "carrier-unreachable": "the carrier's network has an error",
    "invalid": "the carrier doesn't know the number",
    "invalid-message": "the carrier rejects the text",
    "blocked": "the phone or the carrier blocks the sender",
    "carrier-blocked": "the carrier blocks the text",
    "spam": "the carrier takes the text for spam",
    "protect-blocked": "the account's protect configuration blocks the country",
    "ttl-expired": "its time was over",
}
"""What ends accepted messages, by the kind of event."""
OUTCOME_BY_SUFFIX: Mapping[str, str] = {
    "001": "delivered",
    "003": "successful",
    "004": "no-events",
    "005": "unknown",
    "006": "disordered",
    "009": "retried",
    "010": "forged",
    "011": "other-topic",
    "012": "twice",
    "107": "daily-limit",
    "202": "spend-limit",
    "203": "quota",
    "205": "disabled",
    "206": "reputation",
    "211": "invalid-number",
    "212": "invalid-sender",
    "213": "invalid",
    "408": "not-enabled",
    "409": "protected",
    "410": "protected-number",
    "411": "not-registered",
    "412": "no-channel",
    "429": "throttled",
    "427": "throttled-once",
    "500": "server-error",
    "501": "flaky",
    "503": "unavailable",
    "606": "no-sender",
    "607": "wrong-type",
    "608": "not-verified",
    "610": "opted-out",
    "614": "too-dear",
    "617": "too-long",
    "703": "not-active",
    **{f"93{number}": f"failed-{kind}" for number, kind in enumerate(FAILURES)},
    "808": "timeout",
    "809": "timeout-lost",
    "810": "reset",
    "811": "truncated",
    "812": "dripping",
    "813": "slow",
    "814": EMPTY,
    "815": NOT_JSON,
    "817": "unknown-error",
    "502": "bad-gateway",
    "302": "redirect",
}


def _refusal(name: str) -> Outcome:
    found = PROBLEMS[name]
    reason = f", {found.reason}" if found.reason else ""
    times = {0: "", 1: ", once for a number, then accepted", 2: ", twice for a number"}
    failures = _INITIAL_FAILURES.get(name, 0)
    text = f"{found.status} with {found.name}{reason}{times[failures]}."
    return refused(name, found.status, text, initial_failures=failures)


OUTCOMES = Outcomes(
    (
        accepted(
            "delivered",
            "Accepted, pending, delivered. So is every number that is not in this table.",
            *DEFAULT_STEPS,
        ),
        accepted(
            "successful",
            "Accepted, pending, then successful as the last event: in some countries, AWS knows no "
            "more.",
            PENDING,
            SUCCESSFUL,
        ),
        accepted("no-events", "Accepted, and never an event: for tests that send them."),
        accepted("unknown", "Accepted, pending, then unknown.", PENDING, Step("unknown")),
        accepted(
            "disordered",
            "Accepted and delivered, but the events come repeatedly and in no order.",
            *(
                Step(kind, multiple=1 + number / 2)
                for number, kind in enumerate(("delivered", "pending", "delivered", "successful"))
            ),
        ),
        accepted(
            "retried",
            "Accepted, then unreachable for the carrier, which isn't final, then delivered.",
            Step("carrier-retries", is_early=True),
            DELIVERED,
        ),
        accepted(
            "forged",
            "Accepted and delivered; between both comes a failure that somebody else signed.",
            PENDING,
            Step("forged"),
            Step("delivered", multiple=2),
        ),
        accepted(
            "other-topic",
            "Accepted and delivered; between both comes a failure of another topic.",
            PENDING,
            Step("foreign"),
            Step("delivered", multiple=2),
        ),
        accepted(
            "twice",
            "Accepted, pending, delivered; AWS publishes the delivery twice, with two IDs of SNS.",
            PENDING,
            DELIVERED,
            Step("delivered", multiple=2),
        ),
        *(
            accepted(f"failed-{kind}", f"Accepted, pending, then {text}.", PENDING, Step(kind))
            for kind, text in FAILURES.items()
        ),
        *map(_refusal, PROBLEMS),
        *network_faults.fault_outcomes(200, *DEFAULT_STEPS),
        accepted(EMPTY, "Accepted, but the 200 is an empty object.", *DEFAULT_STEPS),
        accepted(NOT_JSON, "Accepted, but the 200 is a page of HTML.", *DEFAULT_STEPS),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="delivered",
)


def magic(number: str) -> str:
    """Return the name of the outcome that a phone number chooses; else an empty text."""
    return OUTCOME_BY_SUFFIX.get(number[-3:], "") if number[-6:-3] == MAGIC_PREFIX else ""


def magic_suffix(outcome: str) -> str:
    """Return the last six digits that choose an outcome."""
    return next(MAGIC_PREFIX + last for last, name in OUTCOME_BY_SUFFIX.items() if name == outcome)
