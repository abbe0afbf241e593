"""Assesses the resend risk of one delivery from facts. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import OPEN, SUCCEEDED, DeliveryStatus

F = FailureCode
_MAY_DUPLICATE_REASON = "The provider may have accepted it: might be a duplicate."
_ADDRESS_FAILURES = frozenset(
    {F.BOUNCED, F.INVALID_RECIPIENT, F.NO_ADDRESS, F.DROPPED, F.SUPPRESSED, F.OPTED_OUT}
)
"""Failures of an address, which say nothing about another one."""


class RiskKind(StrEnum):
    """What a resend of a delivery would do."""

    SAFE = "safe"  # The recipient doesn't have it, and nothing known prevents delivery
    WILL_FAIL_AGAIN = "will_fail_again"  # The cause of the failure persists
    MAY_DUPLICATE = "may_duplicate"  # The recipient may already have it
    EXPIRED = "expired"  # It expired; it may no longer matter
    SUPPRESSED = "suppressed"  # The recipient opted out, or the address is suppressed


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFacts:
    """The current facts about one delivery. With the defaults, a resend is safe."""

    channel: Channel
    status: DeliveryStatus
    code: str | None = None  # The stored failure code, or an obsolete one
    failure_reason: str | None = None  # The stored text, which says how a plan reached them
    may_be_delivered: bool = False  # An attempt's outcome is unknown, or a device has it
    is_expired: bool = False
    is_erased: bool = False
    is_deleted: bool = False
    """The client deleted the notification, and staff haven't restored it."""
    is_sensitive_data_destroyed: bool = False
    is_content_removed: bool = False
    suppression_reason: str | None = None  # What blocks its category, as a sentence
    is_resent: bool = False
    """Another notification resends it on this channel, and that resend hasn't failed."""
    is_address_corrected: bool = False
    """The resend goes to another address than the one that failed."""
    can_reach: bool = True  # There is an address, or a device that hasn't rejected it
    has_provider: bool = True
    is_whatsapp_allowed: bool = True  # Within the 24-hour window, or with a template


@dataclass(frozen=True, slots=True, kw_only=True)
class ResendRisk:
    """A resend risk and its reason in complete sentences, without an address."""

    kind: RiskKind
    reason: str
    is_by_failure: bool = False
    """The failure code decides. If not, a fact about the recipient or the content does."""


