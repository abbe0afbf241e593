"""What prepared notifications would do, before they are sent: messages, price, and doubts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId

from domain.channels import Channel
from domain.errors import FailureCode
from domain.limits import Overflow
from domain.sms import encode
from domain.states import DeliveryStatus
from notifications.store.new_notifications import NewNotification

from ..catalog import types
from ..catalog.texts import encode_text, paid_country
from . import warnings
from .content import text_of
from .warnings import AcceptanceWarning


@dataclass(slots=True, kw_only=True)
class ChannelTotal:
    """The messages of a channel. Of a plan, those of later steps count, too."""

    messages: int = 0
    units: Counter[str] = field(default_factory=Counter)
    """Parts of text messages, by the country whose price they have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What notifications would do."""

    totals: Mapping[Channel, ChannelTotal]
    doubts: Mapping[ObjectId, Sequence[AcceptanceWarning]]
    """What would probably not be sent, by the notification's ID."""


def find_effects(notifications: Sequence[NewNotification], *, now: datetime) -> Effects:
    """Return what notifications would do if they were sent now, with up to two reads.

    Raises PyMongoError.
    """
    totals: dict[Channel, ChannelTotal] = {}
    windows = warnings.find_closed_windows(notifications, now=now)
    reached = warnings.read_limits(notifications, now=now).reached
    doubts: dict[ObjectId, list[AcceptanceWarning]] = {}
    for notification in notifications:
        own = [
            *warnings.find_suppressed(notification, are_channels_named=False),
            *windows.get(notification.id, ()),
            *_count(notification, totals),
            *(
                _over_limit(channel, usage.limit.name, usage.limit.overflow)
                for channel, usage in reached.get(notification.id, ())
            ),
        ]
        if own:
            doubts[notification.id] = own
    return Effects(totals=totals, doubts=doubts)


def _count(
    notification: NewNotification, totals: dict[Channel, ChannelTotal]
) -> list[AcceptanceWarning]:
    """Add the messages of a notification. Return those that are refused when they are sent."""
    refused = []
    for delivery in notification.deliveries:
        if delivery.status is not DeliveryStatus.PENDING:
            continue
        channel = delivery.channel
        total = totals.setdefault(channel, ChannelTotal())
        total.messages += 1
        if not channel.pays_by_part:
            continue
        text = text_of(
            channel,
            notification.content,
            data=notification.data,
            recipient=notification.recipient,
        )
        if text is None:
            continue
        country = paid_country(notification.recipient.address(channel))
        total.units[country] += encode_text(text).units
        problem = types.text_rules(notification.type).problem(encode(text, smart=False))
        if problem is not None:
            refused.append(warnings.refused_text(channel, problem))
    return refused


def _over_limit(channel: Channel, name: str, overflow: Overflow) -> AcceptanceWarning:
    what = "suppress" if overflow is Overflow.DROP else "hold"
    return AcceptanceWarning(
        channel=channel,
        code=FailureCode.OVER_LIMIT,
        detail=f"The limit {name} would {what} the message now.",
    )
