"""Wakes open inbox streams. A wake-up may be lost, repeated, or late: it only causes a read.

A stream also reads once a minute without a wake-up. Valkey stores only hashes of inboxes and IDs of
tokens.
"""

from collections.abc import Iterable, Sequence

import structlog

from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifications.store.claims import Settlement
from notifications.store.inbox import Inbox
from notifyproject.platform import valkey

log = structlog.get_logger(__name__)
VALKEY_CHANNEL = "inbox"
"""One channel for all inboxes: every stream process receives every wake-up. One message covers
1,000 accepted notifications, and streams need no subscription per recipient."""
MAX_INBOXES_PER_MESSAGE = 1_000  # Inboxes in one message: 64 KB


def send_inbox_wakeups(documents: Iterable[NotificationDocument]) -> None:
    """Wake the streams of the inboxes that these new or changed notifications are in."""
    shown = ("inbox_at", "snoozed_until")
    send_owner_wakeups(
        document for document in documents if any(name in document for name in shown)
    )


def send_owner_wakeups(documents: Iterable[NotificationDocument]) -> None:
    """Wake the streams of the inboxes of these notifications' recipients."""
    _publish_inboxes([_inbox(document) for document in documents])


def send_settled_wakeups(settlements: Iterable[Settlement]) -> None:
    """Wake the streams of the inboxes to which scheduled notifications were just delivered."""
    ids = [s.claimed.notification_id for s in settlements if s.claimed.channel.is_inbox]
    if ids:
        owner = {"client_id": 1, "user_id": 1}
        found = NOTIFICATIONS().find({"_id": {"$in": ids}}, owner)
        _publish_inboxes([_inbox(document) for document in found])


def send_inbox_wakeup(inbox: Inbox) -> None:
    """Wake the streams of an inbox after a change."""
    _publish_inboxes([inbox])


def send_revocation(jti: str) -> None:
    """Wake streams so that those opened with a revoked token end."""
    _publish_keys([jti])


def _inbox(document: NotificationDocument) -> Inbox:
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
