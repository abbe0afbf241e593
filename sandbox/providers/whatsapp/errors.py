"""The Cloud API's errors: the title and the usual HTTP status of each code."""

from collections.abc import Mapping
from dataclasses import dataclass

HELP = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"


@dataclass(frozen=True, slots=True)
class Kind:
    """The meaning of an error code."""

    status: int
    title: str
    details: str


KINDS: Mapping[int, Kind] = {
    0: Kind(401, "AuthException", "The app user could not be authenticated."),
    1: Kind(400, "API Unknown", "Invalid request or possible server error."),
    2: Kind(503, "API Service", "Temporary due to downtime or due to being overloaded."),
    3: Kind(500, "API Method", "Capability or permissions issue."),
    4: Kind(400, "API Too Many Calls", "The app has reached its API call rate limit."),
    10: Kind(
        403,
        "Application does not have permission for this action",
        "Permission is either not granted or has been removed.",
    ),
    33: Kind(400, "Parameter value is not valid", "The business phone number has been deleted."),
    100: Kind(400, "Invalid parameter", "The request has unsupported or misspelled parameters."),
    200: Kind(403, "API Permission", "Permission is either not granted or has been removed."),
    368: Kind(
        403,
        "Temporarily blocked for policies violations",
        "The account has been restricted or disabled for violating a platform policy.",
    ),
    80007: Kind(400, "Rate limit issues", "The account has reached its rate limit."),
    130429: Kind(429, "Rate limit hit", "Cloud API message throughput has been reached."),
    130472: Kind(
        400,
        "User's number is part of an experiment",
        "Message was not sent as part of an experiment.",
    ),
    131000: Kind(500, "Something went wrong", "Message failed to send due to an unknown error."),
    131005: Kind(403, "Access denied", "Permission is either not granted or has been removed."),
    131008: Kind(400, "Required parameter is missing", "A required parameter is missing."),
    131009: Kind(400, "Parameter value is not valid", "A parameter value is not valid."),
    131016: Kind(500, "Service unavailable", "A service is temporarily unavailable."),
    131021: Kind(
        400, "Recipient cannot be sender", "Sender and recipient phone number is the same."
    ),
    131026: Kind(400, "Message undeliverable", "Message Undeliverable."),
    131030: Kind(
        400,
        "Recipient phone number not in allowed list",
        "Add the recipient phone number to the recipient list and try again.",
    ),
    131031: Kind(403, "Account has been locked", "The account has been restricted or disabled."),
    131037: Kind(
        400,
        "Display name approval is needed",
        "The phone number needs display name approval before messages can be sent.",
    ),
    131042: Kind(
        400,
        "Business eligibility payment issue",
        "There was an error related to your payment method.",
    ),
    131045: Kind(
        500,
        "Incorrect certificate",
        "Message failed to send due to a phone number registration error.",
    ),
    131047: Kind(
        400,
        "Re-engagement message",
        "Message failed to send because more than 24 hours have passed since the customer last "
        "replied to this number.",
    ),
    131048: Kind(
        400,
        "Spam rate limit hit",
        "There are restrictions on how many messages can be sent from this phone number.",
    ),
    131049: Kind(
        400,
        "Meta chose not to deliver",
        "This message was not delivered to maintain healthy ecosystem engagement.",
    ),
    131050: Kind(
        400,
        "User has stopped marketing messages",
        "The recipient has chosen to stop receiving marketing messages on WhatsApp from your "
        "business.",
    ),
    131051: Kind(400, "Unsupported message type", "Message type is not currently supported."),
    131052: Kind(400, "Media download error", "The media could not be downloaded."),
    131053: Kind(400, "Media upload error", "The media of the message could not be uploaded."),
    131056: Kind(
        400,
        "(Business Account, Consumer Account) pair rate limit hit",
        "Too many messages sent from the sender phone number to the same recipient phone number "
        "in a short period of time.",
    ),
    131057: Kind(500, "Account in maintenance mode", "The account is in maintenance mode."),
    132000: Kind(
        400,
        "Number of parameters does not match the expected number of params",
        "The number of parameters does not match the template.",
    ),
    132001: Kind(
        404,
        "Template name does not exist in the translation",
        "The template does not exist in the specified language or has not been approved.",
    ),
    132005: Kind(400, "Template Hydrated Text Too Long", "The translated text is too long."),
    132012: Kind(
        400,
        "Parameter format does not match format in the created template",
        "Variable parameter values formatted incorrectly.",
    ),
    132015: Kind(400, "Template is Paused", "The template is paused due to low quality."),
    132016: Kind(400, "Template is Disabled", "The template was paused too many times."),
    133010: Kind(
        400,
        "Phone number Not Registered",
        "Phone number not registered on the WhatsApp Business Platform.",
    ),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """An error with the details of one request."""

    code: int
    details: str | None = None

    @property
    def kind(self) -> Kind:
        """The meaning of its code."""
        return KINDS[self.code]
