"""Checks text messages right before a send: their countries, and their parts."""

from collections.abc import Mapping, Sequence

from bson import ObjectId

from domain.errors import FailureCode
from domain.sms import encode
from domain.states import DeliveryStatus
from notifications.catalog import types
from notifications.catalog.texts import country_refusal
from notifications.store.claims import ClaimedDelivery, NotSent

from .rendering import RenderedMessage


def split_refused(
    claims: Sequence[ClaimedDelivery], messages: Mapping[ObjectId, RenderedMessage]
) -> tuple[list[ClaimedDelivery], list[NotSent]]:
    """Return the texts that may be sent, and those whose country or type refuses them."""
    allowed, refused = [], []
    for claimed in claims:
        refusal = _refusal_of(claimed, messages[claimed.notification_id].message.text)
        if refusal is None:
            allowed.append(claimed)
        else:
            refused.append(NotSent(claimed, DeliveryStatus.FAILED, *refusal))
    return allowed, refused


def _refusal_of(claimed: ClaimedDelivery, text: str) -> tuple[FailureCode, str] | None:
    if reason := country_refusal(claimed.channel, claimed.recipient.address(claimed.channel)):
        return FailureCode.DESTINATION_DISABLED, reason
    if reason := types.text_rules(claimed.type).problem(encode(text, smart=False)):
        return FailureCode.TOO_LARGE, reason
    return None
