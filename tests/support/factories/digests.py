"""Digests."""

from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId

from domain.channels import Channel
from notifications.documents.notification import NotificationDocument
from notifications.store import digests
from notifications.store.digests import Opening, Window
from tests.support.factories.notifications import CLIENT, NOON

WINDOW = timedelta(minutes=30)


def opened(
    *, at: datetime = NOON, window: timedelta = WINDOW, **fields: Any
) -> NotificationDocument:
    """Open a digest. Return its document."""
    digest_id = ObjectId()
    opening = Opening(
        **{
            "group": str(digest_id),
            "client_id": CLIENT,
            "user_id": "ada",
            "type": "payment_confirmed",
            "channel": Channel.EMAIL,
            "is_test": False,
            "key": None,
            "windows": [Window(id=digest_id, ends_at=at + window)],
            "leader": None,
            "slides": None,
            "max_items": 20,
            "min_items": 2,
            **fields,
        }
    )
    return digests.open_digests([opening], now=at)[opening.group]
