"""Keeps what test keys sent, as it was rendered, for their test outbox."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from notifications.content import redaction
from notifications.store import sent_tests
from notifications.store.sent_tests import SentTest
from providers.contract import Message, SendResult, SendTarget

from .sending import PreparedDelivery, Results


def keep(sent: Sequence[Results], *, now: datetime) -> None:
    """Store the messages that a provider accepted, one for each target."""
    sent_tests.add(
        SentTest(
            client_id=delivery.claimed.client_id,
            notification_id=delivery.claimed.notification_id,
            user_id=delivery.claimed.user_id,
            type=delivery.claimed.type,
            channel=delivery.claimed.channel,
            address=_address(target),
            content=_content(delivery),
            sent_at=now,
        )
        for delivery, results in sent
        for target in delivery.targets
        if any(
            isinstance(result.outcome, SendResult) and result.device_id == target.device_id
            for result in results
        )
    )


def _address(target: SendTarget) -> str:
    # A device's token and a room's webhook are secrets: their IDs stand for them.
    return target.device_id or target.room or target.address


def _content(delivery: PreparedDelivery) -> dict[str, Any]:
    content = _fields(delivery.message)
    if delivery.secret is None:
        return content
    return redaction.remove_secrets_from(content, delivery.secret)


def _fields(message: Message) -> dict[str, Any]:
    return {name: value for name, value in asdict(message).items() if value not in (None, ())}
