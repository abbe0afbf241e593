"""What can go wrong between us and a provider, and the codes that say so to people. Pure.

A channel raises one of these four; :func:`domain.retry.decide_retry` turns it into an outcome, and
nothing else does.
"""

from dataclasses import dataclass
from enum import StrEnum


class FailureCode(StrEnum):
    """Why a delivery failed or waits: one vocabulary over all providers."""

    # The provider may take it later.
    RATE_LIMITED = "rate_limited"
    RECIPIENT_RATE_LIMITED = "recipient_rate_limited"
    """The provider wants fewer messages to this one person; others may go."""
    PROVIDER_ERROR = "provider_error"
    CONNECTION_FAILED = "connection_failed"
    """No byte of the request left: refused, DNS, TLS, connect timeout."""

    # The provider may have taken it.
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"
    INTERNAL_ERROR = "internal_error"
    """A defect of this service."""
    WORKER_LOST = "worker_lost"
    """The worker stopped while it was sending."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """Nothing told us in time what had become of it, and the type says not to send it twice."""

    # It will not go like this.
    CHANNEL_UNAVAILABLE = "channel_unavailable"
    """Not the recipient's fault: no provider set up, credentials, quota, configuration."""
    INVALID_RECIPIENT = "invalid_recipient"
    NO_ADDRESS = "no_address"
    REJECTED = "rejected"
    """The provider refuses this message."""
    TOO_LARGE = "too_large"
    RENDER_FAILED = "render_failed"
    ATTACHMENT_UNAVAILABLE = "attachment_unavailable"
    """A file that was to go along could not be fetched from where the app keeps it."""
    WINDOW_CLOSED = "window_closed"
    """The person has not written on WhatsApp for a day, and the type has no approved template."""
    QUARANTINED = "quarantined"
    """Three workers took it and none came back."""

    # The provider reported it later.
    BOUNCED = "bounced"
    BLOCKED = "blocked"
    """The receiving server turned it away this time; the address may be good."""
    DROPPED = "dropped"
    """The provider took it and chose not to send it."""
    REPORTED_FAILED = "reported_failed"

    # It was not to be sent.
    SUPPRESSED = "suppressed"
    OPTED_OUT = "opted_out"
    QUIET_HOURS = "quiet_hours"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    NOT_NEEDED = "not_needed"
    """Another channel delivered it in time."""


RECEIPT_FAILURES = frozenset(
    {
        FailureCode.BOUNCED,
        FailureCode.BLOCKED,
        FailureCode.DROPPED,
        FailureCode.REPORTED_FAILED,
    }
)
"""Failures that came as a receipt: a late, lesser receipt does not undo them."""


class RecipientAction(StrEnum):
    """What an invalid recipient means for the address or device."""

    DEACTIVATE = "deactivate"
    """The device token is dead."""
    SUSPECT = "suspect"
    """Count it; three in a row deactivate."""
    SUPPRESS = "suppress"
    """Send nothing more to this address on this channel."""
    SUPPRESS_MARKETING = "suppress_marketing"
    """Send no more marketing to it: the person does not want any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResponse:
    """What a provider answered, as it is kept in the attempt's record."""

    status: int
    """HTTP status or SMTP reply code."""
    code: str | None = None
    """The provider's own code, if it gave one."""
    excerpt: str = ""
    """The beginning of the body, at most 1,000 characters, addresses removed."""


class ProviderError(Exception):
    """A provider did not accept a message. ``reason`` is for people and holds no address."""

    def __init__(
        self, reason: str, *, code: FailureCode, response: ProviderResponse | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.response = response


class TransientError(ProviderError):
    """It may work later. ``retry_after`` in seconds, if the provider said so.

    ``is_ambiguous``: bytes left and no answer came; the provider may have sent it.
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
    """The message will never go."""


class InvalidRecipientError(PermanentError):
    """Nor will any other to this address."""

    def __init__(
        self, reason: str, *, action: RecipientAction, response: ProviderResponse | None = None
    ) -> None:
        super().__init__(reason, code=FailureCode.INVALID_RECIPIENT, response=response)
        self.action = action


class ProviderUnavailableError(ProviderError):
    """Nothing goes through this provider now, whoever the recipient is.

    ``scope`` is the platform that this is limited to, if it is: Apple's keys may be wrong while
    Android is well.
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
