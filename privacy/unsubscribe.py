"""Unsubscribing: by one click in a marketing mail, and in WhatsApp.

The mail's link holds all that is needed, encrypted; why:
docs/decisions/0009-links-files-and-batches-of-mail.md.
"""

from dataclasses import dataclass, field
from datetime import datetime

import msgspec
import structlog
from bson import ObjectId
from django.conf import settings

from domain.states import Category, Channel
from notifications.store import ClaimedDelivery
from notifyproject.platform.encryption import DecryptionError, decrypt_token, encrypt_token
from recipients import queries as recipients
from recipients.models import SuppressionReason
from recipients.suppressions import lift, suppress

log = structlog.get_logger(__name__)
PURPOSE = "notifications.unsubscribing"
"""What the key is for: the service's secret key has other uses."""
MAX_TOKEN_LENGTH = 1_000
"""A longest address makes one of 600."""
SOURCE = "one-click"


class UnknownLinkError(Exception):
    """An address to unsubscribe at that is not one of ours, or not a whole one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """Who is meant by a link."""

    channel: Channel
    address: str = field(repr=False)
    notification_id: ObjectId
    """The notification the link was in. It may be gone by now."""
    locale: str | None
    is_test: bool = False
    """The notification was a test: the link changes nobody's subscription."""


class _Token(msgspec.Struct, frozen=True, array_like=True):
    channel: str
    address: str
    notification_id: bytes
    locale: str | None = None
    is_test: bool = False


def unsubscribe_url(claimed: ClaimedDelivery) -> str | None:
    """Return where the recipient of a delivery unsubscribes; None if it is no marketing mail."""
    address = claimed.recipient.address(claimed.channel)
    if claimed.category is not Category.MARKETING or address is None:
        return None
    if claimed.channel is not Channel.EMAIL:
        return None
    return url_for(
        channel=claimed.channel,
        address=address,
        notification_id=claimed.notification_id,
        locale=claimed.recipient.locale,
        is_test=claimed.is_test,
    )


def url_for(
    *,
    channel: Channel,
    address: str,
    notification_id: ObjectId,
    locale: str | None = None,
    is_test: bool = False,
) -> str:
    """Return where an address unsubscribes from marketing: the same each time for the same mail.

    It holds for ever, and nobody without the service's secret key reads the address in it.
    """
    token = _Token(channel.value, address, notification_id.binary, locale, is_test)
    text = encrypt_token(msgspec.msgpack.encode(token), purpose=PURPOSE)
    return f"{settings.PUBLIC_URL}/u/{text}"


def parse_link(token: str) -> Subscriber:
    """Return who is meant by the last part of a link; raises UnknownLinkError."""
    if len(token) > MAX_TOKEN_LENGTH or not token.isascii():
        raise UnknownLinkError
    try:
        payload = msgspec.msgpack.decode(decrypt_token(token, purpose=PURPOSE), type=_Token)
        return Subscriber(
            channel=Channel(payload.channel),
            address=payload.address,
            notification_id=ObjectId(payload.notification_id),
            locale=payload.locale,
            is_test=payload.is_test,
        )
    except (DecryptionError, ValueError) as error:
        raise UnknownLinkError from error


def is_subscribed(subscriber: Subscriber, *, now: datetime) -> bool:
    """Return whether marketing still goes to the address; raises PyMongoError.

    True for the link of a test: nobody unsubscribes by it, and it tells nothing of the address.
    """
    if subscriber.is_test:
        return True
    pair = (subscriber.channel.value, subscriber.address)
    return not recipients.find_suppressed([pair], now=now)


def unsubscribe(subscriber: Subscriber, *, now: datetime) -> None:
    """Send the address no more marketing; doing it twice is doing it once. Raises PyMongoError.

    The link of a test changes nothing.
    """
    if subscriber.is_test:
        _log_test(subscriber)
        return
    suppress(
        channel=subscriber.channel.value,
        address=subscriber.address,
        reason=SuppressionReason.UNSUBSCRIBED,
        source=SOURCE,
        marketing_only=True,
        now=now,
    )
    log.info(
        "unsubscribed",
        channel=subscriber.channel.value,
        notification_id=str(subscriber.notification_id),
    )


def resubscribe(subscriber: Subscriber) -> None:
    """Undo it, as the person has thought again; doing it twice is doing it once.

    What holds the address back for another reason stays: a bounce or a complaint is not undone by
    a link. The link of a test changes nothing. Raises PyMongoError.
    """
    if subscriber.is_test:
        _log_test(subscriber)
        return
    lift(
        channel=subscriber.channel.value,
        address=subscriber.address,
        reasons=[SuppressionReason.UNSUBSCRIBED],
        marketing_only=True,
    )
    log.info(
        "resubscribed",
        channel=subscriber.channel.value,
        notification_id=str(subscriber.notification_id),
    )


def _log_test(subscriber: Subscriber) -> None:
    log.info("test_link_used", notification_id=str(subscriber.notification_id))