R = RiskKind
_RISK_BY_FAILURE: Mapping[FailureCode, tuple[RiskKind, str]] = {
    F.RATE_LIMITED: (R.SAFE, "Rate limited by the provider; nothing was sent."),
    F.RECIPIENT_RATE_LIMITED: (R.SAFE, "The provider limited messages to this recipient."),
    F.PROVIDER_ERROR: (R.SAFE, "Provider error; nothing was sent."),
    F.CONNECTION_FAILED: (R.SAFE, "Couldn't connect to the provider; nothing was sent."),
    F.CHANNEL_UNAVAILABLE: (R.SAFE, "A provider is configured for this channel now."),
    F.BLOCKED: (R.SAFE, "The receiving server blocked it once; the address may be valid."),
    F.REPORTED_FAILED: (R.SAFE, "The provider reported a failure."),
    F.BOUNCED: (R.SAFE, "It bounced, but the suppression was lifted."),
    F.SUPPRESSED: (R.SAFE, "The suppression was lifted."),
    F.OVER_LIMIT: (R.SAFE, "Not sent. The limits for the recipient apply again."),
    F.OVER_DAILY_UNITS: (R.SAFE, "Not sent. The client's daily cap applies again."),
    F.IN_DIGEST: (R.SAFE, "It expired before its digest was sent."),
    F.OPTED_OUT: (R.SAFE, "The recipient opted in again."),
    F.CANCELLED: (R.SAFE, "It was cancelled before sending."),
    F.NO_ADDRESS: (R.SAFE, "There is an active device now."),
    F.INVALID_RECIPIENT: (R.SAFE, "The recipient has another active device now."),
    F.ROOM_GONE: (R.SAFE, "The room is enabled again."),
    F.WINDOW_CLOSED: (R.SAFE, "Inside the 24-hour window now, or there is a WhatsApp template."),
    F.TIMEOUT: (R.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.CONNECTION_LOST: (R.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.WORKER_LOST: (R.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.OUTCOME_UNKNOWN: (R.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.INTERNAL_ERROR: (R.MAY_DUPLICATE, "Internal error; the outcome is unknown."),
    F.NOT_NEEDED: (R.MAY_DUPLICATE, "An earlier step of its plan reached the recipient."),
    F.REJECTED: (R.WILL_FAIL_AGAIN, "The provider rejects this message for any recipient."),
    F.TOO_LARGE: (R.WILL_FAIL_AGAIN, "It is too large for the provider."),
    F.RENDER_FAILED: (R.WILL_FAIL_AGAIN, "The template can't be rendered with its data."),
    F.DECRYPTION_FAILED: (R.WILL_FAIL_AGAIN, "Its sensitive data can't be decrypted."),
    F.ATTACHMENT_UNAVAILABLE: (R.WILL_FAIL_AGAIN, "An attachment couldn't be downloaded."),
    F.DESTINATION_DISABLED: (R.WILL_FAIL_AGAIN, "Until the recipient's country is enabled."),
    F.FILTERED: (R.WILL_FAIL_AGAIN, "Until its text passes the filter that rejected it."),
    F.SENDER_UNREGISTERED: (
        R.WILL_FAIL_AGAIN,
        "Until the sender is registered for the recipient's country.",
    ),
    F.QUARANTINED: (
        R.WILL_FAIL_AGAIN,
        "Quarantined: it might end its worker. See the workers' logs.",
    ),
    F.DROPPED: (R.WILL_FAIL_AGAIN, "On the provider's suppression list. Remove it there first."),
    F.QUIET_HOURS: (R.EXPIRED, "It expired during quiet hours."),
    F.EXPIRED: (R.EXPIRED, "It expired before sending. A resend gets a new expiry."),
}
"""Risk of a resend by failure code, if no other fact decides."""


def assess_risk(facts: DeliveryFacts) -> ResendRisk:
    """Return the risk of resending a delivery, with the strongest reason."""
    obstacle = next(_find_obstacles(facts), None)
    kind, reason = obstacle or _assess_failure(facts)
    return ResendRisk(kind=kind, reason=reason, is_by_failure=obstacle is None)


def _find_obstacles(facts: DeliveryFacts) -> Iterator[tuple[RiskKind, str]]:
    for is_gone, reason in (
        (facts.is_erased, "The recipient was erased, with the content."),
        (facts.is_deleted, "Its client deleted it. Restore it first."),
        (
            facts.is_content_removed,
            "Content was removed by retention. Send a new notification.",
        ),
        (
            facts.is_sensitive_data_destroyed,
            "Its sensitive data was destroyed. Send a new notification.",
        ),
    ):
        if is_gone:
            yield R.WILL_FAIL_AGAIN, reason
    if facts.suppression_reason is not None:
        yield R.SUPPRESSED, facts.suppression_reason
    if facts.status in SUCCEEDED:
        yield R.MAY_DUPLICATE, "It was already sent: would be a duplicate."
    if facts.status is DeliveryStatus.MERGED:
        yield R.MAY_DUPLICATE, "It was part of a digest: would be a duplicate."
    if facts.status in OPEN:
        yield R.MAY_DUPLICATE, "It is still open: might be a duplicate."
    if not facts.has_provider:
        yield R.WILL_FAIL_AGAIN, "No provider is configured for this channel."
    if not facts.can_reach:
        yield R.WILL_FAIL_AGAIN, facts.channel.spec.reach.resend_obstacle
    if not facts.is_whatsapp_allowed:
        reason = "Outside the 24-hour window, and the type has no WhatsApp template."
        yield R.WILL_FAIL_AGAIN, reason


def _assess_failure(facts: DeliveryFacts) -> tuple[RiskKind, str]:
    try:
        kind, reason = _RISK_BY_FAILURE[FailureCode(facts.code or "")]
    except ValueError:
        kind, reason = R.MAY_DUPLICATE, "Unknown failure code."
    if facts.is_address_corrected and facts.code in _ADDRESS_FAILURES:
        kind, reason = R.SAFE, "It goes to another address than the one that failed."
    if facts.code == F.NOT_NEEDED and facts.failure_reason:
        reason = f"{facts.failure_reason} Would be a duplicate."
    if kind is R.WILL_FAIL_AGAIN:
        return kind, reason
    if facts.may_be_delivered:
        reason = "The recipient may have it: an attempt's outcome is unknown, or one device has it."
        return R.MAY_DUPLICATE, reason
    if facts.is_resent:
        return R.MAY_DUPLICATE, "It was already resent as another notification."
    if kind is R.SAFE and facts.is_expired:
        return _RISK_BY_FAILURE[F.EXPIRED]
    return kind, reason
