"""Fair queue for each channel and priority, so that no client's burst delays another client.

A few deliveries get wake-ups by id. A burst gets a few *pulls* instead. A pull names a client: its
worker reads that client's next due batch from MongoDB, and puts the pull back at the end of the
queue while there is more. So a queue holds a few messages for each client, in turn.

A client has MAX_PULLS pull tokens in a queue, kept in Valkey. A worker releases its token before
it looks, and a request that is accepted meanwhile takes a new one: nothing is missed in between.
The sweeper finds what a lost Valkey took along.
"""

import math
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bson import ObjectId

from domain import queues
from domain.states import Channel, DeliveryStatus, Priority
from notifyproject.db.collections import collection, unclaimed
from notifyproject.platform import valkey

from ..store import Document
from . import wakeups as queueing_wakeups
from .wakeups import HORIZON, WAKEUP_SIZE, send_wakeups

BURST = 200
"""Deliveries of a client that a lane takes by id within WINDOW; what goes beyond is drawn."""
BURST_WINDOW = 10
"""Seconds. With CROWD: 20 a second by id, in a lane that sends hundreds."""
MAX_PULLS = 4
"""Draws of a client that wait in a lane at most: so far ahead of another's it is."""
AHEAD_SLOT, RETRY_SLOT = MAX_PULLS, 2 * MAX_PULLS
"""The slots of the draw that waits for what falls due next, and of one that found no room."""
TOKEN_LIFETIME = 30
"""Seconds after its time after which a slot is free again: its draw was lost, or waits for long."""
_RELEASE_SCRIPT = (Path(__file__).with_name("release_token.lua")).read_text()


@dataclass(frozen=True, slots=True)
class FairQueue:
    """A client's part of a channel and priority."""

    client_id: ObjectId
    channel: Channel
    priority: Priority

    def key(self, suffix: str | int) -> str:
        """Return the name of something about this lane in Valkey."""
        return f"lane:{self.client_id}:{queues.queue_name(self.channel, self.priority)}:{suffix}"


@dataclass(frozen=True, slots=True)
class PullToken:
    """A draw's hold on a slot; the number tells it from one that was given the slot later."""

    slot: int
    nonce: str


def enqueue_wakeups(documents: Iterable[Document], *, now: datetime) -> None:
    """Tell workers of what is due within a minute, by id or, of a crowd, by draws."""
    groups: dict[tuple[ObjectId, str, str, datetime], list[ObjectId]] = {}
    for document in documents:
        for delivery in document["delivery"]:
            if delivery["status"] == DeliveryStatus.PENDING:
                at = max(delivery["next_attempt_at"], now)
                # As they are stored: to make a lane of each of a thousand costs more than to store.
                group = (document["client_id"], delivery["channel"], document["priority"], at)
                groups.setdefault(group, []).append(document["_id"])
    for (client_id, channel, priority, at), ids in groups.items():
        queue = FairQueue(client_id, Channel(channel), Priority(priority))
        if at - now > HORIZON:
            continue
        if not _is_burst(queue, len(ids)):
            send_wakeups(ids, channel=queue.channel, priority=queue.priority, at=at, now=now)
        elif at <= now:
            enqueue_pulls(queue, count=len(ids), now=now)
        else:
            # A slot would keep what is due meanwhile from being drawn.
            _send_pull(queue, None, at=at, now=now)


