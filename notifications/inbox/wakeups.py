"""Hints to open streams: "look at this inbox now", and nothing else.

A stream reads what there is from MongoDB, as it does once a minute without any hint. So one may be
lost, repeated or late, publishing never fails what was written before, and nothing that a
notification says ever comes to Valkey: a hint is the hash of whose inbox it is, or the id of a
token that was revoked.
"""

from collections.abc import Iterable, Sequence

import structlog
from bson import ObjectId

from domain.states import Channel
from notifyproject.db.collections import collection
from notifyproject.platform import valkey

from ..store import Document, Inbox, Settlement

log = structlog.get_logger(__name__)
VALKEY_CHANNEL = "inbox"
"""Every stream process hears all hints, and most concern none of its streams: one message tells of
a thousand accepted at once, and nobody has to subscribe to a person."""
MAX_INBOXES_PER_MESSAGE = 1_000
"""Inboxes in one message: 64 KB."""


def wake_accepted(documents: Iterable[Document]) -> None:
    """Tell streams of new notifications that are in their inboxes already."""
    _publish_inboxes([_inbox(document) for document in documents if "inbox_at" in document])


def wake_settled(settlements: Iterable[Settlement]) -> None:
    """Tell streams of what has been delivered in-app: it had been scheduled."""
    ids = [s.claimed.notification_id for s in settlements if s.claimed.channel is Channel.IN_APP]
    if ids:
        _publish_inboxes(_inboxes_of(ids))


def wake_inbox(inbox: Inbox) -> None:
    """Tell streams that something in an inbox was read or put away, or may not be shown now."""
    _publish_inboxes([inbox])


def wake_revoked(jti: str) -> None:
    """Tell streams that a token is revoked."""
    _publish_keys([jti])


def _inboxes_of(ids: Sequence[ObjectId]) -> list[Inbox]:
    found = collection("notifications").find({"_id": {"$in": list(ids)}}, _OWNER_FIELDS)
    return [_inbox(document) for document in found]


def _inbox(document: Document) -> Inbox:
    return Inbox(document["client_id"], document.get("user_id") or "")


def _publish_inboxes(inboxes: Iterable[Inbox]) -> None:
    _publish_keys(sorted({inbox.key for inbox in inboxes}))


def _publish_keys(keys: Sequence[str]) -> None:
    for start in range(0, len(keys), MAX_INBOXES_PER_MESSAGE):
        message = " ".join(keys[start : start + MAX_INBOXES_PER_MESSAGE])
        try:
            with valkey.connection() as client:
                client.publish(VALKEY_CHANNEL, message)
        except valkey.Unavailable:
            log.info("inbox_wakeups_not_published", count=len(keys) - start)
            return


_OWNER_FIELDS = {"client_id": 1, "user_id": 1}
