"""Whether what a push would say fits into one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from bson import ObjectId

from domain.content import Content, Recipient
from domain.errors import FailureCode, PermanentError
from domain.retry import MAX_RETRIES
from domain.states import Channel, DeliveryStatus, Priority
from providers.contract import SendRequest
from providers.fcm.messages import MAX_PAYLOAD, build_payload

from .. import rendering
from ..store import NewDelivery, Reference
from ..templates import TemplateProblem
from .problems import Collector

S = DeliveryStatus
DEVICE = "f" * 64
"""A device's id, of which there is one in every push."""
LARGEST_FRAME = 512
"""Bytes at most of what is in every push, whatever it says: names of fields, and our ids."""
LARGEST_WORDS = 4 * (rendering.PUSH_TITLE_LENGTH + rendering.PUSH_BODY_LENGTH)
"""Bytes at most of a title and a text, which are cut to what a phone shows."""


def check_push(
    content: Content,
    deliveries: Sequence[NewDelivery],
    *,
    data: Mapping[str, Any],
    recipient: Recipient,
    priority: Priority,
    problems: Collector,
    now: datetime,
) -> None:
    """Note it if there is a push and it would be larger than Firebase takes: it could never arrive.

    Only what may be too large is rendered for it: a payload or links of over about 1 KB. Nothing is
    looked at that has problems already.
    """
    is_pushed = any(one.channel is Channel.PUSH and one.status is S.PENDING for one in deliveries)
    if problems.problems or not is_pushed:
        return
    if LARGEST_FRAME + LARGEST_WORDS + _besides(content) <= MAX_PAYLOAD:
        return
    place = "/content/payload" if content.payload else "/content"
    try:
        message = rendering.render_message(
            channel=Channel.PUSH, content=content, data=data, recipient=recipient
        )
        build_payload(
            SendRequest(
                reference=str(Reference(ObjectId(), Channel.PUSH, MAX_RETRIES, DEVICE)),
                thread=str(ObjectId()),
                recipient=DEVICE,
                message=message,
                category="",
                priority=priority,
            ),
            now=now,
        )
    except TemplateProblem as problem:
        problems.add("/data", problem.code, str(problem))
    except PermanentError as error:
        # A key that Firebase keeps for itself is told when it is sent: other channels take it.
        if error.code is FailureCode.TOO_LARGE:
            problems.add(place, "too_long", "A push has at most 4 KB: its texts, links, payload.")


def _besides(content: Content) -> int:
    """Return the bytes at most of what a push carries besides its words."""
    links = sum(len(link.encode()) for link in (content.image_url, content.deep_link) if link)
    return links + (len(msgspec.json.encode(content.payload)) if content.payload else 0)
