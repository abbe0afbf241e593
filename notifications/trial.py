"""A message that an operator sends to see whether a channel works, or how a text arrives."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from bson import ObjectId

from access.clients import registry
from domain.states import Channel

from . import intake
from .intake import Caller, ContentRequest, NotificationRequest, RecipientRequest

TYPE = "transactional"
SUBJECT = "Test message"
BODY = "This is a test from the people who run our notifications. There is nothing for you to do."


def send(*, channel: Channel, address: str, now: datetime) -> ObjectId:
    """Send a test to an address, a phone number or a device's id; return the notification's id.

    It goes the way of every other: by the first provider of the channel that takes it. Raises
    InvalidRequest if the address is none.
    """
    request = NotificationRequest(
        type=TYPE,
        recipient=_recipient(channel, address),
        channels=[channel.value],
        content=ContentRequest(subject=SUBJECT, body=BODY),
    )
    caller = Caller(client_id=registry.system_client_id(now=now))
    acceptance = intake.accept(request, caller=caller, now=now)
    return ObjectId(acceptance.document["_id"])


def send_version(
    *,
    slug: str,
    version: int,
    example: Mapping[str, Any],
    channel: Channel,
    address: str,
    locale: str | None,
    now: datetime,
) -> ObjectId:
    """Send what a version of a type's template says with its example, published or not.

    Returns the notification's id; raises InvalidRequest if the address is none.
    """
    request = NotificationRequest(
        type=slug,
        recipient=_recipient(channel, address, locale=locale),
        channels=[channel.value],
        data=dict(example),
    )
    caller = Caller(client_id=registry.system_client_id(now=now), template_version=version)
    acceptance = intake.accept(request, caller=caller, now=now)
    return ObjectId(acceptance.document["_id"])


def _recipient(channel: Channel, address: str, *, locale: str | None = None) -> RecipientRequest:
    if channel is Channel.EMAIL:
        return RecipientRequest(email=address, locale=locale)
    if channel is Channel.PUSH:
        return RecipientRequest(device_ids=[address], locale=locale)
    return RecipientRequest(phone=address, locale=locale)
