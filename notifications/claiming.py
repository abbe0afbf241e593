"""What a worker claims, and what of it goes together."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from bson import ObjectId

from domain.states import Channel
from notifyproject.platform.process import worker_name

from . import store
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


def claim_alone(one: ObjectId, *, channel: Channel, now: datetime) -> list[Claimed]:
    """Claim a delivery that was claimed before and never sent, if it is still nobody's."""
    return store.claim(
        ids=[one], channel=channel, worker=worker_name(), now=now, with_suspects=True
    )


def left_alone(
    ids: Sequence[ObjectId], claims: Sequence[Claimed], *, channel: Channel, now: datetime
) -> list[ObjectId]:
    """Return what of these a claim of all has left out, for each is to go alone."""
    if len(claims) == len(ids):
        return []
    claimed = {one.notification_id for one in claims}
    left = [one for one in ids if one not in claimed]
    return store.suspects(ids=left, channel=channel, now=now)
