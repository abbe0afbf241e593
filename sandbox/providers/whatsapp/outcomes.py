"""WhatsApp's magic numbers: the last six digits of a phone number choose the outcome.

They are 900 and three more, as in the numbers that Ofcom keeps free for plays and films:
+44 7700 900000 to 900999 belong to nobody. The three are those of the error's code where it has
some of its own.
"""

from collections.abc import Mapping

from ...outcomes import DelayUnit, Outcome, Outcomes, Step
from .. import spoiled
from .errors import KINDS

SENT = Step(kind="sent", unit=DelayUnit.PROCESSED)
DELIVERED = Step(kind="delivered")
READ = Step(kind="read", multiple=2)
DEFAULT_STEPS = (SENT, DELIVERED)
OUT_OF_ORDER_STEPS = tuple(
    Step(kind=kind, multiple=1 + number / 2)
    for number, kind in enumerate(("read", "sent", "read", "delivered", "sent", "delivered"))
)
"""Reports as they come on a bad day: each twice, the last one first."""

TEMPLATES_ACCEPTED, HELD_FOR_QUALITY = "templates pass", "held for quality"
NO_CODE, UNKNOWN_CODE, EMPTY, NOT_JSON = "no-code", "unknown-code", "empty", "not-json"
FAILED = Step(kind="failed")

ERRORS: Mapping[str, int] = {
    "undeliverable": 131026,
    "window-closed": 131047,
    "ratelimit": 130429,
    "ratelimit-400": 130429,
    "ratelimit-once": 130429,
    "pair-ratelimit": 131056,
    "account-ratelimit": 80007,
    "app-ratelimit": 4,
    "spam-ratelimit": 131048,
    "server-error": 131000,
    "flaky": 131000,
    "unavailable": 131016,
    "api-unknown": 1,
    "api-service": 2,
    "maintenance": 131057,
    "auth": 0,
    "capability": 3,
    "no-permission": 10,
    "number-deleted": 33,
    "missing-permission": 200,
    "policy": 368,
    "access-denied": 131005,
    "locked": 131031,
    "name-not-approved": 131037,
    "payment": 131042,
    "certificate": 131045,
    "not-registered": 133010,
    "same-number": 131021,
    "not-allowed": 131030,
    "opted-out": 131050,
    "not-delivered": 131049,
    "experiment": 130472,
    "invalid": 131009,
    "missing": 131008,
    "unsupported": 131051,
}
"""The code of each outcome that is one of the Cloud API's errors."""

FAILURES: Mapping[str, int] = {"failed": 131026, "failed-at-once": 131026, "chosen-not": 131049}
"""The code that a message is reported with that was accepted and then failed."""

_SPECIAL = {
    "ratelimit": Outcome(
        name="ratelimit",
        description="429 with 130429 and Retry-After.",
        status=429,
        accepted=False,
    ),
    "ratelimit-400": Outcome(
        name="ratelimit-400",
        description="The same error as a 400 without Retry-After.",
        status=400,
        accepted=False,
    ),
    "ratelimit-once": Outcome(
        name="ratelimit-once",
        description="The same 429 once for a number, then accepted; then it begins anew.",
        status=429,
        accepted=False,
        initial_failures=1,
    ),
    "window-closed": Outcome(
        name="window-closed",
        description="400 with 131047 unless it is a template: 24 hours have "
        "passed since they wrote.",
        status=400,
        accepted=False,
        traits=frozenset({TEMPLATES_ACCEPTED}),
    ),
    "flaky": Outcome(
        name="flaky",
        description="500 with 131000 twice for a number, then accepted; then it begins anew.",
        status=500,
        accepted=False,
        initial_failures=2,
    ),
    "server-error": Outcome(
        name="server-error",
        aliases=("servererror", "server_error", "error"),
        description="500 with 131000, until the number is let through.",
        status=500,
        accepted=False,
    ),
}


