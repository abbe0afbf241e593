"""FCM's magic tokens: the beginning of a token or a topic chooses the outcome."""

from ...outcomes import Outcome, Outcomes
from .. import network_faults

EXPIRED_TOKEN = "expired-token"
NOT_JSON, NO_NAME, RETRY_AFTER = "not-json", "no-name", "retry-after"


def _refused(
    name: str, status: int, description: str, *aliases: str, initial_failures: int = 0
) -> Outcome:
    return Outcome(
        name=name,
        aliases=aliases,
        description=description,
        status=status,
        accepted=False,
        initial_failures=initial_failures,
    )


def _accepted(name: str, description: str) -> Outcome:
    return Outcome(name=name, description=description, status=200)


OUTCOMES = Outcomes(
    (
        _accepted("delivered", "Accepted. So is every token that is not in this table."),
        _refused("unregistered", 404, "404 UNREGISTERED: the app was removed from the device."),
        _refused(
            "wrong-sender", 403, "403 SENDER_ID_MISMATCH: the token belongs to another sender."
        ),
        _refused("invalid", 400, "400 INVALID_ARGUMENT for message.token: it is no token."),
        _refused("bad-field", 400, "400 INVALID_ARGUMENT for another field: message.android.ttl."),
        _refused("too-large", 400, "400 INVALID_ARGUMENT: the message is too large."),
        _refused("ratelimit", 429, "429 QUOTA_EXCEEDED with Retry-After in seconds."),
        _refused("ratelimit-date", 429, "The same 429 with Retry-After as a date."),
        _refused("ratelimit-bare", 429, "The same 429 without Retry-After."),
        _refused(
            "ratelimit-once",
            429,
            "The same 429 once for a token, then accepted; then it begins anew.",
            initial_failures=1,
        ),
        _refused("third-party-auth", 401, "401 THIRD_PARTY_AUTH_ERROR: APNs refuses the key."),
        _refused(
            EXPIRED_TOKEN,
            401,
            "401 ACCESS_TOKEN_EXPIRED: the access token ends with this request; with a new one "
            "the message is accepted.",
            initial_failures=1,
        ),
        _refused("unauthenticated", 401, "401 ACCESS_TOKEN_EXPIRED with any access token."),
        _refused("no-permission", 403, "403 that has nothing to do with the device: IAM denies."),
        _refused("wrong-project", 404, "404 that has nothing to do with the device: no project."),
        *network_faults.fault_outcomes(200, steps=()),
        _accepted(NOT_JSON, "Accepted, but the 200 is a page of HTML."),
        _accepted(NO_NAME, "Accepted, but the 200 is an empty object."),
        _accepted(RETRY_AFTER, "Accepted with a 200 that has a Retry-After."),
        _refused(
            "flaky",
            500,
            "500 twice for the same token, then accepted; then it begins anew.",
            initial_failures=2,
        ),
        _refused(
            "server-error",
            500,
            "500 INTERNAL, until the token is let through.",
            "servererror",
            "server_error",
            "error",
        ),
        _refused("unavailable", 503, "503 UNAVAILABLE."),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="delivered",
)
SEPARATORS = "-_:"
_LONGEST_FIRST = sorted(
    (name for row in OUTCOMES.table for name in (row.name, *row.aliases)), key=len, reverse=True
)


def magic(recipient: str) -> str:
    """Return the outcome that a token or a topic chooses: the longest name it begins with."""
    text = recipient.removeprefix("/topics/")
    for name in _LONGEST_FIRST:
        if text == name or (text.startswith(name) and text[len(name)] in SEPARATORS):
            return name
    return ""
