"""What codes and states mean, in plain words, for the people who look at them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, NotificationStatus
from notifications.resend.risk import RiskKind

F, S = FailureCode, DeliveryStatus
CHANNELS: Mapping[Channel, str] = {
    Channel.EMAIL: "Email",
    Channel.PUSH: "Push",
    Channel.WHATSAPP: "WhatsApp",
    Channel.IN_APP: "In-app",
}
CHANNEL_ICONS: Mapping[Channel, str] = {
    Channel.EMAIL: "mail",
    Channel.PUSH: "smartphone",
    Channel.WHATSAPP: "chat",
    Channel.IN_APP: "inbox",
}
RESEND_RISKS: Mapping[RiskKind, tuple[str, str]] = {
    RiskKind.SAFE: ("safe", "success"),
    RiskKind.WILL_FAIL_AGAIN: ("pointless", "calm"),
    RiskKind.MAY_DUPLICATE: ("may duplicate", "warning"),
    RiskKind.EXPIRED: ("expired", "calm"),
    RiskKind.SUPPRESSED: ("suppressed", "danger"),
}
"""Each verdict on a resend in words, and its colour."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a failure code means and what one can do."""

    meaning: str
    """Half a sentence, to stand behind a colon."""
    advice: str
    """Whole sentences."""
    needs_operator: bool = False
    """It does not go away before somebody here does something."""


