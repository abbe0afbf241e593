"""Hints to workers: "look at what this app is to be told", and nothing else.

One may be lost, repeated or late: what is due stands in MongoDB, and the sweep finds it.
"""

from datetime import datetime

from bson import ObjectId

from domain.queues import CALLBACKS
from notifyproject import publishing

CALL = "notifications.call_back"


def publish(client_id: ObjectId, *, at: datetime | None = None, now: datetime) -> bool:
    """Tell a worker to call an app back, now or at an instant less than a minute ahead.

    Returns whether the broker took it.
    """
    return publishing.publish(CALL, args=[str(client_id)], queue=CALLBACKS, at=at, now=now)
