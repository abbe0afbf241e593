"""What the token endpoint may be told to do; the service account's address is the match."""

from ...outcomes import Outcome, Outcomes
from .. import spoiled

SHORT_LIVED = "short-lived"
NO_TOKEN = "no-token"
DENIED = {
    "invalid-grant": ("invalid_grant", "Invalid JWT Signature."),
    "account-deleted": ("invalid_grant", "Invalid grant: account not found"),
}
"""Refusals as of a key that was deleted, or an account: error, description."""

OUTCOMES = Outcomes(
    (
        Outcome(
            name="granted",
            aliases=("delivered",),
            description="An access token for an hour, if the assertion is in order.",
            status=200,
        ),
        Outcome(
            name=SHORT_LIVED,
            description="An access token that ends after five seconds.",
            status=200,
        ),
        Outcome(name=NO_TOKEN, description="200 with an empty object.", status=200),
        Outcome(
            name="invalid-grant",
            description="400 invalid_grant: the signature does not fit, as of a key "
            "that was deleted.",
            status=400,
            accepted=False,
        ),
        Outcome(
            name="account-deleted",
            description="400 invalid_grant: there is no such account.",
            status=400,
            accepted=False,
        ),
        Outcome(
            name="server-error",
            description="500 internal_failure.",
            status=500,
            accepted=False,
        ),
        Outcome(
            name="flaky",
            description="500 twice, then granted; then it begins anew.",
            status=500,
            accepted=False,
            initial_failures=2,
        ),
        Outcome(name="unavailable", description="503.", status=503, accepted=False),
        *spoiled.fault_outcomes(200, steps=()),
        spoiled.BAD_GATEWAY,
    ),
    default="granted",
)
