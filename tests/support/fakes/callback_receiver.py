"""A receiver of callbacks, and a subscription to it."""

import contextlib
import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bson import ObjectId

from callbacks import subscriptions
from callbacks.events import SUBSCRIBABLE, EventType
from callbacks.subscriptions import SavedCallback
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.fakes import socket_server


@dataclass(frozen=True, kw_only=True)
class Request:
    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Receiver:
    """Answers each request with the next status, the last one forever, and records requests."""

    answers: Sequence[bytes] = (socket_server.response(204),)
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, connection: socket.socket) -> None:
        request = socket_server.read_request(connection)
        if not request:
            # A killed process may have connected without sending anything.
            return
        head, _, raw = request.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")[1:]
        headers = {
            name.lower(): value for name, _, value in (line.partition(": ") for line in lines)
        }
        with self.lock:
            answer = self.answers[min(len(self.requests), len(self.answers) - 1)]
            self.requests.append(Request(headers=headers, raw=raw))
        connection.sendall(answer)
        connection.close()

    def ids(self) -> list[str]:
        return [request.id for request in self.requests]


@contextlib.contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    """Run a receiver that answers with these statuses, by default 204."""
    receiver = Receiver(
        [socket_server.response(status, b"thank you") for status in statuses or (204,)]
    )
    with socket_server.serving(receiver) as server:
        receiver.url = f"{server.url}/hooks"
        yield receiver


def called_back(
    url: str,
    *,
    client_id: ObjectId = CLIENT,
    events: Sequence[EventType] = SUBSCRIBABLE,
    now: datetime = NOON,
) -> SavedCallback:
    """Subscribe a client, without a backfill."""
    made = subscriptions.put(
        client_id=client_id, url=url, events=events, allow_loopback=True, now=now
    )
    subscriptions.mark_backfilled(client_id, since=now)
    return made
