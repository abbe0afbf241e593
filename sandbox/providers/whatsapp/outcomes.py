"""WhatsApp's magic numbers: the last six digits of a phone number choose the outcome.

The six digits are 900 and three more: Ofcom reserves +44 7700 900000 to 900999 for fiction. The
last three digits are those of the error code where possible.
"""

from collections.abc import Mapping

from ...outcomes import Outcome, Outcomes, Step, accepted, refused
from .. import network_faults
from .errors import KINDS

SENT = Step("sent", is_early=True)
DELIVERED = Step("delivered")
READ = Step("read", multiple=2)
DEFAULT_STEPS = (SENT, DELIVERED)
OUT_OF_ORDER_STEPS = tuple(
    Step(kind, multiple=1 + number / 2)
    for number, kind in enumerate(("read", "sent", "read", "delivered", "sent", "delivered"))
)
WINDOW_CLOSED, WINDOW_CLOSED_LATER, HELD = "window-closed", "window-closed-later", "held"
FOR_TEXTS = frozenset({WINDOW_CLOSED, WINDOW_CLOSED_LATER})
"""Outcomes of texts alone: a template has the default outcome."""
USER_NAME, ODD = "user-name", "odd-item"
UNKNOWN_REFUSAL = "unknown-403"
NO_CODE, UNKNOWN_CODE, EMPTY, NOT_JSON = "no-code", "unknown-code", "empty", "not-json"
FAILED = Step("failed")

_ERRORS: Mapping[str, tuple[int, str]] = {
    "undeliverable": (131026, "026"),
    WINDOW_CLOSED: (131047, "047"),
    "ratelimit": (130429, "429"),
    "ratelimit-400": (130429, "428"),
    "ratelimit-once": (130429, "427"),
    "pair-ratelimit": (131056, "056"),
    "account-ratelimit": (80007, "807"),
    "app-ratelimit": (4, "104"),
    "spam-ratelimit": (131048, "048"),
    "server-error": (131000, "500"),
    "flaky": (131000, "501"),
    "unavailable": (131016, "016"),
    "api-unknown": (1, "101"),
    "api-service": (2, "102"),
    "maintenance": (131057, "057"),
    "auth": (0, "100"),
    "capability": (3, "103"),
    "no-permission": (10, "110"),
    "number-deleted": (33, "033"),
    "missing-permission": (200, "200"),
    "policy": (368, "368"),
    "access-denied": (131005, "105"),
    "locked": (131031, "031"),
    "name-not-approved": (131037, "037"),
    "payment": (131042, "042"),
    "certificate": (131045, "045"),
    "not-registered": (133010, "310"),
    "same-number": (131021, "021"),
    "not-allowed": (131030, "030"),
    "opted-out": (131050, "050"),
    "not-delivered": (131049, "049"),
    "experiment": (130472, "472"),
    "country": (130497, "497"),
    "invalid": (131009, "009"),
    "missing": (131008, "008"),
    "unsupported": (131051, "051"),
}
"""Outcomes that are errors of the Cloud API: the code, and the last digits of a number."""
ERRORS: Mapping[str, int] = {name: code for name, (code, _) in _ERRORS.items()}

FAILURES: Mapping[str, int] = {
    "failed": 131026,
    "failed-at-once": 131026,
    "chosen-not": 131049,
    WINDOW_CLOSED_LATER: 131047,
}

_SPECIAL = {
    outcome.name: outcome
    for outcome in (
        refused("ratelimit", 429, "429 with 130429 and Retry-After."),
        refused("ratelimit-400", 400, "The same error as a 400 without Retry-After."),
        refused(
            "ratelimit-once",
            429,
            "The same 429 once for a number, then accepted; then from the start.",
            initial_failures=1,
        ),
        refused(
            WINDOW_CLOSED,
            400,
            "400 with 131047 unless it is a template: 24 hours have passed since they wrote.",
        ),
        refused(
            "flaky",
            500,
            "500 with 131000 twice for a number, then accepted; then from the start.",
            initial_failures=2,
        ),
        refused(
            "server-error",
            500,
            "500 with 131000, until the number is let through.",
            "servererror",
            "server_error",
            "error",
        ),
    )
}
MAGIC_PREFIX = "900"
OUTCOME_BY_SUFFIX: Mapping[str, str] = {
    "001": "delivered",
    "002": "read",
    "003": "sent",
    "004": "no-events",
    "005": "disordered",
    "006": "failed",
    "007": "failed-at-once",
    "149": "chosen-not",
    "147": WINDOW_CLOSED_LATER,
    "107": HELD,
    "190": "expired-token",
    "408": "timeout",
    "409": "timeout-lost",
    "410": "reset",
    "411": "truncated",
    "412": "dripping",
    "413": "slow",
    "414": "empty",
    "415": "not-json",
    "416": "no-code",
    "417": "unknown-code",
    "403": UNKNOWN_REFUSAL,
    "012": USER_NAME,
    "011": ODD,
    "502": "bad-gateway",
    "302": "redirect",
    **{suffix: name for name, (_, suffix) in _ERRORS.items()},
}


def _error(name: str, code: int) -> Outcome:
    kind = KINDS[code]
    description = f"{kind.status} with {code}: {kind.title}."
    return _SPECIAL.get(name) or refused(name, kind.status, description)


OUTCOMES = Outcomes(
    (
        accepted(
            "delivered",
            "Accepted, sent, delivered. So is every number that is not in this table.",
            *DEFAULT_STEPS,
        ),
        accepted("read", "Accepted, sent, delivered, read.", *DEFAULT_STEPS, READ),
        accepted("sent", "Accepted and sent, and never delivered: the phone is off.", SENT),
        accepted("no-events", "Accepted, and never a report: for tests that send them."),
        accepted(
            "disordered",
            "Accepted and read, but every report comes twice and in no order.",
            *OUT_OF_ORDER_STEPS,
        ),
        accepted("failed", "Accepted and sent, then failed with 131026.", SENT, FAILED),
        accepted("failed-at-once", "Accepted, then failed with 131026.", FAILED),
        accepted("chosen-not", "Accepted, then failed with 131049.", FAILED),
        accepted(
            WINDOW_CLOSED_LATER,
            "Accepted, then failed with 131047, unless it is a template.",
            FAILED,
        ),
        accepted(
            HELD,
            "Accepted; a template is held for a quality check, then sent and delivered.",
            *DEFAULT_STEPS,
        ),
        accepted(
            USER_NAME,
            "Accepted, sent, delivered; the receipts have the user ID in place of the number.",
            *DEFAULT_STEPS,
        ),
        accepted(
            ODD,
            "Accepted, sent, delivered; beside each receipt is one without a time.",
            *DEFAULT_STEPS,
        ),
        *(_error(name, code) for name, code in ERRORS.items()),
        refused(
            "expired-token", 401, "401 with 190 and subcode 463: the access token has expired."
        ),
        *network_faults.fault_outcomes(200, *DEFAULT_STEPS),
        accepted(EMPTY, "Accepted, but the 200 is an empty object.", *DEFAULT_STEPS),
        accepted(NOT_JSON, "Accepted, but the 200 is a page of HTML.", *DEFAULT_STEPS),
        refused(NO_CODE, 400, "400 with an error that has no code."),
        refused(UNKNOWN_CODE, 400, "400 with a code that nobody knows: 139999."),
        refused(UNKNOWN_REFUSAL, 403, "403 with a code that nobody knows: 139999."),
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
