"""The token endpoint's outcomes, which only scripts choose, by the service account's address."""

from ...outcomes import Outcomes, accepted, refused
from .. import network_faults

SHORT_LIVED = "short-lived"
NO_TOKEN = "no-token"
DENIED = {
    "invalid-grant": ("invalid_grant", "Invalid JWT Signature."),
    "account-deleted": ("invalid_grant", "Invalid grant: account not found"),
}

OUTCOMES = Outcomes(
    (
        accepted(
            "granted",
            "An access token for an hour, if the assertion is in order.",
            aliases=("delivered",),
        ),
        accepted(SHORT_LIVED, "An access token that ends after five seconds."),
        accepted(NO_TOKEN, "200 with an empty object."),
        refused(
            "invalid-grant",
            400,
            "400 invalid_grant: the signature does not fit, as of a key that was deleted.",
        ),
        refused("account-deleted", 400, "400 invalid_grant: there is no such account."),
        refused("server-error", 500, "500 internal_failure."),
        refused("flaky", 500, "500 twice, then granted; then from the start.", initial_failures=2),
        refused("unavailable", 503, "503."),
        *network_faults.fault_outcomes(200),
        network_faults.BAD_GATEWAY,
    ),
    default="granted",
)
