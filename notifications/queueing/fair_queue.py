"""Fair queue for each channel and priority, so that no client's burst delays another client.

A wake-up is a message that names deliveries. For a burst, a client gets a few *pulls* instead. A
pull names a client: its worker reads that client's next due batch from MongoDB, and puts the pull
back at the end of the queue while more is due. Thus a queue holds a few messages per client, in
turn.

A client has MAX_PULLS pull tokens per queue, kept in Valkey. A worker releases its token before it
reads: a delivery that is stored after the read then finds a free token for another pull. If Valkey
loses its data, the sweeper finds the deliveries.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bson import ObjectId

from domain import queues
from domain.channels import Channel
from domain.states import DeliveryStatus, Priority
from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifyproject.db.leases import unclaimed
from notifyproject.platform import broker, valkey
from notifyproject.platform.unique import new_token

from .wakeups import DELIVER, HORIZON, PULL, WAKEUP_SIZE, send_wakeups, wakeup_args

BURST = 200
"""Maximum of a client's deliveries in BURST_WINDOW that get wake-ups by ID. More are pulled."""
BURST_WINDOW = 10  # Seconds. With BURST: 20 a second by ID, in a queue that sends hundreds.
MAX_PULLS = 4  # Concurrent pulls of a client in a queue: the limit of its lead over other clients
RETRY_SLOT = MAX_PULLS
"""Slot of a pull that failed or found no capacity."""
TOKEN_LIFETIME = 30
"""Seconds from a pull's due time to its token's expiry. Then the pull was lost or is queued."""
_RELEASE_SCRIPT = Path(__file__).with_name("release_token.lua").read_text()
_ENQUEUE_SCRIPT = valkey.read_script(Path(__file__).with_name("enqueue.lua"))


@dataclass(frozen=True, slots=True)
class FairQueue:
    """A client's queue for one channel and priority."""

    client_id: ObjectId
    channel: Channel
    priority: Priority

    @property
    def name(self) -> str:
        """Name of the Celery queue."""
        return queues.queue_name(self.channel, self.priority)

    def key(self, suffix: str | int) -> str:
        """Return the Valkey key with this suffix."""
        return f"fair_queue:{self.client_id}:{self.name}:{suffix}"


@dataclass(frozen=True, slots=True)
class PullToken:
    """A pull's lease on a slot. The nonce tells it from later leases of the same slot."""

    slot: int
    nonce: str


def enqueue_wakeups(documents: Iterable[NotificationDocument], *, now: datetime) -> None:
    """Enqueue wake-ups for deliveries due within the horizon, or pulls for a burst."""
    groups: dict[tuple[ObjectId, str, str, datetime], list[ObjectId]] = {}
    for document in documents:
        for delivery in document["delivery"]:
            if delivery["status"] == DeliveryStatus.PENDING:
                at = max(delivery.get("next_attempt_at") or now, now)
                # Raw values as stored: a FairQueue for each of a thousand costs more than storing.
                group = (document["client_id"], delivery["channel"], document["priority"], at)
                groups.setdefault(group, []).append(document["_id"])
    for (client_id, channel, priority, at), ids in groups.items():
        queue = FairQueue(client_id, Channel(channel), Priority(priority))
        if not queue.channel.is_known:
            continue
        if at <= now:
            _enqueue_due(queue, ids, now=now)
        elif at - now <= HORIZON:
            _enqueue_scheduled(queue, ids, at=at, now=now)


def _enqueue_due(queue: FairQueue, ids: Sequence[ObjectId], *, now: datetime) -> None:
    """Enqueue wake-ups, or pulls for a burst. Valkey decides, and nobody waits for it."""
    if broker.is_rabbitmq():
        # A script in Valkey can't enqueue there.
        if _is_burst(queue, len(ids)):
            enqueue_pulls(queue, count=len(ids), now=now)
        else:
            send_wakeups(ids, channel=queue.channel, priority=queue.priority, now=now)
        return
    starts = range(0, len(ids), WAKEUP_SIZE) if len(ids) <= BURST else ()
    wakeups = [
        broker.encode(
            DELIVER,
            args=wakeup_args(ids[start : start + WAKEUP_SIZE], queue.channel, queue.priority),
            queue=queue.name,
        )
        for start in starts
    ]
    tokens = _new_tokens(_slots_for(len(ids)))
    pulls = [
        (token.nonce, broker.encode(PULL, args=_pull_args(queue, token), queue=queue.name))
        for token in tokens
    ]
    with suppress(valkey.Unavailable):
        valkey.run_later(
            _ENQUEUE_SCRIPT,
            keys=[queue.name, queue.key("count"), *(queue.key(token.slot) for token in tokens)],
            args=[
                len(ids),
                BURST_WINDOW,
                BURST,
                TOKEN_LIFETIME,
                *(part for pull in pulls for part in pull),
                *wakeups,
            ],
        )


def _enqueue_scheduled(
    queue: FairQueue, ids: Sequence[ObjectId], *, at: datetime, now: datetime
) -> None:
    # A pull takes no slot, which would block pulls for what falls due meanwhile.
    if _is_burst(queue, len(ids)):
        _send_pull(queue, None, at=at, now=now)
    else:
        send_wakeups(ids, channel=queue.channel, priority=queue.priority, at=at, now=now)


