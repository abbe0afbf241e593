"""The ids of resends. Pure."""

import hashlib

from bson import ObjectId

from .records import Operation


def resend_id(operation: Operation, notification_id: ObjectId) -> ObjectId:
    """Return the id of the notification that an operation makes of another one, always the same.

    Like any id it begins with a time: lists and searches are ordered by that.
    """
    digest = hashlib.sha256(f"{operation.id}:{notification_id}".encode()).digest()
    seconds = ObjectId.from_datetime(operation.frozen_at).binary[:4]
    return ObjectId(seconds + digest[:8])
