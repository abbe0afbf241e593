"""What clients and staff do to an open digest: send it now, or cancel its members."""

from datetime import datetime

from bson import ObjectId

from notifications.documents.policies import DigestDocument
from notifications.store import digests

from .. import queries
from ..queueing import wakeups
from .actions import InvalidStateError

NOT_OPEN = "The digest isn't open any more."


def close(digest_id: ObjectId, *, now: datetime) -> DigestDocument:
    """End an open digest's window now. A worker sends it in a few seconds.

    Raises LookupError for an unknown digest and InvalidStateError if it isn't open.
    """
    return _end(digest_id, is_cancelled=False, now=now)


def cancel(digest_id: ObjectId, *, now: datetime) -> DigestDocument:
    """End an open digest's window now, and have its members cancelled. Raises as ``close``."""
    return _end(digest_id, is_cancelled=True, now=now)


def _end(digest_id: ObjectId, *, is_cancelled: bool, now: datetime) -> DigestDocument:
    ended = digests.end_digest(digest_id, is_cancelled=is_cancelled, now=now)
    if ended is None:
        if queries.digest(digest_id) is None:
            raise LookupError(digest_id)
        raise InvalidStateError(NOT_OPEN)
    wakeups.publish_digests(at=wakeups.wakeup_time(ended["due_at"], now=now), now=now)
    return ended
