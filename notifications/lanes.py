"""Lanes: one per channel and priority, in which no client's crowd holds up another client.

A few deliveries are hinted at by id. A crowd would fill the queue in front of everybody else, so it
gets a handful of *draws* instead. A draw names a client: the worker that takes it looks in MongoDB
for that client's next hundred, and sends the draw back to the end of the queue while there are
more. So a queue holds a few messages for each client, and its order is a round of the clients.

Each client has DRAWS slots in a lane, kept in Valkey. A worker frees the slot before it looks, and
whoever has accepted something meanwhile takes it anew: nothing falls between the two. What falls
all the same, with a lost Valkey, is found by the sweep. A process works at a few batches of a
client: so many chains of draws there are, each calling in the next one, and no more.
"""

import math
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from bson import ObjectId

from domain import queues
from domain.states import Channel, DeliveryStatus, Priority
from notifyproject.platform import valkey

from . import hints
from .store import Document

HINT = 100
"""Deliveries in one hint: what one claim takes."""
CROWD = 200
"""Deliveries of a client that a lane takes by id within WINDOW; what goes beyond is drawn."""
WINDOW = 10
"""Seconds. With CROWD: 20 a second by id, in a lane that sends hundreds."""
DRAWS = 4
"""Draws of a client that wait in a lane at most: so far ahead of another's it is."""
AHEAD, BACK = DRAWS, 2 * DRAWS
"""The slots of the draw that waits for what falls due next, and of one that found no room."""
SLOT_LIFE = 30
"""Seconds after its time after which a slot is free again: its draw was lost, or waits for long."""
HORIZON = timedelta(seconds=hints.SOON)
_LEAVE = (Path(__file__).parent / "lua" / "lane_leave.lua").read_text()


@dataclass(frozen=True, slots=True)
class Lane:
    """A client's part of a channel and priority."""

    client_id: ObjectId
    channel: Channel
    priority: Priority

    def key(self, what: str | int) -> str:
        """Return the name of something about this lane in Valkey."""
        return f"lane:{self.client_id}:{queues.queue_name(self.channel, self.priority)}:{what}"


@dataclass(frozen=True, slots=True)
class Ticket:
    """A draw's hold on a slot; the number tells it from one that was given the slot later."""

    slot: int
    number: str


@dataclass(frozen=True, slots=True)
class Wakeup:
    """A delivery that is to be looked at again at ``at``."""

    notification_id: ObjectId
    channel: Channel
    priority: Priority
    at: datetime


def announce(documents: Iterable[Document], *, now: datetime) -> None:
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
        lane = Lane(client_id, Channel(channel), Priority(priority))
        if at - now > HORIZON:
            continue
        if not _is_crowd(lane, len(ids)):
            publish(ids, channel=lane.channel, priority=lane.priority, at=at, now=now)
        elif at <= now:
            invite(lane, count=len(ids), now=now)
        else:
            # A slot would keep what is due meanwhile from being drawn.
            _draw(lane, None, at=at, now=now)


def publish(
    ids: Sequence[ObjectId],
    *,
    channel: Channel,
    priority: Priority,
    at: datetime | None = None,
    now: datetime,
    size: int = HINT,
) -> int:
    """Publish hints of up to ``size`` deliveries; return for how many the broker took one."""
    for start in range(0, len(ids), size):
        some = ids[start : start + size]
        if not hints.publish(some, channel=channel, priority=priority, at=at, now=now):
            return start
    return len(ids)


def wake(wakeups: Iterable[Wakeup], *, now: datetime) -> None:
    """Publish hints for what is to be looked at again within a minute."""
    groups: dict[tuple[Channel, Priority, datetime], list[ObjectId]] = {}
    for one in wakeups:
        group = (one.channel, one.priority, moment(one.at, now=now))
        groups.setdefault(group, []).append(one.notification_id)
    for (channel, priority, at), ids in groups.items():
        publish(ids, channel=channel, priority=priority, at=at, now=now)