EXPLANATIONS: Mapping[FailureCode, Explanation] = {
    F.RATE_LIMITED: Explanation(
        "the provider asked us to slow down",
        "Nothing is wrong with the message. A retry works once the rush is over.",
    ),
    F.RECIPIENT_RATE_LIMITED: Explanation(
        "the provider wants fewer messages to this one person",
        "Nothing is to be done: it is tried again later.",
    ),
    F.PROVIDER_ERROR: Explanation(
        "the provider had a problem of its own",
        "Nothing is wrong with the message. Retry it when the provider is well again.",
    ),
    F.CONNECTION_FAILED: Explanation(
        "the provider could not be reached",
        "Nothing was sent. Check the network and the provider's status page, then retry.",
    ),
    F.TIMEOUT: Explanation(
        "the provider took the message and never answered",
        "The person may have got it: a retry may send it twice.",
    ),
    F.CONNECTION_LOST: Explanation(
        "the connection broke while the message was on its way",
        "The person may have got it: a retry may send it twice.",
    ),
    F.INTERNAL_ERROR: Explanation(
        "this service made a mistake",
        "Look into the worker's log with the notification's id before you retry.",
        needs_operator=True,
    ),
    F.WORKER_LOST: Explanation(
        "the worker stopped while it was sending",
        "The person may have got it: a retry may send it twice.",
    ),
    F.OUTCOME_UNKNOWN: Explanation(
        "nobody could tell in time whether it went",
        "Its type says that twice is worse than never, so it was not sent again. "
        "A resend may be the second copy.",
    ),
    F.CHANNEL_UNAVAILABLE: Explanation(
        "no provider takes anything on this channel",
        "Check that a provider is set up and that its credentials and quota are good, then retry.",
        needs_operator=True,
    ),
    F.INVALID_RECIPIENT: Explanation(
        "the provider does not accept the address",
        "A retry fails the same way. Correct the address, and have the app send it anew.",
    ),
    F.NO_ADDRESS: Explanation(
        "there is no address to send it to",
        "The person has no address on this channel. Add one, and have the app send it anew.",
    ),
    F.REJECTED: Explanation(
        "the provider refuses this message",
        "A retry fails the same way until the cause is gone: read what the provider said.",
        needs_operator=True,
    ),
    F.TOO_LARGE: Explanation(
        "the message is too large for the provider",
        "A retry fails the same way. The app has to send a shorter one.",
    ),
    F.RENDER_FAILED: Explanation(
        "the message could not be made from its template",
        "Correct the template or the data the app sends, then retry.",
        needs_operator=True,
    ),
    F.ATTACHMENT_UNAVAILABLE: Explanation(
        "a file that was to go along could not be fetched",
        "Look at the attachment's address and at the server it is on, then retry.",
    ),
    F.WINDOW_CLOSED: Explanation(
        "they have not written on WhatsApp for a day, and the type has no approved template",
        "Give the type a template that WhatsApp has approved, or wait until they write.",
        needs_operator=True,
    ),
    F.QUARANTINED: Explanation(
        "three workers took it and none came back",
        "Something in it stops workers. Look into their log before you retry.",
        needs_operator=True,
    ),
    F.BOUNCED: Explanation(
        "the receiving server says that the address does not exist",
        "The address is suppressed now. Correct it, and have the app send it anew.",
    ),
    F.BLOCKED: Explanation(
        "the receiving server turned it away this time",
        "The address may be good. One resend is worth a try.",
    ),
    F.DROPPED: Explanation(
        "the provider took it and chose not to send it",
        "The provider holds the address for bad or unsubscribed: look there.",
    ),
    F.REPORTED_FAILED: Explanation(
        "the provider reported later that it did not arrive",
        "Read what the provider said. One resend is worth a try.",
    ),
    F.SUPPRESSED: Explanation(
        "the address is on the suppression list",
        "Nothing is sent to it until the suppression is lifted.",
    ),
    F.OPTED_OUT: Explanation(
        "the person does not want this kind of message",
        "Respect it: nothing is to be done.",
    ),
    F.QUIET_HOURS: Explanation(
        "it fell into the person's quiet hours",
        "It was not worth sending any more when they ended.",
    ),
    F.EXPIRED: Explanation(
        "its time was over before it could be sent",
        "If it still matters, resend it: its time begins anew.",
    ),
    F.NOT_NEEDED: Explanation(
        "another channel delivered it in time",
        "They have it: nothing is to be done.",
    ),
    F.CANCELLED: Explanation(
        "somebody withdrew it before it was sent",
        "If that was a mistake, resend it.",
    ),
}
"""One for each code."""
UNKNOWN_CODE = Explanation("for a reason we have no words for", "Read what the provider said.")
STATUS_LABELS: Mapping[NotificationStatus, str] = {
    NotificationStatus.CREATED: "Waiting for its time",
    NotificationStatus.QUEUED: "Waiting for a worker",
    NotificationStatus.PROCESSING: "Being sent",
    NotificationStatus.RETRYING: "Will be tried again",
    NotificationStatus.SENT: "Sent",
    NotificationStatus.DELIVERED: "Delivered",
    NotificationStatus.PARTIALLY_DELIVERED: "Partly delivered",
    NotificationStatus.FAILED: "Failed",
    NotificationStatus.EXPIRED: "Expired",
    NotificationStatus.CANCELLED: "Not sent",
}
DELIVERY_LABELS: Mapping[DeliveryStatus, str] = {
    S.PENDING: "Waiting",
    S.SENDING: "Being sent",
    S.UNKNOWN: "Outcome unknown",
    S.SENT: "Sent",
    S.DELIVERED: "Delivered",
    S.READ: "Read",
    S.FAILED: "Failed",
    S.EXPIRED: "Expired",
    S.CANCELLED: "Cancelled",
    S.SUPPRESSED: "Suppressed",
}
STATUS_COLORS: Mapping[NotificationStatus, str] = {
    NotificationStatus.CREATED: "calm",
    NotificationStatus.QUEUED: "info",
    NotificationStatus.PROCESSING: "info",
    NotificationStatus.RETRYING: "warning",
    NotificationStatus.SENT: "success",
    NotificationStatus.DELIVERED: "success",
    NotificationStatus.PARTIALLY_DELIVERED: "warning",
    NotificationStatus.FAILED: "danger",
    NotificationStatus.EXPIRED: "calm",
    NotificationStatus.CANCELLED: "calm",
}
DELIVERY_COLORS: Mapping[DeliveryStatus, str] = {
    S.PENDING: "info",
    S.SENDING: "info",
    S.UNKNOWN: "warning",
    S.SENT: "success",
    S.DELIVERED: "success",
    S.READ: "success",
    S.FAILED: "danger",
    S.EXPIRED: "calm",
    S.CANCELLED: "calm",
    S.SUPPRESSED: "calm",
}


def explain(code: str | None) -> Explanation:
    """Return what a stored code means; codes come and go, so an unknown one is no error."""
    try:
        return EXPLANATIONS[FailureCode(code or "")]
    except ValueError:
        return UNKNOWN_CODE


def code_label(code: str | None) -> str:
    """Return a code as words: ``provider_error`` as "Provider error"."""
    return (code or "unknown").replace("_", " ").capitalize()
