"""The verdict on one delivery, by what is known of it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import FailureCode
from domain.states import OPEN, SUCCEEDED, Channel, DeliveryStatus

F = FailureCode


class RiskKind(StrEnum):
    """What sending the same again would be."""

    SAFE = "safe"
    """The person does not have it, and nothing is known that keeps it from arriving."""
    WILL_FAIL_AGAIN = "pointless"
    """It fails the same way: the cause is still there."""
    MAY_DUPLICATE = "may_duplicate"
    """The person may have it already."""
    EXPIRED = "expired"
    """It came too late; it may not matter any more."""
    SUPPRESSED = "suppressed"
    """The person does not want it, or the address is known to be bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFacts:
    """What is known of one delivery now. Without the defaults, nothing speaks against a resend."""

    channel: Channel
    status: DeliveryStatus
    code: str | None = None
    """The stored failure code; a text nobody knows any more is no error."""
    may_be_delivered: bool = False
    """One attempt had an outcome nobody knows, or one of the person's devices has it."""
    is_expired: bool = False
    """The notification's time is over."""
    is_erased: bool = False
    """The person was erased, and what it said with them."""
    is_sensitive_data_destroyed: bool = False
    """It had a secret, such as a code, that is not kept any more."""
    is_content_removed: bool = False
    """What it said was removed, as it is old."""
    suppression_reason: str | None = None
    """Why nothing of its category goes there today: a suppression or a wish, as a sentence."""
    can_reach: bool = True
    """There is an address today, or a device that has not refused it."""
    has_provider: bool = True
    """A provider is set up for the channel."""
    is_whatsapp_allowed: bool = True
    """WhatsApp: they wrote within a day, or the type has an approved wording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResendRisk:
    """A judgement, and why: whole sentences for people, without an address."""

    kind: RiskKind
    reason: str


_MAY_DUPLICATE_REASON = "The provider may have taken it: this could be a second copy."
_RISK_BY_FAILURE: Mapping[FailureCode, tuple[RiskKind, str]] = {
    F.RATE_LIMITED: (RiskKind.SAFE, "The provider refused it in a rush and sent nothing."),
    F.RECIPIENT_RATE_LIMITED: (RiskKind.SAFE, "The provider wanted fewer messages to this person."),
    F.PROVIDER_ERROR: (RiskKind.SAFE, "The provider had a problem of its own and sent nothing."),
    F.CONNECTION_FAILED: (RiskKind.SAFE, "The provider was not reached: nothing was sent."),
    F.CHANNEL_UNAVAILABLE: (RiskKind.SAFE, "A provider is set up for this channel now."),
    F.BLOCKED: (
        RiskKind.SAFE,
        "The receiving server turned it away once; the address may be good.",
    ),
    F.REPORTED_FAILED: (RiskKind.SAFE, "The provider reported that it did not arrive."),
    F.BOUNCED: (RiskKind.SAFE, "It bounced, and its suppression was lifted since."),
    F.SUPPRESSED: (RiskKind.SAFE, "What held it back does not any more."),
    F.OPTED_OUT: (RiskKind.SAFE, "The person wants this kind of message now."),
    F.CANCELLED: (RiskKind.SAFE, "It was withdrawn before it was sent."),
    F.NO_ADDRESS: (RiskKind.SAFE, "There is an active device for it now."),
    F.INVALID_RECIPIENT: (RiskKind.SAFE, "The person has another active device now."),
    F.WINDOW_CLOSED: (
        RiskKind.SAFE,
        "WhatsApp takes it now: they wrote, or a wording is approved.",
    ),
    F.TIMEOUT: (RiskKind.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.CONNECTION_LOST: (RiskKind.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.WORKER_LOST: (RiskKind.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.OUTCOME_UNKNOWN: (RiskKind.MAY_DUPLICATE, _MAY_DUPLICATE_REASON),
    F.INTERNAL_ERROR: (
        RiskKind.MAY_DUPLICATE,
        "This service broke off: nobody knows how far it got.",
    ),
    F.NOT_NEEDED: (RiskKind.MAY_DUPLICATE, "They have it: another channel delivered it in time."),
    F.REJECTED: (RiskKind.WILL_FAIL_AGAIN, "The provider refuses this message, whoever it is for."),
    F.TOO_LARGE: (
        RiskKind.WILL_FAIL_AGAIN,
        "It is too large for the provider, and would be again.",
    ),
    F.RENDER_FAILED: (
        RiskKind.WILL_FAIL_AGAIN,
        "Its template and its data still do not fit together.",
    ),
    F.ATTACHMENT_UNAVAILABLE: (
        RiskKind.WILL_FAIL_AGAIN,
        "A file that goes along could not be fetched.",
    ),
    F.QUARANTINED: (
        RiskKind.WILL_FAIL_AGAIN,
        "Three workers took it and none came back: see their logs.",
    ),
    F.DROPPED: (
        RiskKind.WILL_FAIL_AGAIN,
        "The provider holds the address for bad: mend it there first.",
    ),
    F.QUIET_HOURS: (RiskKind.EXPIRED, "It was not worth sending any more when quiet hours ended."),
    F.EXPIRED: (RiskKind.EXPIRED, "Its time was over. If it still matters, its time begins anew."),
}
"""What is left to say of each cause when nothing of today speaks against a resend."""
_UNKNOWN_FAILURE = (RiskKind.MAY_DUPLICATE, "It failed for a reason we have no words for.")
_UNREACHABLE_REASONS: Mapping[Channel, str] = {
    Channel.EMAIL: "There is no usable email address for it.",
    Channel.WHATSAPP: "There is no usable phone number for it.",
    Channel.PUSH: "The person has no active device that has not refused it.",
    Channel.IN_APP: "It is for nobody who has an inbox.",
}
_NO_ADDRESS_REASON = "There is no usable address for it."


def assess_risk(facts: DeliveryFacts) -> ResendRisk:
    """Return what sending this again on its channel would be, and why. Pure.

    What speaks against it most is told: nothing to send, a person who does not want it, a cause
    that is still there, a possible second copy, a time that is over.
    """
    return next(_find_obstacles(facts), None) or _assess_failure(facts)


def _find_obstacles(facts: DeliveryFacts) -> Iterator[ResendRisk]:
    if facts.is_erased:
        yield ResendRisk(
            kind=RiskKind.WILL_FAIL_AGAIN,
            reason="The person was erased, and what it said with them.",
        )
    if facts.is_content_removed:
        reason = "What it said is not kept any more, as it is old: the app has to send a new one."
        yield ResendRisk(kind=RiskKind.WILL_FAIL_AGAIN, reason=reason)
    if facts.is_sensitive_data_destroyed:
        reason = "Its secret, such as a code, is not kept any more: the app has to send a new one."
        yield ResendRisk(kind=RiskKind.WILL_FAIL_AGAIN, reason=reason)
    if facts.suppression_reason is not None:
        yield ResendRisk(kind=RiskKind.SUPPRESSED, reason=facts.suppression_reason)
    if facts.status in SUCCEEDED:
        reason = "It went out already: this would be a second copy."
        yield ResendRisk(kind=RiskKind.MAY_DUPLICATE, reason=reason)
    if facts.status in OPEN:
        reason = "It is still under way: this could be a second copy."
        yield ResendRisk(kind=RiskKind.MAY_DUPLICATE, reason=reason)
    if not facts.has_provider:
        yield ResendRisk(
            kind=RiskKind.WILL_FAIL_AGAIN, reason="No provider is set up for this channel."
        )
    if not facts.can_reach:
        yield ResendRisk(
            kind=RiskKind.WILL_FAIL_AGAIN,
            reason=_UNREACHABLE_REASONS.get(facts.channel, _NO_ADDRESS_REASON),
        )
    if not facts.is_whatsapp_allowed:
        reason = "They have not written for a day, and the type has no approved wording."
        yield ResendRisk(kind=RiskKind.WILL_FAIL_AGAIN, reason=reason)


def _assess_failure(facts: DeliveryFacts) -> ResendRisk:
    try:
        kind, reason = _RISK_BY_FAILURE[FailureCode(facts.code or "")]
    except ValueError:
        kind, reason = _UNKNOWN_FAILURE
    if kind is RiskKind.WILL_FAIL_AGAIN:
        return ResendRisk(kind=kind, reason=reason)
    if facts.may_be_delivered:
        reason = "The person may have it: one attempt got no answer, or one device took it."
        return ResendRisk(kind=RiskKind.MAY_DUPLICATE, reason=reason)
    if kind is RiskKind.SAFE and facts.is_expired:
        return ResendRisk(kind=RiskKind.EXPIRED, reason=_RISK_BY_FAILURE[F.EXPIRED][1])
    return ResendRisk(kind=kind, reason=reason)
