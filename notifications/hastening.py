"""Sending now what waits for its time, or for another try."""

from datetime import datetime

from bson import ObjectId

from domain.states import NotificationStatus

from . import lanes, queries, store
from .store import Document


class NothingWaits(Exception):
    """Nothing of the notification waits for another time; the message says so."""


def run_now(*, notification_id: ObjectId, now: datetime) -> Document:
    """Make due now what waits: a scheduled notification whole, of another the channels that wait.

    Quiet hours, suppressions and an expiry hold all the same. Raises LookupError if there is none,
    NothingWaits, PyMongoError.
    """
    document = queries.one(notification_id=notification_id)
    if document is None:
        raise LookupError("no such notification")
    changed = None
    scheduled_at = document.get("scheduled_at")
    if (
        document["status"] == NotificationStatus.CREATED
        and scheduled_at is not None
        and scheduled_at > now
    ):
        # All of its times move, an expiry that counts from the send time included.
        changed = store.reschedule(notification_id=notification_id, send_at=now, now=now)
    changed = changed or store.bring_forward(notification_id=notification_id, now=now)
    if changed is None:
        raise NothingWaits("Nothing of it waits for another time.")
    lanes.announce([changed], now=now)
    return changed
