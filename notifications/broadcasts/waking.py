"""Messages that say "go on with this broadcast"; the sweep finds what none has reached."""

from datetime import datetime, timedelta

from bson import ObjectId

from domain import queues
from notifyproject.db.collections import collection
from notifyproject.db.leases import unclaimed

from .. import hints
from .progress import ACTIVE

HORIZON = timedelta(seconds=hints.SOON)
AT_ONCE = 100
"""Broadcasts that one sweep calls for. So many at once would wait for each other anyway."""


def call(broadcast_id: ObjectId, *, at: datetime, now: datetime) -> bool:
    """Have a worker go on with a broadcast at an instant; return whether one was told.

    Nobody is told of what lies further ahead than a minute: the sweep is.
    """
    if at - now > HORIZON:
        return False
    return hints.publish_broadcast(broadcast_id, at=at if at > now else None, now=now)


def wake(*, now: datetime) -> int:
    """Have workers go on with each broadcast that is or falls due within a minute.

    Those whose message was lost, or whose worker was: their leases have ended. Returns how many
    are due and nobody could be told of.
    """
    found = due(until=now + HORIZON, now=now)
    waiting = hints.depth(queues.BROADCASTS) if found else 0
    if waiting is not None and waiting >= AT_ONCE:
        # Repeats by then: a message for each of them is there already.
        return 0
    return sum(not call(one, at=at, now=now) and at <= now for one, at in found)


def due(*, until: datetime, now: datetime) -> list[tuple[ObjectId, datetime]]:
    """Return the broadcasts that nobody is at and that are due by then, the oldest first."""
    wanted = {
        "status": {"$in": ACTIVE},
        "due_at": {"$lte": until},
        **unclaimed(now=now),
    }
    found = collection("broadcasts").find(wanted, {"due_at": 1}).sort("due_at", 1)
    return [(one["_id"], one["due_at"]) for one in found.hint("brc_due").limit(AT_ONCE)]