def enqueue_pulls(
    queue: FairQueue,
    *,
    count: int = MAX_PULLS * WAKEUP_SIZE,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Enqueue a pull in each free slot. Return whether the broker accepted all."""
    # If all slots are taken, workers are already pulling.
    return _acquire_and_send(queue, _slots_for(count), at=at or now, now=now)


def continue_pull(
    queue: FairQueue,
    token: PullToken | None,
    *,
    has_capacity: bool = False,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Enqueue the next pull after a finished one. Return whether the broker accepted it."""
    # The next pull takes the slot of the finished pull: if each pull filled all slots, pulls would
    # multiply. With ``has_capacity``, the process takes one more slot.
    slots: Sequence[int] = range(MAX_PULLS)
    if token and token.slot < MAX_PULLS:
        slots = [(token.slot + step) % MAX_PULLS for step in range(1 + has_capacity)]
    at = at or now
    # Without Valkey there are no slots, but the broker may still work.
    sent = _acquire_and_send(queue, slots, at=at, now=now)
    return sent or _send_pull(queue, None, at=at, now=now)


def retry_pull(queue: FairQueue, *, at: datetime, now: datetime) -> bool:
    """Enqueue a pull at ``at`` to replace one that failed or found no capacity."""
    # A slot of its own, so that newly accepted deliveries don't wait for this pull.
    return _acquire_and_send(queue, [RETRY_SLOT], at=at, now=now)


def schedule_pull(queue: FairQueue, *, at: datetime, now: datetime) -> bool:
    """Enqueue a pull for ``at``, unless there is one for the same second."""
    return _acquire_and_send(queue, [slot_at(at)], at=at, now=now)


def slot_at(at: datetime) -> int:
    """Return the slot of the pull for a future second. It takes the first part of what is due."""
    return MAX_PULLS * math.ceil(at.timestamp())


def release_token(queue: FairQueue, token: PullToken | None) -> None:
    """Release a pull's slot for newly accepted deliveries, unless another pull holds the slot."""
    if token is not None:
        with suppress(valkey.Unavailable):
            valkey.run(_RELEASE_SCRIPT, keys=[queue.key(token.slot)], args=[token.nonce])


def _acquire_and_send(
    queue: FairQueue, slots: Sequence[int], *, at: datetime, now: datetime
) -> bool:
    tokens = _new_tokens(slots)
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
    published = broker.publish(
        PULL, args=_pull_args(queue, token), queue=queue.name, at=at, now=now
    )
    if not published:
        release_token(queue, token)
    return published


def _pull_args(queue: FairQueue, token: PullToken | None) -> list[Any]:
    held = (token.slot, token.nonce) if token else None
    return [str(queue.client_id), str(queue.channel), str(queue.priority), held]


def _slots_for(count: int) -> range:
    # One pull per hundred new deliveries is enough: with a pull in every slot for fifty emails a
    # second, three of four pulls found nothing.
    return range(min(math.ceil(count / WAKEUP_SIZE), MAX_PULLS))


def _is_burst(queue: FairQueue, count: int) -> bool:
    """Count new deliveries; return whether the client exceeds BURST. False without Valkey."""
    try:
        args = [count, BURST_WINDOW, BURST, TOKEN_LIFETIME]
        return bool(valkey.run(_ENQUEUE_SCRIPT, keys=[queue.name, queue.key("count")], args=args))
    except valkey.Unavailable:
        return False


def _new_tokens(slots: Sequence[int]) -> list[PullToken]:
    return [PullToken(slot, new_token()) for slot in slots]


@dataclass(frozen=True, slots=True)
class Due:
    """A delivery that is to be claimed at ``at``."""

    notification_id: ObjectId
    channel: Channel
    at: datetime
    is_poison_candidate: bool = False  # Claimed before and never sent; isolated


def due(
    queue: FairQueue,
    *,
    until: datetime,
    now: datetime,
    limit: int,
    skip: int = 0,
    include_poison_candidates: bool = True,
) -> list[Due]:
    """Return a queue's unclaimed deliveries due by ``until``, oldest first."""
    # ``skip`` skips entries of the index, whose order is the result's.
    pending = {
        "channel": queue.channel.value,
        "status": DeliveryStatus.PENDING.value,
        "next_attempt_at": {"$lte": until},
        **unclaimed(now=now),
    }
    if not include_poison_candidates:
        pending["claim_count"] = 0
    found = NOTIFICATIONS().find(
        {
            "priority": queue.priority.value,
            "client_id": queue.client_id,
            "due_at": {"$lte": until},
            "delivery": {"$elemMatch": pending},
        },
        {"delivery.channel": 1, "delivery.next_attempt_at": 1, "delivery.claim_count": 1},
    )
    return [
        Due(
            document["_id"],
            queue.channel,
            delivery.get("next_attempt_at") or until,
            is_poison_candidate=delivery["claim_count"] > 0,
        )
        for document in found.hint("ntf_fair_queue").skip(skip).limit(limit)
        for delivery in document["delivery"]
        if delivery["channel"] == queue.channel
    ]


def waiting_clients(*, priority: Priority) -> list[ObjectId]:
    """Return the clients with open deliveries of a priority."""
    # One index lookup per client, each after the previous client: a distinct query would make
    # MongoDB read the whole index.
    clients: list[ObjectId] = []
    wanted: dict[str, Any] = {"priority": priority.value, "due_at": {"$exists": True}}
    while found := NOTIFICATIONS().find_one(
        wanted, {"client_id": 1}, sort=[("client_id", 1)], hint="ntf_fair_queue"
    ):
        clients.append(found["client_id"])
        wanted["client_id"] = {"$gt": clients[-1]}
    return clients