def _error(name: str, code: int) -> Outcome:
    kind = KINDS[code]
    return _SPECIAL.get(name) or Outcome(
        name=name,
        description=f"{kind.status} with {code}: {kind.title}.",
        status=kind.status,
        accepted=False,
    )


def _accepted(
    name: str, description: str, *steps: Step, traits: frozenset[str] = frozenset()
) -> Outcome:
    return Outcome(name=name, description=description, status=200, steps=steps, traits=traits)


OUTCOMES = Outcomes(
    (
        _accepted(
            "delivered",
            "Accepted, sent, delivered. So is every number that is not in this table.",
            *DEFAULT_STEPS,
        ),
        _accepted("read", "Accepted, sent, delivered, read.", *DEFAULT_STEPS, READ),
        _accepted("sent", "Accepted and sent, and never delivered: the phone is off.", SENT),
        _accepted("no-events", "Accepted, and never a report: for tests that send them."),
        _accepted(
            "disordered",
            "Accepted and read, but every report comes twice and in no order.",
            *OUT_OF_ORDER_STEPS,
        ),
        _accepted("failed", "Accepted and sent, then failed with 131026.", SENT, FAILED),
        _accepted("failed-at-once", "Accepted, then failed with 131026.", FAILED),
        _accepted("chosen-not", "Accepted, then failed with 131049.", FAILED),
        _accepted(
            "held",
            "Accepted; a template is held for a quality check, then sent and delivered.",
            *DEFAULT_STEPS,
            traits=frozenset({HELD_FOR_QUALITY}),
        ),
        *(_error(name, code) for name, code in ERRORS.items()),
        Outcome(
            name="expired-token",
            description="401 with 190 and subcode 463: the access token has expired.",
            status=401,
            accepted=False,
        ),
        *spoiled.fault_outcomes(200, steps=DEFAULT_STEPS),
        _accepted(EMPTY, "Accepted, but the 200 is an empty object.", *DEFAULT_STEPS),
        _accepted(NOT_JSON, "Accepted, but the 200 is a page of HTML.", *DEFAULT_STEPS),
        Outcome(
            name=NO_CODE,
            description="400 with an error that has no code.",
            status=400,
            accepted=False,
        ),
        Outcome(
            name=UNKNOWN_CODE,
            description="400 with a code that nobody knows: 139999.",
            status=400,
            accepted=False,
        ),
        spoiled.BAD_GATEWAY,
        spoiled.REDIRECT,
    ),
    default="delivered",
)

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
    "107": "held",
    "026": "undeliverable",
    "047": "window-closed",
    "429": "ratelimit",
    "428": "ratelimit-400",
    "427": "ratelimit-once",
    "056": "pair-ratelimit",
    "807": "account-ratelimit",
    "104": "app-ratelimit",
    "048": "spam-ratelimit",
    "500": "server-error",
    "501": "flaky",
    "016": "unavailable",
    "101": "api-unknown",
    "102": "api-service",
    "057": "maintenance",
    "100": "auth",
    "103": "capability",
    "110": "no-permission",
    "033": "number-deleted",
    "200": "missing-permission",
    "368": "policy",
    "105": "access-denied",
    "031": "locked",
    "037": "name-not-approved",
    "042": "payment",
    "045": "certificate",
    "310": "not-registered",
    "021": "same-number",
    "030": "not-allowed",
    "050": "opted-out",
    "049": "not-delivered",
    "472": "experiment",
    "009": "invalid",
    "008": "missing",
    "051": "unsupported",
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
    "502": "bad-gateway",
    "302": "redirect",
}
"""The last three digits, and the outcome they ask for."""


def magic(number: str) -> str:
    """Return the outcome a phone number asks for."""
    return OUTCOME_BY_SUFFIX.get(number[-3:], "") if number[-6:-3] == MAGIC_PREFIX else ""


def magic_suffix(outcome: str) -> str:
    """Return the last six digits that ask for an outcome."""
    return next(MAGIC_PREFIX + last for last, name in OUTCOME_BY_SUFFIX.items() if name == outcome)
