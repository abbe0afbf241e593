"""Which apps have a callback: asked for each batch, and so cached.

An app whose notification was accepted while its callback was being made is caught up with by
:func:`callbacks.registry.to_enrol`.
"""

from collections.abc import Set as AbstractSet

from bson import ObjectId

from notifyproject.db.collections import collection
from notifyproject.platform.cache import SharedCache


def is_any() -> bool:
    """Return whether any app has a callback. Raises PyMongoError."""
    return bool(_clients.get())


def has(client_id: ObjectId) -> bool:
    """Return whether an app has a callback, switched off or not. Raises PyMongoError."""
    return client_id in _clients.get()


def invalidate() -> None:
    """Make every process read them again: a callback was made or removed. Raises PyMongoError."""
    _clients.invalidate()


def _read() -> AbstractSet[ObjectId]:
    found = collection("callbacks").find({}, {"_id": 1})
    return frozenset(document["_id"] for document in found)


_clients = SharedCache("callbacks", _read)
