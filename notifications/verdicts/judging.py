"""The verdict on one delivery, by what is known of it. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from domain.errors import FailureCode
from domain.states import OPEN, SUCCEEDED, Channel, DeliveryStatus

F = FailureCode


class Kind(StrEnum):
    """What sending the same again would be."""

    SAFE = "safe"
    """The person does not have it, and nothing is known that keeps it from arriving."""
    POINTLESS = "pointless"
    """It fails the same way: the cause is still there."""
    MAY_DUPLICATE = "may_duplicate"
    """The person may have it already."""
    EXPIRED = "expired"
    """It came too late; it may not matter any more."""
    SUPPRESSED = "suppressed"
    """The person does not want it, or the address is known to be bad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one delivery now. Without the defaults, nothing speaks against a resend."""

    channel: Channel
    status: DeliveryStatus
    code: str | None = None
    """The stored failure code; a text nobody knows any more is no error."""
    may_have_it: bool = False
    """One attempt had an outcome nobody knows, or one of the person's devices has it."""
    is_over: bool = False
    """The notification's time is over."""
    is_erased: bool = False
    """The person was erased, and what it said with them."""
    is_secret_gone: bool = False
    """It had a secret, such as a code, that is not kept any more."""
    is_content_removed: bool = False
    """What it said was removed, as it is old."""
    held_back: str | None = None
    """Why nothing of its category goes there today: a suppression or a wish, as a sentence."""
    can_reach: bool = True
    """There is an address today, or a device that has not refused it."""
    has_provider: bool = True
    """A provider is set up for the channel."""
    may_write: bool = True
    """WhatsApp: they wrote within a day, or the type has an approved wording."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judgement, and why: whole sentences for people, without an address."""

    kind: Kind
    why: str


_COPY = "The provider may have taken it: this could be a second copy."
_CAUSES: Mapping[FailureCode, tuple[Kind, str]] = {
    F.RATE_LIMITED: (Kind.SAFE, "The provider refused it in a rush and sent nothing."),
    F.RECIPIENT_RATE_LIMITED: (Kind.SAFE, "The provider wanted fewer messages to this person."),
    F.PROVIDER_ERROR: (Kind.SAFE, "The provider had a problem of its own and sent nothing."),
    F.CONNECTION_FAILED: (Kind.SAFE, "The provider was not reached: nothing was sent."),
    F.CHANNEL_UNAVAILABLE: (Kind.SAFE, "A provider is set up for this channel now."),
    F.BLOCKED: (Kind.SAFE, "The receiving server turned it away once; the address may be good."),
    F.REPORTED_FAILED: (Kind.SAFE, "The provider reported that it did not arrive."),
    F.BOUNCED: (Kind.SAFE, "It bounced, and its suppression was lifted since."),
    F.SUPPRESSED: (Kind.SAFE, "What held it back does not any more."),
    F.OPTED_OUT: (Kind.SAFE, "The person wants this kind of message now."),
    F.CANCELLED: (Kind.SAFE, "It was withdrawn before it was sent."),
    F.NO_ADDRESS: (Kind.SAFE, "There is an active device for it now."),
    F.INVALID_RECIPIENT: (Kind.SAFE, "The person has another active device now."),
    F.WINDOW_CLOSED: (Kind.SAFE, "WhatsApp takes it now: they wrote, or a wording is approved."),
    F.TIMEOUT: (Kind.MAY_DUPLICATE, _COPY),
    F.CONNECTION_LOST: (Kind.MAY_DUPLICATE, _COPY),
    F.WORKER_LOST: (Kind.MAY_DUPLICATE, _COPY),
    F.OUTCOME_UNKNOWN: (Kind.MAY_DUPLICATE, _COPY),
    F.INTERNAL_ERROR: (Kind.MAY_DUPLICATE, "This service broke off: nobody knows how far it got."),
    F.NOT_NEEDED: (Kind.MAY_DUPLICATE, "They have it: another channel delivered it in time."),
    F.REJECTED: (Kind.POINTLESS, "The provider refuses this message, whoever it is for."),
    F.TOO_LARGE: (Kind.POINTLESS, "It is too large for the provider, and would be again."),
    F.RENDER_FAILED: (Kind.POINTLESS, "Its template and its data still do not fit together."),
    F.ATTACHMENT_UNAVAILABLE: (Kind.POINTLESS, "A file that goes along could not be fetched."),
    F.QUARANTINED: (Kind.POINTLESS, "Three workers took it and none came back: see their logs."),
    F.DROPPED: (Kind.POINTLESS, "The provider holds the address for bad: mend it there first."),
    F.QUIET_HOURS: (Kind.EXPIRED, "It was not worth sending any more when quiet hours ended."),
    F.EXPIRED: (Kind.EXPIRED, "Its time was over. If it still matters, its time begins anew."),
}
"""What is left to say of each cause when nothing of today speaks against a resend."""
_UNKNOWN_CAUSE = (Kind.MAY_DUPLICATE, "It failed for a reason we have no words for.")
_NOWHERE: Mapping[Channel, str] = {
    Channel.EMAIL: "There is no usable email address for it.",
    Channel.WHATSAPP: "There is no usable phone number for it.",
    Channel.PUSH: "The person has no active device that has not refused it.",
    Channel.IN_APP: "It is for nobody who has an inbox.",
}
_NO_ADDRESS = "There is no usable address for it."


