"""Meaning of each failure code, and advice for staff. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import FailureCode

F = FailureCode
_DUPLICATE = "The recipient might have it. A retry or resend might send a duplicate."


class Step(StrEnum):
    """An action of staff that advice recommends. The values are the names of the actions."""

    RETRY = "retry"
    RESEND = "resend"
    CORRECT = "correct"
    LIFT = "lift"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The meaning of a failure code, and the next step."""

    meaning: str  # Phrase to follow a colon
    advice: str  # Imperative sentences
    needs_operator: bool = False  # The cause doesn't end by itself
    step: Step | None = None  # What the advice asks for, besides removing the cause


EXPLANATIONS: Mapping[FailureCode, Explanation] = {
    F.RATE_LIMITED: Explanation(
        "rate limited by the provider",
        "Retry when the provider's rate limit has passed.",
        step=Step.RETRY,
    ),
    F.RECIPIENT_RATE_LIMITED: Explanation(
        "per-recipient rate limit",
        "Retry later: the provider limits messages to this recipient.",
        step=Step.RETRY,
    ),
    F.PROVIDER_ERROR: Explanation(
        "provider error (5xx)",
        "Check the provider's status page, and retry when it has recovered.",
        step=Step.RETRY,
    ),
    F.CONNECTION_FAILED: Explanation(
        "couldn't connect to the provider",
        "Check the network and the provider's status page, and then retry.",
        step=Step.RETRY,
    ),
    F.ROOM_GONE: Explanation(
        "the room is gone",
        "Give the room its new target on the page Rooms, which enables it, and then retry.",
        needs_operator=True,
        step=Step.RETRY,
    ),
    F.TIMEOUT: Explanation("no response after sending", _DUPLICATE),
    F.CONNECTION_LOST: Explanation("connection lost while sending", _DUPLICATE),
    F.INTERNAL_ERROR: Explanation(
        "internal error",
        "Search the worker's log for the notification ID before you retry.",
        needs_operator=True,
        step=Step.RETRY,
    ),
    F.WORKER_LOST: Explanation("worker stopped while sending", _DUPLICATE),
    F.OUTCOME_UNKNOWN: Explanation(
        "outcome unknown; policy forbids a retry",
        "Resend only if a duplicate is acceptable. The type's policy forbids an automatic retry.",
        step=Step.RESEND,
    ),
    F.CHANNEL_UNAVAILABLE: Explanation(
        "provider unavailable",
        "Check the provider's credentials, quota, pause, and circuit breaker, and then retry.",
        needs_operator=True,
        step=Step.RETRY,
    ),
    F.INVALID_RECIPIENT: Explanation(
        "address rejected by the provider",
        "Correct the address and resend. A retry fails the same way.",
        step=Step.CORRECT,
    ),
    F.NO_ADDRESS: Explanation(
        "no address or device",
        "Enter the address and resend, or register a device.",
        step=Step.CORRECT,
    ),
    F.REJECTED: Explanation(
        "message rejected by the provider",
        "Read the provider response and remove the cause. Until then, a retry fails the same way.",
        needs_operator=True,
    ),
    F.TOO_LARGE: Explanation(
        "message too large", "Send a shorter message. A retry fails the same way."
    ),
    F.RENDER_FAILED: Explanation(
        "template error",
        "Correct the template or the template variables, and send a new one. A retry renders the "
        "same version with the same data.",
        needs_operator=True,
    ),
    F.DECRYPTION_FAILED: Explanation(
        "sensitive data can't be decrypted",
        "Restore the missing key in FIELD_ENCRYPTION_KEYS, and then retry.",
        needs_operator=True,
        step=Step.RETRY,
    ),
    F.ATTACHMENT_UNAVAILABLE: Explanation(
        "attachment download failed",
        "Check the attachment's URL and its server, and then retry.",
        step=Step.RETRY,
    ),
    F.WINDOW_CLOSED: Explanation(
        "outside the 24-hour WhatsApp window",
        "Add an approved WhatsApp template to the type, or wait until the recipient writes.",
        needs_operator=True,
    ),
    F.DESTINATION_DISABLED: Explanation(
        "country not enabled",
        "Enable the country in SMS_COUNTRIES and with the provider, and then resend.",
        needs_operator=True,
        step=Step.RESEND,
    ),
    F.FILTERED: Explanation(
        "filtered by the carrier or the provider",
        "Read the provider response, and change the text. A retry fails the same way.",
        needs_operator=True,
    ),
    F.SENDER_UNREGISTERED: Explanation(
        "sender not registered for the country",
        "Register the sender with the provider for this country, and then resend.",
        needs_operator=True,
        step=Step.RESEND,
    ),
    F.QUARANTINED: Explanation(
        "quarantined: claimed by three workers and never sent",
        "Read the workers' logs before you retry: the message might crash another worker.",
        needs_operator=True,
        step=Step.RETRY,
    ),
    F.BOUNCED: Explanation(
        "hard bounce",
        "Correct the address and resend. If the address is right, lift its suppression and resend.",
        step=Step.CORRECT,
    ),
    F.BLOCKED: Explanation(
        "blocked by the receiving server",
        "Resend once. The address might be valid.",
        step=Step.RESEND,
    ),
    F.DROPPED: Explanation(
        "on the provider's suppression list",
        "Remove the address from the provider's suppression list, and then resend.",
        step=Step.RESEND,
    ),
    F.REPORTED_FAILED: Explanation(
        "reported as failed by the provider",
        "Read the provider response. Resend once if the cause is temporary.",
        step=Step.RESEND,
    ),
    F.SUPPRESSED: Explanation(
        "address suppressed", "Lift the suppression to send to this address again.", step=Step.LIFT
    ),
    F.OPTED_OUT: Explanation("opted out", "Respect the recipient's preference."),
    F.QUIET_HOURS: Explanation(
        "expired during quiet hours", "Resend it if it is still relevant.", step=Step.RESEND
    ),
    F.OVER_LIMIT: Explanation(
        "over a limit for the recipient",
        "Resend it if it is still relevant, or see Limits.",
        step=Step.RESEND,
    ),
    F.OVER_DAILY_UNITS: Explanation(
        "over the client's daily parts of texts",
        "Resend it if it is still relevant, or raise the client's daily cap in the settings.",
        step=Step.RESEND,
    ),
    F.IN_DIGEST: Explanation(
        "expired before its digest",
        "Resend it if it is still relevant, or see its type's digest.",
        step=Step.RESEND,
    ),
    F.EXPIRED: Explanation(
        "expired before sending",
        "Resend it if it is still relevant: a resend gets a new expiry.",
        step=Step.RESEND,
    ),
    F.NOT_NEEDED: Explanation("reached by an earlier step", "No action is needed."),
    F.CANCELLED: Explanation(
        "cancelled before sending", "Resend it if it was cancelled by mistake.", step=Step.RESEND
    ),
}
UNKNOWN_CODE = Explanation("unknown failure code", "Read the provider response.")


def explain_cause(code: str | None, outage: str | None) -> Explanation:
    """Return the explanation of a cause of failures.

    ``outage`` says which outage held those that expired.
    """
    if code != F.EXPIRED:
        return explain(code)
    meaning = (outage or "Expired while held").rstrip(".")
    return Explanation(
        meaning[:1].lower() + meaning[1:],
        "If the outage isn't over, end it in Providers. Resend what is still relevant: a resend "
        "gets a new expiry.",
        needs_operator=True,
        step=Step.RESEND,
    )


def explain(code: str | None) -> Explanation:
    """Return the explanation of a stored code. Codes that no longer exist share one."""
    try:
        return EXPLANATIONS[FailureCode(code or "")]
    except ValueError:
        return UNKNOWN_CODE
