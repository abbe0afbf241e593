"""One message to a provider in one case, and everything that can be seen of it."""

import logging
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from domain.errors import ProviderError
from providers.contract import Provider, SendResult
from tests.providers.contract.cases import LONG, SLOW, UNREACHED, Case
from tests.providers.contract.servers import FakeServer, HTTPDesk
from tests.providers.contract.subjects import Place, Subject
from tests.support.fakes import socket_server
from tests.support.providers.fcm import Project
from tests.support.waiting import SHORT, ticks

FIRST, SECOND = "first", "second"
FULL_QUEUE = 4
"""Connections that nobody takes; behind them the next has to wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What came of it."""

    outcome: SendResult | ProviderError
    seconds: float
    begun: int
    """How often a message began to be handed over."""
    connections: int
    received: Sequence[bytes]
    elsewhere: int
    """Connections to where a redirect leads."""
    log: Sequence[str]
    """All that was logged meanwhile, at whatever level."""
    provider: Provider
    secrets: Sequence[str]


def send(
    subject: Subject, case: Case, project: Project, *, clock: Callable[[], float] = ticks
) -> Observation:
    """Send the subject's message in a case."""
    timeout = SHORT if case in SLOW else LONG
    with ExitStack() as stack:
        elsewhere = HTTPDesk(lambda connection: connection.sendall(socket_server.response(202)))
        other = stack.enter_context(socket_server.serving(elsewhere))
        desk: FakeServer | None = None
        stand: socket_server.SocketServer | None = None
        if case in UNREACHED:
            place = stack.enter_context(unreachable(case, project))
        else:
            desk = subject.desks[case](other.url)
            stand = stack.enter_context(socket_server.serving(desk))
            place = Place(host="127.0.0.1", port=stand.port, project=project)
        provider = subject.make(place, FIRST)
        with logged() as log:
            begun = clock()
            outcome = attempt(subject, provider, timeout=timeout)
            seconds = clock() - begun
        secrets = subject.secrets(place)
    return Observation(
        outcome=outcome,
        seconds=seconds,
        begun=desk.begun if desk else 0,
        connections=stand.connections if stand else 0,
        received=desk.received if desk else (),
        elsewhere=other.connections,
        log=log,
        provider=provider,
        secrets=secrets,
    )


def attempt(
    subject: Subject, provider: Provider, *, timeout: float = LONG
) -> SendResult | ProviderError:
    """Return what came of one send; anything but a ProviderError is raised."""
    try:
        return provider.send(subject.outbound, timeout=timeout)
    except ProviderError as error:
        return error


class _Into(logging.Handler):
    """Appends every line to a list."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(self.format(record))


@contextmanager
def logged() -> Iterator[list[str]]:
    """Collect what is logged in the block."""
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
    """Give a place where nobody takes a connection."""
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
