"""What a worker claims, and what of it goes together."""

import os
import socket
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache

from bson import ObjectId

from . import store
from .states import Channel
from .store import Claimed

MAX_BATCH = 100
"""Deliveries one claim takes: 100 in 4 rounds of 25 or more requests end within the lease."""


def batches(ids: Sequence[ObjectId]) -> Iterator[list[ObjectId]]:
    """Yield these deliveries, each once, as many at a time as one claim takes."""
    unique = list(dict.fromkeys(ids))
    for start in range(0, len(unique), MAX_BATCH):
        yield unique[start : start + MAX_BATCH]


def claim(ids: Sequence[ObjectId], *, channel: Channel, now: datetime) -> list[Claimed]:
    """Claim what of these deliveries is due and nobody else's, in this process's name."""
    return store.claim(ids=ids, channel=channel, worker=worker_name(), now=now)


def apart(claims: Sequence[Claimed]) -> tuple[Sequence[Claimed], Sequence[Claimed]]:
    """Return what goes as a batch, and what each goes alone.

    Those are claimed anew after a claim that came to nothing: their worker may have died of one of
    them, which is to take no other along.
    """
    if len(claims) == 1:
        return claims, []
    fresh = [one for one in claims if one.claim_count == 1]
    return fresh, [one for one in claims if one.claim_count > 1]


@cache
def worker_name() -> str:
    """Return the name this process signs its claims with."""
    return f"{socket.gethostname()}:{os.getpid()}"
