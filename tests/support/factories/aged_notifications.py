"""Notifications that say much and have ended, and the days that pass."""

from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.content import Attachment, Content, Recipient
from domain.states import Category, Channel, DeliveryStatus
from notifications import store
from notifications.store import DeliveryReceipt, Document
from notifyproject.db.collections import collection
from privacy import content_removal
from privacy.content_removal import ContentRemoval
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

EMAIL = Channel.EMAIL
S = DeliveryStatus
DAY, TICK = timedelta(days=1), timedelta(milliseconds=1)
DUE = NOON + 30 * DAY + TICK
"""When what was last touched at noon is due."""
SAID = Content(
    subject="Paid",
    body="Your payment has arrived.",
    template_id="payment_confirmed",
    template_version=3,
    image_url="https://example.com/a.png",
    deep_link="app://orders/1",
    payload={"order": "1"},
    reply_to="us@example.com",
    attachments=(
        Attachment(url="https://files.example.com/1", filename="1.pdf", content_type="a/b"),
    ),
)
WHOM = Recipient(
    email="ada@example.com",
    phone="+351912345678",
    name="Ada",
    locale="pt",
    timezone="Europe/Lisbon",
    device_ids=("d" * 64,),
)
FULL: dict[str, Any] = {"content": SAID, "recipient": WHOM, "data": {"amount": "49.90"}}


def remove(*, at: datetime = DUE, **options: Any) -> ContentRemoval:
    """Let the removal run."""
    return content_removal.remove_expired_content(now=at, **options)


def ended(status: DeliveryStatus = S.FAILED, **fields: Any) -> Document:
    """Return a notification that says much, and has ended at noon."""
    return factories.settled(status, **{**FULL, **fields})


def is_removed(document: Document) -> bool:
    """Return whether what a notification said was removed."""
    return "content_removed_at" in factories.read(document["_id"])


def policy(category: Category, **days: int) -> None:
    """Give a category days of its own, as the console does."""
    collection("retention_policies").update_one(
        {"_id": category.value}, {"$set": days}, upsert=True
    )


def report(
    notification_id: ObjectId, status: DeliveryStatus, *, at: datetime = NOON
) -> DeliveryReceipt:
    """Return what a provider says of a mail, in words that name the person."""
    reference = store.AttemptReference(notification_id, EMAIL, 1)
    return DeliveryReceipt(
        reference=reference, status=status, at=at, provider="sendgrid", reason="ada@ is gone"
    )