def verdict(facts: Facts) -> Verdict:
    """Return what sending this again on its channel would be, and why. Pure.

    What speaks against it most is told: nothing to send, a person who does not want it, a cause
    that is still there, a possible second copy, a time that is over.
    """
    return next(_objections(facts), None) or _by_cause(facts)


def _objections(facts: Facts) -> Iterator[Verdict]:
    if facts.is_erased:
        yield Verdict(kind=Kind.POINTLESS, why="The person was erased, and what it said with them.")
    if facts.is_content_removed:
        why = "What it said is not kept any more, as it is old: the app has to send a new one."
        yield Verdict(kind=Kind.POINTLESS, why=why)
    if facts.is_secret_gone:
        why = "Its secret, such as a code, is not kept any more: the app has to send a new one."
        yield Verdict(kind=Kind.POINTLESS, why=why)
    if facts.held_back is not None:
        yield Verdict(kind=Kind.SUPPRESSED, why=facts.held_back)
    if facts.status in SUCCEEDED:
        why = "It went out already: this would be a second copy."
        yield Verdict(kind=Kind.MAY_DUPLICATE, why=why)
    if facts.status in OPEN:
        why = "It is still under way: this could be a second copy."
        yield Verdict(kind=Kind.MAY_DUPLICATE, why=why)
    if not facts.has_provider:
        yield Verdict(kind=Kind.POINTLESS, why="No provider is set up for this channel.")
    if not facts.can_reach:
        yield Verdict(kind=Kind.POINTLESS, why=_NOWHERE.get(facts.channel, _NO_ADDRESS))
    if not facts.may_write:
        why = "They have not written for a day, and the type has no approved wording."
        yield Verdict(kind=Kind.POINTLESS, why=why)


def _by_cause(facts: Facts) -> Verdict:
    try:
        kind, why = _CAUSES[FailureCode(facts.code or "")]
    except ValueError:
        kind, why = _UNKNOWN_CAUSE
    if kind is Kind.POINTLESS:
        return Verdict(kind=kind, why=why)
    if facts.may_have_it:
        why = "The person may have it: one attempt got no answer, or one device took it."
        return Verdict(kind=Kind.MAY_DUPLICATE, why=why)
    if kind is Kind.SAFE and facts.is_over:
        return Verdict(kind=Kind.EXPIRED, why=_CAUSES[F.EXPIRED][1])
    return Verdict(kind=kind, why=why)
