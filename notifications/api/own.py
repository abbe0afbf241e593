"""The notification that an address names, if it is the caller's."""

from typing import Any

from bson import ObjectId

from .. import queries
from ..store import Document
from .problems import not_found
from .schema import identifier

NOTIFICATION_ID = identifier("notification_id", "24 hex digits", pattern="[0-9a-fA-F]{24}")


def own_notification(request: Any, notification_id: str) -> Document:
    """Return a notification of the caller's; another's is not there, as far as it can tell."""
    if not ObjectId.is_valid(notification_id):
        raise not_found()
    document = queries.get(notification_id=ObjectId(notification_id), client_id=request.user.id)
    if document is None:
        raise not_found()
    return document
