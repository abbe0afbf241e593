"""The test outbox: messages that test keys sent, as they were rendered."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo.errors import BulkWriteError

from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.documents.notification import NotificationDocument
from notifications.documents.records import SentTestMessageDocument
from notifyproject.db.collections import is_duplicate

from .collections import test_outbox

KEPT = timedelta(days=7)
"""How long an entry stays, unless its client deletes it or its notification goes before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentTest:
    """A message that a test key sent, about to be stored."""

    id: ObjectId = field(default_factory=ObjectId)
    client_id: ObjectId
    notification_id: ObjectId
    user_id: str | None
    type: str
    channel: Channel
    address: str
    """The address; of a push the device's ID, of a room the room's, of an inbox the user's."""
    content: Mapping[str, Any]
    """What the provider got, without sensitive values."""
    sent_at: datetime


def add(messages: Iterable[SentTest]) -> None:
    """Store messages that were just sent, those that aren't stored yet."""
    documents = [_document(message) for message in messages]
    if not documents:
        return
    try:
        test_outbox().insert_many(documents, ordered=False)
    except BulkWriteError as error:
        if not is_duplicate(error):
            raise


def add_delivered(documents: Iterable[NotificationDocument]) -> None:
    """Store the messages of test notifications that are in the inbox as soon as accepted."""
    add(
        SentTest(
            # A repeated request stores it once.
            id=document["_id"],
            client_id=document["client_id"],
            notification_id=document["_id"],
            user_id=document.get("user_id"),
            type=document["type"],
            channel=Channel(delivery["channel"]),
            address=document.get("user_id", ""),
            content=_inbox_content(document),
            sent_at=delivery.get("sent_at") or document["created_at"],
        )
        for document in documents
        if document.get("is_test")
        for delivery in document["delivery"]
        if delivery["status"] == DeliveryStatus.DELIVERED
    )


def remove(ids: Sequence[ObjectId]) -> None:
    """Delete the messages of these notifications. Idempotent."""
    test_outbox().delete_many({"notification_id": {"$in": list(ids)}})


def clear(*, client_id: ObjectId) -> int:
    """Empty the outbox of a client. Return how many messages were in it."""
    return test_outbox().delete_many({"client_id": client_id}).deleted_count


def _document(message: SentTest) -> SentTestMessageDocument:
    document: SentTestMessageDocument = {
        "_id": message.id,
        "client_id": message.client_id,
        "notification_id": message.notification_id,
        "type": message.type,
        "channel": message.channel.value,
        "address": message.address,
        "content": dict(message.content),
        "sent_at": message.sent_at,
        "purge_at": message.sent_at + KEPT,
    }
    if message.user_id is not None:
        document["user_id"] = message.user_id
    return document


def _inbox_content(document: NotificationDocument) -> dict[str, Any]:
    content = document["content"]
    found = {
        "subject": content.get("subject"),
        "text": content.get("body"),
        "image_url": content.get("image_url"),
        "deep_link": content.get("deep_link"),
        "payload": content.get("payload"),
    }
    return {name: value for name, value in found.items() if value is not None}
