"""FCM's magic tokens: the beginning of a token or a topic chooses the outcome."""

from ...outcomes import Outcomes, accepted, refused
from .. import network_faults

EXPIRED_TOKEN, RETRY_INFO = "expired-token", "ratelimit-info"
NOT_JSON, NO_NAME, RETRY_AFTER = "not-json", "no-name", "retry-after"
OUTCOMES = Outcomes(
    (
        accepted("delivered", "Accepted. So is every token that is not in this table."),
        refused("unregistered", 404, "404 UNREGISTERED: the app was removed from the device."),
        refused(
            "wrong-sender", 403, "403 SENDER_ID_MISMATCH: the token belongs to another sender."
        ),
        refused("invalid", 400, "400 INVALID_ARGUMENT for message.token: it is no token."),
        refused("bad-field", 400, "400 INVALID_ARGUMENT for another field: message.android.ttl."),
        refused("too-large", 400, "400 INVALID_ARGUMENT: the message is too large."),
        refused("ratelimit", 429, "429 QUOTA_EXCEEDED with Retry-After in seconds."),
        refused("ratelimit-date", 429, "The same 429 with Retry-After as a date."),
        refused(
            "ratelimit-bare",
            429,
            "429 QUOTA_EXCEEDED that has neither a time nor whose quota it is.",
        ),
        refused(RETRY_INFO, 429, "429 QUOTA_EXCEEDED with the time in the body: RetryInfo."),
        refused("ratelimit-device", 429, "429 QUOTA_EXCEEDED: the device got too many messages."),
        refused("ratelimit-topic", 429, "429 QUOTA_EXCEEDED: the topic got too many messages."),
        refused(
            "ratelimit-once",
            429,
            "The same 429 once for a token, then accepted; then from the start.",
            initial_failures=1,
        ),
        refused("third-party-auth", 401, "401 THIRD_PARTY_AUTH_ERROR: APNs refuses the key."),
        refused("bad-device-token", 400, "400 INVALID_ARGUMENT: APNs says BadDeviceToken."),
        refused("not-for-topic", 400, "400 INVALID_ARGUMENT: APNs says DeviceTokenNotForTopic."),
        refused("not-registered", 404, "404 NotRegistered without FCM's error code."),
        refused("forbidden", 403, "403 without a reason."),
        refused(
            EXPIRED_TOKEN,
            401,
            "401 ACCESS_TOKEN_EXPIRED: the access token ends with this request; with a new one "
            "the message is accepted.",
            initial_failures=1,
        ),
        refused("unauthenticated", 401, "401 ACCESS_TOKEN_EXPIRED with any access token."),
        refused("no-permission", 403, "403 that has nothing to do with the device: IAM denies."),
        refused("wrong-project", 404, "404 that has nothing to do with the device: no project."),
        *network_faults.fault_outcomes(200),
        accepted(NOT_JSON, "Accepted, but the 200 is a page of HTML."),
        accepted(NO_NAME, "Accepted, but the 200 is an empty object."),
        accepted(RETRY_AFTER, "Accepted with a 200 that has a Retry-After."),
        refused(
            "flaky",
            500,
            "500 twice for the same token, then accepted; then from the start.",
            initial_failures=2,
        ),
        refused(
            "server-error",
            500,
            "500 INTERNAL, until the token is let through.",
            "servererror",
            "server_error",
            "error",
        ),
        refused("unavailable", 503, "503 UNAVAILABLE."),
        refused("aborted", 409, "409 ABORTED: Google gave up the request."),
        refused("no-project", 404, "404 NOT_FOUND with a text about the project."),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="delivered",
)


def magic(recipient: str) -> str:
    """Return the longest outcome name with which a token or topic begins; else an empty text."""
    return OUTCOMES.start_of(recipient.removeprefix("/topics/"))
