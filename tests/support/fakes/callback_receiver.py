"""A receiver of callbacks on this machine, and a callback that leads to it."""

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
    """What came."""

    headers: Mapping[str, str]
    """Names in lower case."""
    raw: bytes

    @property
    def id(self) -> str:
        """What names the event."""
        return self.headers["webhook-id"]

    @property
    def body(self) -> Any:
        """What it says."""
        return json.loads(self.raw)


@dataclass
class Receiver:
    """Answers each request with the next status, the last one for ever, and keeps what came."""

    answers: Sequence[bytes] = (socket_server.response(204),)
    requests: list[Request] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, connection: socket.socket) -> None:
        """Answer one request."""
        head, _, raw = socket_server.read_request(connection).partition(b"\r\n\r\n")
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
        """Return the ids of what came, in the order it came in."""
        return [request.id for request in self.requests]


@contextlib.contextmanager
def receiving(*statuses: int) -> Iterator[Receiver]:
    """Give a receiver that answers with these statuses, with 204 if there is none."""
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
    """Make a callback of an app, and forget that its notifications have to be caught up with."""
    made = subscriptions.put(
        client_id=client_id, url=url, events=events, allow_loopback=True, now=now
    )
    subscriptions.mark_backfilled(client_id, since=now)
    return made
