"""Provider errors and the failure codes of deliveries. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class FailureCode(StrEnum):
    """Why a delivery failed or is held: one vocabulary for all providers."""

    # Retryable: not accepted, but might be later.
    RATE_LIMITED = "rate_limited"
    RECIPIENT_RATE_LIMITED = "recipient_rate_limited"
    PROVIDER_ERROR = "provider_error"
    CONNECTION_FAILED = "connection_failed"
    """No byte of the request was sent: refused, DNS, TLS, or connect timeout."""

    # Ambiguous: the provider may have accepted the message.
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    INTERNAL_ERROR = "internal_error"
    """A defect of this service."""
    WORKER_LOST = "worker_lost"
    OUTCOME_UNKNOWN = "outcome_unknown"
    """No receipt arrived in time, and the type's policy forbids a retry."""

    # Held until an operator or the provider mends the cause.
    CHANNEL_UNAVAILABLE = "channel_unavailable"
    """Not specific to the recipient: no provider, credentials, quota, or configuration."""
    DECRYPTION_FAILED = "decryption_failed"
    """``FIELD_ENCRYPTION_KEYS`` lacks the key of the sensitive data."""

    # Final: a retry of the same message fails again.
    INVALID_RECIPIENT = "invalid_recipient"
    NO_ADDRESS = "no_address"
    REJECTED = "rejected"
    TOO_LARGE = "too_large"
    RENDER_FAILED = "render_failed"
    ATTACHMENT_UNAVAILABLE = "attachment_unavailable"
    WINDOW_CLOSED = "window_closed"
    """Outside the 24-hour WhatsApp window, and the type has no WhatsApp template."""
    QUARANTINED = "quarantined"
    """Claimed by three workers without an attempt: a poison message."""

    # Reported by a later receipt.
    BOUNCED = "bounced"
    BLOCKED = "blocked"
    """The receiving server rejected this message; the address may be valid."""
    DROPPED = "dropped"
    """The provider accepted the message, then dropped it."""
    REPORTED_FAILED = "reported_failed"

    # Ended without a send.
    SUPPRESSED = "suppressed"
    OPTED_OUT = "opted_out"
    QUIET_HOURS = "quiet_hours"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    NOT_NEEDED = "not_needed"
    """Another channel delivered in time."""


NO_DEVICE = "No device registered."
"""Reason of a push without an address: nothing failed, and a retry needs a device first."""
RECEIPT_FAILURES = frozenset(
    {FailureCode.BOUNCED, FailureCode.BLOCKED, FailureCode.DROPPED, FailureCode.REPORTED_FAILED}
)
"""Failures set by a receipt; a late receipt of a lesser status doesn't undo them."""


class RecipientAction(StrEnum):
    """The consequence of an invalid recipient for the address or device."""

    DEACTIVATE = "deactivate"
    SUSPECT = "suspect"
    """Count a soft bounce; three in a row deactivate the device or suppress the address."""
    SUPPRESS = "suppress"
    SUPPRESS_MARKETING = "suppress_marketing"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResponse:
    """A provider's response as stored with the attempt."""

    status: int
    """HTTP status or SMTP reply code."""
    code: str | None = None
    excerpt: str = ""
    """The first 1,000 characters of the body, with addresses removed."""


class ProviderError(Exception):
    """A provider did not accept a message. ``reason`` is human-readable and has no address."""

    def __init__(
        self, reason: str, *, code: FailureCode, response: ProviderResponse | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.response = response


class TransientError(ProviderError):
    """A failure that a retry may overcome. ``retry_after`` is the provider's, in seconds.

    ``is_ambiguous``: bytes were sent without an answer; the provider may have sent the message.
    """

    def __init__(
        self,
        reason: str,
        *,
        code: FailureCode,
        response: ProviderResponse | None = None,
        retry_after: float | None = None,
        is_ambiguous: bool = False,
    ) -> None:
        super().__init__(reason, code=code, response=response)
        self.retry_after = retry_after
        self.is_ambiguous = is_ambiguous


class PermanentError(ProviderError):
    """The provider rejected the message for good."""


class InvalidRecipientError(PermanentError):
    """The provider rejects every message to this address or device."""

    def __init__(
        self, reason: str, *, action: RecipientAction, response: ProviderResponse | None = None
    ) -> None:
        super().__init__(reason, code=FailureCode.INVALID_RECIPIENT, response=response)
        self.action = action


class ProviderUnavailableError(ProviderError):
    """The provider accepts nothing at present, whoever the recipient is.

    ``scope`` limits this to one platform: Apple's keys may be invalid while Android works.
    """

    def __init__(
        self,
        reason: str,
        *,
        response: ProviderResponse | None = None,
        retry_after: float | None = None,
        scope: str | None = None,
    ) -> None:
        super().__init__(reason, code=FailureCode.CHANNEL_UNAVAILABLE, response=response)
        self.retry_after = retry_after
        self.scope = scope
