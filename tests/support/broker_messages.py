"""The messages that wait in the broker, as a worker would read them."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import redis
from bson import ObjectId

from delivery import worker
from domain.states import Channel, Priority
from domain.time import Clock
from notifications.queueing.fair_queue import FairQueue, PullToken


@dataclass(frozen=True)
class Message:
    """One message, and the queue it waits in."""

    queue: str
    task: str
    args: list[Any]
    eta: str | None

    @property
    def ids(self) -> list[ObjectId]:
        """The deliveries that a hint is about."""
        return [ObjectId(one) for one in self.args[0]]


def queued_messages(broker: redis.Redis, queue: str = "email.normal") -> list[Message]:
    """Return the messages of a queue, the oldest first."""
    raw = broker.lrange(queue, 0, -1)
    assert isinstance(raw, list)
    return [_message(queue, one) for one in reversed(raw)]


def work(broker: redis.Redis, queue: str = "email.normal", *, clock: Clock) -> list[Message]:
    """Do what a worker does with a queue, one after the other, until it is empty.

    A message that is for later is taken as well, though not before those that wait. Returns all.
    """
    done: list[Message] = []
    while (raw := broker.rpop(queue)) is not None:
        assert isinstance(raw, bytes)
        message = _message(queue, raw)
        done.append(message)
        _take(message, clock)
    return done


def _take(message: Message, clock: Clock) -> None:
    if message.task == "notifications.draw":
        client_id, channel, priority, ticket = message.args
        lane = FairQueue(ObjectId(client_id), Channel(channel), Priority(priority))
        worker.pull(lane, PullToken(*ticket) if ticket else None, clock=clock)
    else:
        _, channel, priority = message.args
        worker.handle_wakeup(
            message.ids, channel=Channel(channel), priority=Priority(priority), clock=clock
        )


def _message(queue: str, raw: bytes) -> Message:
    envelope = json.loads(raw)
    args, kwargs, _ = json.loads(base64.b64decode(envelope["body"]))
    assert kwargs == {}
    return Message(queue, envelope["headers"]["task"], args, envelope["headers"]["eta"])
