"""What each delivery of a batch says."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bson import ObjectId

from . import approved, rendering, types, unsubscribing
from .channels.base import Message
from .errors import FailureCode
from .states import Channel, DeliveryStatus
from .store import Claimed, Parked


def render(claims: Sequence[Claimed]) -> tuple[Mapping[ObjectId, Message], list[Parked]]:
    """Return the messages by notification, and what cannot be made into one."""
    messages: dict[ObjectId, Message] = {}
    parked: list[Parked] = []
    for claimed in claims:
        try:
            messages[claimed.notification_id] = _message(claimed)
        except rendering.TemplateProblem as problem:
            parked.append(
                Parked(
                    claimed=claimed,
                    status=DeliveryStatus.FAILED,
                    code=FailureCode.RENDER_FAILED,
                    reason=str(problem),
                )
            )
    return messages, parked


def _message(claimed: Claimed) -> Message:
    """Return what a delivery says; raises TemplateProblem."""
    message = rendering.render_message(
        channel=claimed.channel,
        content=claimed.content,
        data=claimed.data,
        recipient=claimed.recipient,
        unsubscribe_url=unsubscribing.url_of(claimed),
    )
    if claimed.channel is not Channel.WHATSAPP:
        return message
    known = types.find(claimed.type)
    wordings = known.approved if known else ()
    locale = claimed.recipient.locale
    return replace(message, approved=approved.choose(wordings, locale=locale, data=claimed.data))
