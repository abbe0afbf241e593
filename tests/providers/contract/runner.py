"""Runs one send in one case, and records all that can be observed."""

import logging
import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from domain.errors import ProviderError
from notifyproject.platform.event_loop import run
from providers.contract import Provider, SendResult
from tests.providers.contract.cases import LONG, SLOW, UNREACHED, Case
from tests.providers.contract.servers import FakeServer, HTTPServer
from tests.providers.contract.subjects import Place, Subject
from tests.support.fakes import socket_server
from tests.support.providers.fcm import Project
from tests.support.waiting import SHORT, ticks

FIRST, SECOND = "first", "second"
FULL_QUEUE = 4
"""Connections that fill the listen queue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    outcome: SendResult | ProviderError
    seconds: float
    begun: int
    """How often a message transfer began."""
    connections: int
    received: Sequence[bytes]
    elsewhere: int
    """Connections to the target of a redirect."""
    log: Sequence[str]
    """All log lines during the send."""
    provider: Provider
    secrets: Sequence[str]


def send(subject: Subject, case: Case, project: Project) -> Observation:
    timeout = SHORT if case in SLOW else LONG
    with ExitStack() as stack:
        elsewhere = HTTPServer(lambda connection: connection.sendall(socket_server.response(202)))
        other = stack.enter_context(socket_server.serving(elsewhere))
        handler: FakeServer | None = None
        running: socket_server.SocketServer | None = None
        if case in UNREACHED:
            place = stack.enter_context(unreachable(case, project))
        else:
            handler = subject.servers[case](other.url)
            running = stack.enter_context(socket_server.serving(handler))
            place = Place(host="127.0.0.1", port=running.port, project=project)
        provider = subject.make(place, FIRST)
        with logged() as log:
            begun = ticks()
            outcome = attempt(subject, provider, timeout=timeout)
            seconds = ticks() - begun
        secrets = subject.secrets(place)
    return Observation(
        outcome=outcome,
        seconds=seconds,
        begun=handler.begun if handler else 0,
        connections=running.connections if running else 0,
        received=handler.received if handler else (),
        elsewhere=other.connections,
        log=log,
        provider=provider,
        secrets=secrets,
    )


def attempt(
    subject: Subject, provider: Provider, *, timeout: float = LONG
) -> SendResult | ProviderError:
    """Return the result or the ProviderError of one send."""
    try:
        return run(provider.send(subject.outbound, timeout=timeout))
    except ProviderError as error:
        return error


class _Into(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


@contextmanager
def logged() -> Iterator[list[str]]:
    lines: list[str] = []
    handler, root = _Into(lines), logging.getLogger()
    level = root.level
    root.setLevel(logging.DEBUG)
    root.addHandler(handler)
    try:
        yield lines
    finally:
        root.removeHandler(handler)
        root.setLevel(level)


@contextmanager
def unreachable(case: Case, project: Project) -> Iterator[Place]:
    if case is Case.NO_SUCH_HOST:
        yield Place(host="no-such-host.invalid", port=80, project=project)
        return
    with ExitStack() as stack:
        listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        port = int(listener.getsockname()[1])
        stack.callback(listener.close)
        if case is Case.NOBODY_LISTENS:
            listener.close()
        for _ in range(FULL_QUEUE if case is Case.NOT_TAKEN else 0):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        yield Place(host="127.0.0.1", port=port, project=project)
