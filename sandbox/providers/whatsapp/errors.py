"""The Cloud API's errors: the title and the usual HTTP status of each code."""

from collections.abc import Mapping
from dataclasses import dataclass

HELP = "https://developers.facebook.com/docs/whatsapp/cloud-api/support/error-codes/"


@dataclass(frozen=True, slots=True)
class Kind:
    """The meaning of an error code."""

    title: str
    details: str
    status: int = 400


KINDS: Mapping[int, Kind] = {
    0: Kind("AuthException", "The app user could not be authenticated.", status=401),
    1: Kind("API Unknown", "Invalid request or possible server error."),
    2: Kind("API Service", "Temporary due to downtime or due to being overloaded.", status=503),
    3: Kind("API Method", "Capability or permissions issue.", status=500),
    4: Kind("API Too Many Calls", "The app has reached its API call rate limit."),
    10: Kind(
        "Application does not have permission for this action",
        "Permission is either not granted or has been removed.",
        status=403,
    ),
    33: Kind("Parameter value is not valid", "The business phone number has been deleted."),
    100: Kind("Invalid parameter", "The request has unsupported or misspelled parameters."),
    200: Kind(
        "API Permission", "Permission is either not granted or has been removed.", status=403
    ),
    368: Kind(
        "Temporarily blocked for policies violations",
        "The account has been restricted or disabled for violating a platform policy.",
        status=403,
    ),
    80007: Kind("Rate limit issues", "The account has reached its rate limit."),
    130429: Kind("Rate limit hit", "Cloud API message throughput has been reached.", status=429),
    130497: Kind(
        "Business account is restricted from messaging users in this country.",
        "The account is restricted from messaging users in certain countries.",
        status=403,
    ),
    130472: Kind(
        "User's number is part of an experiment", "Message was not sent as part of an experiment."
    ),
    131000: Kind(
        "Something went wrong", "Message failed to send due to an unknown error.", status=500
    ),
    131005: Kind(
        "Access denied", "Permission is either not granted or has been removed.", status=403
    ),
    131008: Kind("Required parameter is missing", "A required parameter is missing."),
    131009: Kind("Parameter value is not valid", "A parameter value is not valid."),
    131016: Kind("Service unavailable", "A service is temporarily unavailable.", status=500),
    131021: Kind("Recipient cannot be sender", "Sender and recipient phone number is the same."),
    131026: Kind("Message undeliverable", "Message Undeliverable."),
    131030: Kind(
        "Recipient phone number not in allowed list",
        "Add the recipient phone number to the recipient list and try again.",
    ),
    131031: Kind(
        "Account has been locked", "The account has been restricted or disabled.", status=403
    ),
    131037: Kind(
        "Display name approval is needed",
        "The phone number needs display name approval before messages can be sent.",
    ),
    131042: Kind(
        "Business eligibility payment issue", "There was an error related to your payment method."
    ),
    131044: Kind(
        "Business payment issue", "There were one or more errors related to your payment method."
    ),
    131045: Kind(
        "Incorrect certificate",
        "Message failed to send due to a phone number registration error.",
        status=500,
    ),
    131047: Kind(
        "Re-engagement message",
        "Message failed to send because more than 24 hours have passed since the customer last "
        "replied to this number.",
    ),
    131048: Kind(
        "Spam rate limit hit",
        "There are restrictions on how many messages can be sent from this phone number.",
    ),
    131049: Kind(
        "Meta chose not to deliver",
        "This message was not delivered to maintain healthy ecosystem engagement.",
    ),
    131050: Kind(
        "User has stopped marketing messages",
        "The recipient has chosen to stop receiving marketing messages on WhatsApp from your "
        "business.",
    ),
    131051: Kind("Unsupported message type", "Message type is not currently supported."),
    131052: Kind("Media download error", "The media could not be downloaded."),
    131053: Kind("Media upload error", "The media of the message could not be uploaded."),
    131056: Kind(
        "(Business Account, Consumer Account) pair rate limit hit",
        "Too many messages sent from the sender phone number to the same recipient phone number "
        "in a short period of time.",
    ),
    131057: Kind("Account in maintenance mode", "The account is in maintenance mode.", status=500),
    131063: Kind(
        "Marketing templates disabled for Cloud API",
        "To send this template, use the Marketing Messages API for WhatsApp.",
    ),
    131064: Kind(
        "Messaging limit reached",
        "This account has reached its messaging limit due to template classification violations.",
        status=403,
    ),
    132000: Kind(
        "Number of parameters does not match the expected number of params",
        "The number of parameters does not match the template.",
    ),
    132001: Kind(
        "Template name does not exist in the translation",
        "The template does not exist in the specified language or has not been approved.",
        status=404,
    ),
    132005: Kind("Template Hydrated Text Too Long", "The translated text is too long."),
    132012: Kind(
        "Parameter format does not match format in the created template",
        "Variable parameter values formatted incorrectly.",
    ),
    132015: Kind("Template is Paused", "The template is paused due to low quality."),
    132016: Kind("Template is Disabled", "The template was paused too many times."),
    133010: Kind(
        "Phone number Not Registered",
        "Phone number not registered on the WhatsApp Business Platform.",
    ),
    135000: Kind("Generic user error", "Message failed to send because of an unknown error."),
    137000: Kind(
        "Recipient identity key hash mismatch",
        "The recipient's identity key hash does not match the one on record.",
    ),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of a message: a code of ``KINDS``, and details other than the usual ones."""

    code: int
    details: str | None = None

    @property
    def kind(self) -> Kind:
        """The title, usual details, and status of the code."""
        return KINDS[self.code]
