"""Meaning of each failure code, and advice for staff. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.errors import FailureCode

F = FailureCode


@dataclass(frozen=True, slots=True)
class Explanation:
    """The meaning of a failure code, and the next step."""

    meaning: str  # Phrase to follow a colon
    advice: str  # Imperative sentences
    needs_operator: bool = False  # The cause doesn't end by itself


_DUPLICATE = "The recipient might have it. A retry or resend might send a duplicate."
EXPLANATIONS: Mapping[FailureCode, Explanation] = {
    F.RATE_LIMITED: Explanation(
        "rate limited by the provider", "Retry when the provider's rate limit has passed."
    ),
    F.RECIPIENT_RATE_LIMITED: Explanation(
        "per-recipient rate limit", "Retry later: the provider limits messages to this recipient."
    ),
    F.PROVIDER_ERROR: Explanation(
        "provider error (5xx)", "Check the provider's status page, and retry when it has recovered."
    ),
    F.CONNECTION_FAILED: Explanation(
        "couldn't connect to the provider",
        "Check the network and the provider's status page, and then retry.",
    ),
    F.TIMEOUT: Explanation("no response after sending", _DUPLICATE),
    F.CONNECTION_LOST: Explanation("connection lost while sending", _DUPLICATE),
    F.INTERNAL_ERROR: Explanation(
        "internal error",
        "Search the worker's log for the notification ID before you retry.",
        needs_operator=True,
    ),
    F.WORKER_LOST: Explanation("worker stopped while sending", _DUPLICATE),
    F.OUTCOME_UNKNOWN: Explanation(
        "outcome unknown; policy forbids a retry",
        "Resend only if a duplicate is acceptable. The type's policy forbids an automatic retry.",
    ),
    F.CHANNEL_UNAVAILABLE: Explanation(
        "provider unavailable",
        "Check the provider's credentials, quota, pause, and circuit breaker, and then retry.",
        needs_operator=True,
    ),
    F.INVALID_RECIPIENT: Explanation(
        "address rejected by the provider",
        "Correct the address and resend. A retry fails the same way.",
    ),
    F.NO_ADDRESS: Explanation(
        "no address or device",
        "Enter the address and resend, or register a device.",
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
        "Correct the template or the template variables, and then retry.",
        needs_operator=True,
    ),
    F.DECRYPTION_FAILED: Explanation(
        "sensitive data can't be decrypted",
        "Restore the missing key in FIELD_ENCRYPTION_KEYS, and then retry.",
        needs_operator=True,
    ),
    F.ATTACHMENT_UNAVAILABLE: Explanation(
        "attachment download failed", "Check the attachment's URL and its server, and then retry."
    ),
    F.WINDOW_CLOSED: Explanation(
        "outside the 24-hour WhatsApp window",
        "Add an approved WhatsApp template to the type, or wait until the recipient writes.",
        needs_operator=True,
    ),
    F.QUARANTINED: Explanation(
        "quarantined: claimed by three workers and never sent",
        "Read the workers' logs before you retry: the message might crash another worker.",
        needs_operator=True,
    ),
    F.BOUNCED: Explanation(
        "hard bounce",
        "Correct the address and resend. If the address is right, lift its suppression and resend.",
    ),
    F.BLOCKED: Explanation(
        "blocked by the receiving server", "Resend once. The address might be valid."
    ),
    F.DROPPED: Explanation(
        "on the provider's suppression list",
        "Remove the address from the provider's suppression list, and then resend.",
    ),
    F.REPORTED_FAILED: Explanation(
        "reported as failed by the provider",
        "Read the provider response. Resend once if the cause is temporary.",
    ),
    F.SUPPRESSED: Explanation(
        "address suppressed", "Lift the suppression to send to this address again."
    ),
    F.OPTED_OUT: Explanation("opted out", "Respect the recipient's preference."),
    F.QUIET_HOURS: Explanation("expired during quiet hours", "Resend it if it is still relevant."),
    F.OVER_LIMIT: Explanation(
        "over a limit for the recipient", "Resend it if it is still relevant, or see Limits."
    ),
    F.IN_DIGEST: Explanation(
        "expired before its digest", "Resend it if it is still relevant, or see its type's digest."
    ),
    F.EXPIRED: Explanation(
        "expired before sending", "Resend it if it is still relevant: a resend gets a new expiry."
    ),
    F.NOT_NEEDED: Explanation("reached by an earlier step", "No action is needed."),
    F.CANCELLED: Explanation(
        "cancelled before sending", "Resend it if it was cancelled by mistake."
    ),
}
UNKNOWN_CODE = Explanation("unknown failure code", "Read the provider response.")


def explain(code: str | None) -> Explanation:
    """Return the explanation of a stored code. Codes that no longer exist share one."""
    try:
        return EXPLANATIONS[FailureCode(code or "")]
    except ValueError:
        return UNKNOWN_CODE
