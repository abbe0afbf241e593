"""Provider errors and the failure codes of deliveries. Pure."""

from dataclasses import dataclass
from enum import StrEnum

NO_DEVICE = "No device registered."
"""Reason of a suppressed push without a device. A retry needs a registered device."""
MUTED_BY_DEVICES = "Muted by device preferences."
"""Reason of a suppressed push that the preferences of the devices refuse."""


class FailureCode(StrEnum):
    """Why a delivery failed or is held. All providers share these codes."""

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

    # Held until an operator or the provider fixes the cause.
    CHANNEL_UNAVAILABLE = "channel_unavailable"
    """Not sent: no provider, bad credentials or configuration, or a used-up quota."""
    DECRYPTION_FAILED = "decryption_failed"
    """``FIELD_ENCRYPTION_KEYS`` lacks the key of the sensitive data."""

    # Final: a retry of the same message fails again.
    INVALID_RECIPIENT = "invalid_recipient"
    NO_ADDRESS = "no_address"
    REJECTED = "rejected"
    TOO_LARGE = "too_large"
    RENDER_FAILED = "render_failed"
    ATTACHMENT_UNAVAILABLE = "attachment_unavailable"
    ROOM_GONE = "room_gone"
    """The room was removed where it was, or is disabled here."""
    WINDOW_CLOSED = "window_closed"
    """Outside the 24-hour WhatsApp window, and the type has no WhatsApp template."""
    DESTINATION_DISABLED = "destination_disabled"
    """The recipient's country isn't enabled here or with the provider. The address may be valid."""
    QUARANTINED = "quarantined"
    """Claimed by three workers without an attempt: a poison message."""

    # Reported by a later receipt.
    BOUNCED = "bounced"
    BLOCKED = "blocked"
    """The receiving server rejected this message; the address may be valid."""
    DROPPED = "dropped"
    """The provider accepted the message, then dropped it."""
    FILTERED = "filtered"
    """A carrier or the provider rejected the content, before the send or after it."""
    SENDER_UNREGISTERED = "sender_unregistered"
    """The sender isn't registered for the recipient's country. Neither address nor message is the
    cause."""
    REPORTED_FAILED = "reported_failed"

    # Ended without a send.
    SUPPRESSED = "suppressed"
    OPTED_OUT = "opted_out"
    QUIET_HOURS = "quiet_hours"
    OVER_LIMIT = "over_limit"
    """The recipient has got as many messages as a limit allows."""
    OVER_DAILY_UNITS = "over_daily_units"
    """The client has used its parts of texts for the day."""
    IN_DIGEST = "in_digest"
    """The message waits for its digest."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    NOT_NEEDED = "not_needed"
    """Another channel delivered in time."""


UNREACHED = frozenset({FailureCode.NO_ADDRESS, FailureCode.SUPPRESSED, FailureCode.OPTED_OUT})
"""Codes of suppressed deliveries that a retry can send once the recipient can be reached."""
RECEIPT_FAILURES = frozenset(
    {
        FailureCode.BOUNCED,
        FailureCode.BLOCKED,
        FailureCode.DROPPED,
        FailureCode.DESTINATION_DISABLED,
        FailureCode.FILTERED,
        FailureCode.SENDER_UNREGISTERED,
        FailureCode.REPORTED_FAILED,
    }
)
"""Failures set by a receipt. A late receipt of a lesser status doesn't undo them."""


class RecipientAction(StrEnum):
    """What to do with an address or device that a provider rejected."""

    DEACTIVATE = "deactivate"
    SUSPECT = "suspect"
    """Count a soft bounce. Three in a row deactivate the device or suppress the address."""
    UNSUBSCRIBE = "unsubscribe"
    """The recipient opted out there: of marketing, or of everything, as on the whole channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResponse:
    """A provider's response, as stored with the attempt."""

    status: int
    """HTTP status or SMTP reply code."""
    code: str | None = None
    excerpt: str = ""
    """The first 1,000 characters of the body, with addresses removed."""


class Reach(StrEnum):
    """Whom a provider's refusal concerns."""

    RECIPIENT = "recipient"
    """This message or its recipient. Nobody else's message is affected."""
    UNCERTAIN = "uncertain"
    """The recipient or the whole account. It counts against the account once several recipients in
    a row were refused like this, without an acceptance in between."""
    ACCOUNT = "account"
    """Every message of the account, as with bad credentials, or of the error's scope."""


class ProviderError(Exception):
    """A provider did not accept a message. ``reason`` is text for people, without an address.

    ``scope`` limits the error to the recipients of one scope of the provider, such as a platform, a
    host, or a room: other recipients of the account are not affected.
    """

    def __init__(
        self,
        reason: str,
        *,
        code: FailureCode,
        response: ProviderResponse | None = None,
        reach: Reach = Reach.RECIPIENT,
        scope: str | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.response = response
        self.reach = reach
        self.scope = scope


class TransientError(ProviderError):
    """A failure that a retry may overcome, after ``retry_after`` seconds if the provider says so.

    ``is_ambiguous``: bytes were sent and no response arrived, so the message may have been sent.
    """

    def __init__(
        self,
        reason: str,
        *,
        code: FailureCode,
        response: ProviderResponse | None = None,
        retry_after: float | None = None,
        is_ambiguous: bool = False,
        reach: Reach = Reach.ACCOUNT,
        scope: str | None = None,
    ) -> None:
        super().__init__(reason, code=code, response=response, reach=reach, scope=scope)
        self.retry_after = retry_after
        self.is_ambiguous = is_ambiguous


class PermanentError(ProviderError):
    """The provider rejected the message for good."""


class InvalidRecipientError(PermanentError):
    """The provider rejects every message to this address or device."""

    def __init__(
        self,
        reason: str,
        *,
        action: RecipientAction,
        code: FailureCode = FailureCode.INVALID_RECIPIENT,
        response: ProviderResponse | None = None,
        reach: Reach = Reach.RECIPIENT,
    ) -> None:
        super().__init__(reason, code=code, response=response, reach=reach)
        self.action = action


class ProviderUnavailableError(ProviderError):
    """The provider accepts no messages at present: none at all, or perhaps none to this recipient.

    With a ``scope``, it accepts others, as when Apple's keys are invalid but Android works.
    """

    def __init__(
        self,
        reason: str,
        *,
        response: ProviderResponse | None = None,
        retry_after: float | None = None,
        scope: str | None = None,
        reach: Reach = Reach.ACCOUNT,
    ) -> None:
        code = FailureCode.CHANNEL_UNAVAILABLE
        super().__init__(reason, code=code, response=response, reach=reach, scope=scope)
        self.retry_after = retry_after
