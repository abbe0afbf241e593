"""One-click unsubscribe links in marketing emails (RFC 8058). See docs/decisions/0009."""

from dataclasses import dataclass, field
from datetime import datetime

import msgspec
import structlog
from bson import ObjectId
from django.conf import settings

from domain.channels import Channel
from domain.channels.spec import Shape
from domain.states import Category
from notifications.store.claims import ClaimedDelivery
from notifyproject.platform.encryption import DecryptionError, decrypt_token, encrypt_token
from recipients import queries as recipients
from recipients.models import SuppressionReason
from recipients.suppressions import lift, suppress

log = structlog.get_logger(__name__)
PURPOSE = "notifications.unsubscribing"
"""Name of the derived key's purpose, since the secret key has other uses."""
MAX_TOKEN_LENGTH = 1_000
"""Maximum characters of a token. The longest possible address makes a token of 600."""
SOURCE = "one-click"


class UnknownLinkError(Exception):
    """The service did not create this link, or the link is incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """The address that a link unsubscribes."""

    channel: Channel
    address: str = field(repr=False)
    notification_id: ObjectId
    locale: str | None
    is_test: bool = False
    """The notification was a test: the link changes no subscription."""


class _Token(msgspec.Struct, frozen=True, array_like=True):
    channel: str
    address: str
    notification_id: bytes
    locale: str | None = None
    is_test: bool = False


def unsubscribe_url(claimed: ClaimedDelivery) -> str | None:
    """Return the unsubscribe link for a marketing email, or None for any other delivery."""
    address = claimed.recipient.address(claimed.channel)
    is_mail = claimed.channel.spec.shape is Shape.MAIL
    if claimed.category is not Category.MARKETING or not is_mail or address is None:
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
    """Return the encrypted unsubscribe link for an address, which never expires."""
    token = _Token(channel.value, address, notification_id.binary, locale, is_test)
    text = encrypt_token(msgspec.msgpack.encode(token), purpose=PURPOSE)
    return f"{settings.PUBLIC_URL}/u/{text}"


def parse_link(token: str) -> Subscriber:
    """Return the subscriber in a link's last path segment. Raises UnknownLinkError."""
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
    """Return whether the address gets marketing. True for a test's link. Raises PyMongoError."""
    pair = (subscriber.channel.value, subscriber.address)
    return subscriber.is_test or not recipients.find_suppressed([pair], now=now)


def unsubscribe(subscriber: Subscriber, *, now: datetime) -> None:
    """Suppress marketing to the address. A test's link has no effect. Idempotent."""
    if _is_test_link(subscriber):
        return
    suppress(
        channel=subscriber.channel.value,
        address=subscriber.address,
        reason=SuppressionReason.UNSUBSCRIBED,
        source=SOURCE,
        marketing_only=True,
        now=now,
    )
    notification_id = str(subscriber.notification_id)
    log.info("unsubscribed", channel=subscriber.channel.value, notification_id=notification_id)


def resubscribe(subscriber: Subscriber) -> None:
    """Lift the suppression by :func:`unsubscribe` and no other. Idempotent."""
    if _is_test_link(subscriber):
        return
    lift(
        channel=subscriber.channel.value,
        address=subscriber.address,
        reasons=[SuppressionReason.UNSUBSCRIBED],
        marketing_only=True,
    )
    notification_id = str(subscriber.notification_id)
    log.info("resubscribed", channel=subscriber.channel.value, notification_id=notification_id)


def _is_test_link(subscriber: Subscriber) -> bool:
    if subscriber.is_test:
        log.info("test_link_used", notification_id=str(subscriber.notification_id))
    return subscriber.is_test
