"""Which apps want to be called back at all: asked for each batch, and so remembered.

A process that has not heard of a new callback yet is caught up with by
:func:`callbacks.registry.to_enrol`.
"""

import time
from collections.abc import Set as AbstractSet

from bson import ObjectId

from notifyproject.db.collections import collection

MEMORY = 2.0
"""Seconds after which it is read anew."""


class _Memory:
    """What this process has read, and when."""

    def __init__(self) -> None:
        self.read_at = float("-inf")
        self.clients: AbstractSet[ObjectId] = frozenset()


_memory = _Memory()


def is_any() -> bool:
    """Return whether any app has a callback. Raises PyMongoError."""
    return bool(_clients())


def has(client_id: ObjectId) -> bool:
    """Return whether an app has a callback, switched off or not. Raises PyMongoError."""
    return client_id in _clients()


def forget() -> None:
    """Read anew at the next question: a callback was made or removed here."""
    _memory.read_at = float("-inf")


def _clients() -> AbstractSet[ObjectId]:
    now = time.monotonic()
    if now - _memory.read_at >= MEMORY:
        found = collection("callbacks").find({}, {"_id": 1})
        _memory.clients = frozenset(document["_id"] for document in found)
        _memory.read_at = now
    return _memory.clients
