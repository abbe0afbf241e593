"""Wake-ups of open inbox streams, which may be lost, repeated, or late: each is only a read.

A stream also reads once a minute without one. Valkey holds only hashes of inboxes and ids of
tokens.
"""

from collections.abc import Iterable, Sequence

import structlog

from domain.states import Channel
from notifyproject.db.collections import collection
from notifyproject.platform import valkey

from ..store import Document, Inbox, Settlement

log = structlog.get_logger(__name__)
VALKEY_CHANNEL = "inbox"
"""One channel for all inboxes: every stream process receives every wake-up. One message covers
1,000 accepted notifications, and streams need no subscription per recipient."""
MAX_INBOXES_PER_MESSAGE = 1_000  # Inboxes in one message: 64 KB


def wake_inboxes_of(documents: Iterable[Document]) -> None:
    """Wake streams for new or changed notifications, those that are in an inbox."""
    _publish_inboxes([_inbox(document) for document in documents if "inbox_at" in document])


def wake_settled(settlements: Iterable[Settlement]) -> None:
    """Wake streams for scheduled notifications that were delivered in-app."""
    ids = [s.claimed.notification_id for s in settlements if s.claimed.channel is Channel.IN_APP]
    if ids:
        owner = {"client_id": 1, "user_id": 1}
        found = collection("notifications").find({"_id": {"$in": ids}}, owner)
        _publish_inboxes([_inbox(document) for document in found])


def wake_inbox(inbox: Inbox) -> None:
    """Wake the streams of an inbox after a change."""
    _publish_inboxes([inbox])


def wake_revoked(jti: str) -> None:
    """Wake streams to end those of a revoked token."""
    _publish_keys([jti])


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
