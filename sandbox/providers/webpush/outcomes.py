"""Magic browsers: the beginning of a subscription's name chooses the outcome."""

from ...outcomes import Outcomes, accepted, refused
from .. import network_faults
from .answers import Kind

OUTCOMES = Outcomes(
    (
        accepted(
            "shown",
            "Accepted and shown. So is every name that is not in this table.",
            status=201,
        ),
        refused(Kind.GONE, 410, "410: the subscription has ended."),
        refused(Kind.NOT_FOUND, 404, "404: there never was such a subscription."),
        refused(
            Kind.MISMATCH,
            403,
            "The browser subscribed with another key, in the service's own words.",
        ),
        refused(Kind.UNAUTHORIZED, 403, "401 or 403: the signature is invalid."),
        refused(
            Kind.THROTTLE,
            429,
            "429 with Retry-After; Apple's and Microsoft's concern the browser alone.",
        ),
        refused(Kind.DROPPED, 500, "Microsoft's 201 that says dropped; a failure of the others."),
        refused(Kind.TOO_LARGE, 413, "413: the body is too large."),
        refused(Kind.SERVER_ERROR, 500, "500, until the name is let through."),
        refused(
            "flaky",
            500,
            "500 twice for the same name, then accepted; then from the start.",
            initial_failures=2,
        ),
        refused(Kind.UNAVAILABLE, 503, "503 with Retry-After."),
        *network_faults.fault_outcomes(201),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="shown",
)
_LONGEST_FIRST = sorted((row.name for row in OUTCOMES.table), key=len, reverse=True)


def magic(recipient: str) -> str:
    """Return the longest outcome name with which a subscription's name begins."""
    name = recipient.rpartition("/")[2]
    return next(
        (found for found in _LONGEST_FIRST if name == found or name.startswith(f"{found}-")), ""
    )