def enqueue_pulls(
    queue: FairQueue,
    *,
    count: int = MAX_PULLS * WAKEUP_SIZE,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Have workers draw from a lane, as many as have a free slot; return whether some will.

    Where all slots are taken, workers are at it already. For ``count`` that have just come one draw
    for each hundred is enough: of fifty mails a second each called in all, and three in four draws
    found nothing.
    """
    return _acquire_and_send(
        queue, range(min(math.ceil(count / WAKEUP_SIZE), MAX_PULLS)), at=at or now, now=now
    )


def continue_pull(
    queue: FairQueue,
    token: PullToken | None,
    *,
    has_capacity: bool = False,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Have a worker draw where a draw has left off; return whether one will.

    In that draw's slot: if every draw called in all others, there would be more with each. One more
    is called in where the process ``has_room`` for it.
    """
    slots: Sequence[int] = range(MAX_PULLS)
    if token and token.slot < MAX_PULLS:
        slots = [(token.slot + step) % MAX_PULLS for step in range(1 + has_capacity)]
    # Without Valkey nobody knows of slots, and the broker may be well all the same.
    return _acquire_and_send(queue, slots, at=at or now, now=now) or _send_pull(
        queue, None, at=at or now, now=now
    )


def retry_pull(queue: FairQueue, *, at: datetime, now: datetime) -> bool:
    """Have one worker draw the oldest at an instant, instead of a draw that came to nothing.

    In a slot of its own: what is accepted until then does not wait for that instant.
    """
    return _acquire_and_send(queue, [RETRY_SLOT], at=at, now=now)


def schedule_pull(queue: FairQueue, *, at: datetime, now: datetime) -> bool:
    """Have one worker draw from a lane at an instant within a minute; return whether one will.

    One that waits for another instant already is enough: it looks ahead itself.
    """
    return _acquire_and_send(queue, [AHEAD_SLOT], at=at, now=now)


def release_token(queue: FairQueue, token: PullToken | None) -> None:
    """Free a draw's slot: what is accepted from here on takes it anew.

    If it was given to another meanwhile, as this one was thought lost, it stays with that one.
    """
    if token is not None:
        with suppress(valkey.Unavailable):
            valkey.run(_RELEASE_SCRIPT, keys=[queue.key(token.slot)], args=[token.nonce])


def _acquire_and_send(
    queue: FairQueue, slots: Sequence[int], *, at: datetime, now: datetime
) -> bool:
    """Publish a draw for each of these slots that is free; return whether a draw is on its way."""
    tokens = [PullToken(slot, secrets.token_hex(8)) for slot in slots]
    ttl_seconds = math.ceil((at - now).total_seconds()) + TOKEN_LIFETIME
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            for token in tokens:
                pipe.set(queue.key(token.slot), token.nonce, nx=True, ex=ttl_seconds)
            acquired = pipe.execute()
    except valkey.Unavailable:
        return False
    free = [token for token, is_acquired in zip(tokens, acquired, strict=True) if is_acquired]
    published = [_send_pull(queue, token, at=at, now=now) for token in free]
    return all(published)


def _send_pull(queue: FairQueue, token: PullToken | None, *, at: datetime, now: datetime) -> bool:
    published = queueing_wakeups.send_pull(
        client_id=queue.client_id,
        channel=queue.channel,
        priority=queue.priority,
        token=(token.slot, token.nonce) if token else None,
        at=at,
        now=now,
    )
    if not published:
        release_token(queue, token)
    return published


def _is_burst(queue: FairQueue, count: int) -> bool:
    """Return whether a client has more in a lane, with these, than is hinted at by id."""
    try:
        with valkey.connection() as client, client.pipeline(transaction=False) as pipe:
            pipe.incrby(queue.key("count"), count)
            pipe.expire(queue.key("count"), BURST_WINDOW, nx=True)
            total, _ = pipe.execute()
    except valkey.Unavailable:
        return False
    return int(total) > BURST


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery that is to be claimed at ``at``."""

    notification_id: ObjectId
    channel: Channel
    at: datetime
    is_poison_candidate: bool = False
    """It was claimed before and never sent, and is to go alone."""


def due(
    *,
    client_id: ObjectId,
    channel: Channel,
    priority: Priority,
    until: datetime,
    now: datetime,
    limit: int,
    skip: int = 0,
    include_poison_candidates: bool = True,
) -> list[Due]:
    """Return a client's deliveries that are or will be due by ``until`` and are unclaimed.

    The oldest come first: the index is read in its order. ``skip``: so many of them are left out.
    Suspects were claimed before and never sent.
    """
    unsuspected: dict[str, Any] = {} if include_poison_candidates else {"claim_count": 0}
    found = (
        collection("notifications")
        .find(
            {
                "priority": priority.value,
                "client_id": client_id,
                "due_at": {"$lte": until},
                "delivery": {
                    "$elemMatch": {
                        "channel": channel.value,
                        "status": DeliveryStatus.PENDING.value,
                        "next_attempt_at": {"$lte": until},
                        **unclaimed(now=now),
                        **unsuspected,
                    }
                },
            },
            {"delivery.channel": 1, "delivery.next_attempt_at": 1, "delivery.claim_count": 1},
        )
        .hint("ntf_lane")
        .skip(skip)
        .limit(limit)
    )
    return [
        Due(document["_id"], channel, delivery["next_attempt_at"], delivery["claim_count"] > 0)
        for document in found
        for delivery in document["delivery"]
        if delivery["channel"] == channel
    ]


def waiting_clients(*, priority: Priority) -> list[ObjectId]:
    """Return the clients that have anything open of a priority.

    The index is entered once for each, wherever the last one's work ends: asked for as distinct
    values, MongoDB would read all of it.
    """
    clients: list[ObjectId] = []
    wanted: dict[str, Any] = {"priority": priority.value, "due_at": {"$exists": True}}
    while found := collection("notifications").find_one(
        wanted, {"client_id": 1}, sort=[("client_id", 1)], hint="ntf_lane"
    ):
        clients.append(found["client_id"])
        wanted["client_id"] = {"$gt": clients[-1]}
    return clients
