"""Puts another notification in the place of one of which nothing has been sent, in one write."""

from datetime import datetime
from typing import Any

from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from notifications.documents.notification import NotificationDocument, ReplacementDocument

from . import acceptance
from .acceptance import DuplicateEntity
from .actions import MATCH_UNSENT
from .collections import notifications
from .new_notifications import NewNotification
from .pipelines import Expression


def replace(
    new: NewNotification, *, current: NotificationDocument, request: str, now: datetime
) -> NotificationDocument | DuplicateEntity | None:
    """Replace ``current``, whose ID ``new`` has. Return the stored document.

    ``request`` is the digest of the client's request. Return None if ``current`` isn't there any
    more: something was sent or is being sent, nothing is pending, it was deleted or erased, or
    another request replaced it. Raises PyMongoError.
    """
    # A worker that has claimed a delivery has read the old content. Its claim is gone with the
    # delivery, so that it can't start an attempt.
    count = current["replaced"]["count"] if "replaced" in current else None
    document = _document(new, count=(count or 0) + 1, request=request, now=now)
    wanted: dict[str, Any] = {
        "_id": new.id,
        "client_id": new.client_id,
        "is_active": True,
        "replaced.count": count,
        **MATCH_UNSENT,
    }
    try:
        return notifications().find_one_and_update(
            wanted,
            [{"$replaceWith": {"$mergeObjects": [{"$literal": document}, _kept(document)]}}],
            return_document=ReturnDocument.AFTER,
            hint="_id_",
        )
    except DuplicateKeyError:
        return acceptance.find_duplicate(document)


def insert(
    new: NewNotification, *, request: str, now: datetime
) -> NotificationDocument | DuplicateEntity | None:
    """Store a notification under an ID that another request has reserved.

    Return None if that request has stored its own by now. Raises PyMongoError.
    """
    document = _document(new, count=1, request=request, now=now)
    try:
        notifications().insert_one(document)
    except DuplicateKeyError as error:
        is_of_entity = acceptance.ONCE_PER_ENTITY in str(error)
        return acceptance.find_duplicate(document) if is_of_entity else None
    return document


def _document(
    new: NewNotification, *, count: int, request: str, now: datetime
) -> NotificationDocument:
    document = acceptance.document_of(new, now=now)
    document["replaced"] = ReplacementDocument(count=count, at=now, request=request)
    return document


def _kept(document: NotificationDocument) -> dict[str, Expression]:
    """Return the fields that the notification keeps, and those that go on from its own."""
    own_revision = document.get("callback_revision", "$$REMOVE")
    own_mark = document.get("callback_due_at", "$$REMOVE")
    return {
        "created_at": "$created_at",
        "resent_as": "$resent_as",
        # The publisher must not clear the mark of events that it hasn't read.
        "callback_revision": {"$ifNull": [{"$add": ["$callback_revision", 1]}, own_revision]},
        "callback_due_at": {"$ifNull": ["$callback_due_at", own_mark]},
    }