def invite(
    lane: Lane, *, count: int = DRAWS * HINT, at: datetime | None = None, now: datetime
) -> bool:
    """Have workers draw from a lane, as many as have a free slot; return whether some will.

    Where all slots are taken, workers are at it already. For ``count`` that have just come one draw
    for each hundred is enough: of fifty mails a second each called in all, and three in four draws
    found nothing.
    """
    return _take(lane, range(min(math.ceil(count / HINT), DRAWS)), at=at or now, now=now)


def go_on(
    lane: Lane,
    ticket: Ticket | None,
    *,
    has_room: bool = False,
    at: datetime | None = None,
    now: datetime,
) -> bool:
    """Have a worker draw where a draw has left off; return whether one will.

    In that draw's slot: if every draw called in all others, there would be more with each. One more
    is called in where the process ``has_room`` for it.
    """
    slots: Sequence[int] = range(DRAWS)
    if ticket and ticket.slot < DRAWS:
        slots = [(ticket.slot + step) % DRAWS for step in range(1 + has_room)]
    # Without Valkey nobody knows of slots, and the broker may be well all the same.
    return _take(lane, slots, at=at or now, now=now) or _draw(lane, None, at=at or now, now=now)


def come_back(lane: Lane, *, at: datetime, now: datetime) -> bool:
    """Have one worker draw the oldest at an instant, instead of a draw that came to nothing.

    In a slot of its own: what is accepted until then does not wait for that instant.
    """
    return _take(lane, [BACK], at=at, now=now)


def look_again(lane: Lane, *, at: datetime, now: datetime) -> bool:
    """Have one worker draw from a lane at an instant within a minute; return whether one will.

    One that waits for another instant already is enough: it looks ahead itself.
    """
    return _take(lane, [AHEAD], at=at, now=now)


def leave(lane: Lane, ticket: Ticket | None) -> None:
    """Free a draw's slot: what is accepted from here on takes it anew.

    If it was given to another meanwhile, as this one was thought lost, it stays with that one.
    """
    if ticket is not None:
        with suppress(valkey.Unavailable):
            valkey.run(_LEAVE, keys=[lane.key(ticket.slot)], args=[ticket.number])


def moment(at: datetime, *, now: datetime) -> datetime:
    """Return when to look: now for what is due, else the end of the second it falls due in."""
    if at <= now:
        return now
    full = at.replace(microsecond=0) + timedelta(seconds=1 if at.microsecond else 0)
    return min(full, max(now + HORIZON, at))


def _take(lane: Lane, slots: Sequence[int], *, at: datetime, now: datetime) -> bool:
    """Publish a draw for each of these slots that is free; return whether a draw is on its way."""
    tickets = [Ticket(slot, secrets.token_hex(8)) for slot in slots]
    life = math.ceil((at - now).total_seconds()) + SLOT_LIFE
    try:
        with valkey.connection() as lent, lent.pipeline(transaction=False) as pipe:
            for ticket in tickets:
                pipe.set(lane.key(ticket.slot), ticket.number, nx=True, ex=life)
            taken = pipe.execute()
    except valkey.Unavailable:
        return False
    free = [ticket for ticket, is_ours in zip(tickets, taken, strict=True) if is_ours]
    published = [_draw(lane, ticket, at=at, now=now) for ticket in free]
    return all(published)


def _draw(lane: Lane, ticket: Ticket | None, *, at: datetime, now: datetime) -> bool:
    published = hints.publish_draw(
        client_id=lane.client_id,
        channel=lane.channel,
        priority=lane.priority,
        ticket=(ticket.slot, ticket.number) if ticket else None,
        at=at,
        now=now,
    )
    if not published:
        leave(lane, ticket)
    return published


def _is_crowd(lane: Lane, count: int) -> bool:
    """Return whether a client has more in a lane, with these, than is hinted at by id."""
    try:
        with valkey.connection() as lent, lent.pipeline(transaction=False) as pipe:
            pipe.incrby(lane.key("count"), count)
            pipe.expire(lane.key("count"), WINDOW, nx=True)
            total, _ = pipe.execute()
    except valkey.Unavailable:
        return False
    return int(total) > CROWD
