"""The messages in the broker, and a loop that processes them."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import redis
from bson import ObjectId

from delivery import worker
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.states import Priority
from domain.time import Clock
from notifications.queueing.fair_queue import FairQueue, PullToken


@dataclass(frozen=True)
class Message:
    queue: str
    task: str
    args: list[Any]
    eta: str | None

    @property
    def ids(self) -> list[ObjectId]:
        return [ObjectId(item) for item in self.args[0]]


def queued_messages(broker: redis.Redis, queue: str = "email.normal") -> list[Message]:
    """Return the messages of a queue, oldest first."""
    raw = broker.lrange(queue, 0, -1)
    assert isinstance(raw, list)
    return [_message(queue, item) for item in reversed(raw)]


def work(broker: redis.Redis, queue: str = "email.normal", *, clock: Clock) -> list[Message]:
    """Process a queue until the queue is empty, delayed messages last. Return the messages."""
    done: list[Message] = []
    while (raw := broker.rpop(queue)) is not None:
        assert isinstance(raw, bytes)
        message = _message(queue, raw)
        done.append(message)
        _take(message, clock)
    return done


def _take(message: Message, clock: Clock) -> None:
    if message.task == "notifications.pull":
        client_id, channel, priority, ticket = message.args
        fair_queue = FairQueue(ObjectId(client_id), Channel(channel), Priority(priority))
        worker.pull(
            SendingRuntime(), fair_queue, PullToken(*ticket) if ticket else None, clock=clock
        )
    else:
        _, channel, priority = message.args
        worker.handle_wakeup(
            SendingRuntime(),
            message.ids,
            channel=Channel(channel),
            priority=Priority(priority),
            clock=clock,
        )


def _message(queue: str, raw: bytes) -> Message:
    envelope = json.loads(raw)
    args, kwargs, _ = json.loads(base64.b64decode(envelope["body"]))
    assert kwargs == {}
    return Message(queue, envelope["headers"]["task"], args, envelope["headers"]["eta"])
