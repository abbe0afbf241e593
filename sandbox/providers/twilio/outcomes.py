"""Twilio's magic numbers: the last six digits of a phone number choose the outcome.

The six digits are 900 and three more, which resemble those of the error code: +44 7700 900000 to
900999 belong to nobody.
"""

from collections.abc import Mapping

from ...outcomes import Outcome, Outcomes, Step, accepted, refused
from .. import network_faults
from .errors import FAILURES, KINDS

SENT = Step("sent", is_early=True)
DELIVERED = Step("delivered")
FAILED = Step("failed")
DEFAULT_STEPS = (SENT, DELIVERED)
OUT_OF_ORDER_STEPS = tuple(
    Step(kind, multiple=1 + number / 2)
    for number, kind in enumerate(("delivered", "sent", "delivered", "queued", "sent"))
)
PUMPING, RATE_LIMIT = "pumping", "ratelimit"
EMPTY, NOT_JSON, ERROR_IN_200 = "empty", "not-json", "error-in-200"
NO_CODE, UNKNOWN_CODE = "no-code", "unknown-code"
SERVER_ERROR_CODE, RATE_LIMIT_CODE, PUMPING_CODE = 20500, 20429, 30450
MESSAGE_CODES = range(21_000, 22_000)

_REQUEST_SUFFIXES: Mapping[int, str] = {
    14107: "107",
    20003: "401",
    20005: "205",
    20403: "403",
    20404: "404",
    20426: "426",
    20503: "503",
    **{code: f"{code % 1000}" for code in KINDS if code in MESSAGE_CODES},
    30610: "310",
    30640: "340",
    90007: "007",
}
_RECEIPT_SUFFIXES: Mapping[int, str] = {
    **{code: f"9{code % 100:02}" for code in FAILURES},
    21408: "948",
    21610: "961",
    30003: "933",
    30005: "935",
    30007: "937",
    30033: "983",
    30035: "985",
}
ERRORS: Mapping[str, int] = {
    **{f"refused-{code}": code for code in _REQUEST_SUFFIXES},
    RATE_LIMIT: RATE_LIMIT_CODE,
    "ratelimit-once": RATE_LIMIT_CODE,
    "server-error": SERVER_ERROR_CODE,
    "flaky": SERVER_ERROR_CODE,
}
"""The outcomes that are errors of a request, and their codes."""
FAILURE_CODES: Mapping[str, int] = {
    f"failed-{code}": code for code in FAILURES if code != PUMPING_CODE
} | {PUMPING: PUMPING_CODE}
"""The outcomes of accepted messages that fail, and their codes."""
MAGIC_PREFIX = "900"
OUTCOME_BY_SUFFIX: Mapping[str, str] = {
    "001": "delivered",
    "003": "sent",
    "004": "no-events",
    "006": "disordered",
    "008": "odd-status",
    **{suffix: f"refused-{code}" for code, suffix in _REQUEST_SUFFIXES.items()},
    "429": RATE_LIMIT,
    "427": "ratelimit-once",
    "500": "server-error",
    "501": "flaky",
    **{_RECEIPT_SUFFIXES[code]: name for name, code in FAILURE_CODES.items()},
    "808": "timeout",
    "809": "timeout-lost",
    "810": "reset",
    "811": "truncated",
    "812": "dripping",
    "813": "slow",
    "814": EMPTY,
    "815": NOT_JSON,
    "816": NO_CODE,
    "817": UNKNOWN_CODE,
    "818": ERROR_IN_200,
    "502": "bad-gateway",
    "302": "redirect",
}


def _refusal(code: int) -> Outcome:
    text = KINDS[code].text.format(to="the number").rstrip(".")
    return refused(
        f"refused-{code}", KINDS[code].status, f"{KINDS[code].status} with {code}: {text}."
    )


def _failure(code: int) -> Outcome:
    found = FAILURES[code]
    text = f"Accepted and sent, then {found.status} with {code}: {found.text}."
    return accepted(f"failed-{code}", text, SENT, FAILED, status=201)


OUTCOMES = Outcomes(
    (
        accepted(
            "delivered",
            "Accepted, sent, delivered. So is every number that is not in this table.",
            *DEFAULT_STEPS,
            status=201,
        ),
        accepted(
            "sent", "Accepted and sent, and no more: the carrier reports nothing.", SENT, status=201
        ),
        accepted(
            "no-events", "Accepted, and never a callback: for tests that send them.", status=201
        ),
        accepted(
            "disordered",
            "Accepted and delivered, but the callbacks come repeatedly and in no order.",
            *OUT_OF_ORDER_STEPS,
            status=201,
        ),
        accepted(
            "odd-status",
            "Accepted, then a callback with a status that nobody knows, then delivered.",
            Step("teleported", is_early=True),
            DELIVERED,
            status=201,
        ),
        *(_failure(code) for code in FAILURES if code != PUMPING_CODE),
        accepted(
            PUMPING,
            "Accepted, then failed with 30450 for a minute from the first message; then delivered.",
            *DEFAULT_STEPS,
            status=201,
        ),
        *(_refusal(code) for code in _REQUEST_SUFFIXES),
        refused(RATE_LIMIT, 429, "429 with 20429, without Retry-After."),
        refused(
            "ratelimit-once",
            429,
            "The same 429 once for a number, then accepted; then from the start.",
            initial_failures=1,
        ),
        refused(
            "server-error",
            500,
            "500 with 20500, until the number is let through.",
            "servererror",
            "server_error",
            "error",
        ),
        refused(
            "flaky",
            500,
            "500 with 20500 twice for a number, then accepted; then from the start.",
            initial_failures=2,
        ),
        *network_faults.fault_outcomes(201, *DEFAULT_STEPS),
        accepted(EMPTY, "Accepted, but the 201 is an empty object.", *DEFAULT_STEPS, status=201),
        accepted(NOT_JSON, "Accepted, but the 201 is a page of HTML.", *DEFAULT_STEPS, status=201),
        refused(NO_CODE, 400, "400 with an object that has no code."),
        refused(UNKNOWN_CODE, 400, "400 with a code that nobody knows: 29999."),
        refused(ERROR_IN_200, 200, "200 with the error 21211 in place of a message."),
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
