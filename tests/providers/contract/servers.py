"""Fake provider servers made of bare sockets."""

import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tests.providers.contract.cases import Case
from tests.support.fakes import socket_server
from tests.support.fakes.smtp_server import HANG_UP, RESET, SILENCE, MailServer
from tests.support.waiting import lag

DRIP_PAUSE = 0.02
DRIP = b"X-More: to come\r\n"
CUT = "cut"
DRIPS = "drips"


class FakeServer(Protocol):
    """Accepts messages and answers all of them the same way."""

    @property
    def received(self) -> Sequence[bytes]: ...

    @property
    def begun(self) -> int:
        """How often a message transfer began."""
        ...

    def __call__(self, connection: socket.socket) -> None: ...


Make = Callable[[str], FakeServer]
"""Makes a server. The argument is the URL that a redirect leads to."""
Act = Callable[[socket.socket], None]


class HTTPServer:
    """Answers each request with one action."""

    def __init__(self, act: Act) -> None:
        self._act = act
        self.received: list[bytes] = []

    @property
    def begun(self) -> int:
        return len(self.received)

    def __call__(self, connection: socket.socket) -> None:
        while request := socket_server.read_request(connection):
            self.received.append(request)
            self._act(connection)


def replying(answer: bytes) -> Make:
    return lambda _elsewhere: HTTPServer(lambda connection: connection.sendall(answer))


def redirecting(elsewhere: str) -> HTTPServer:
    answer = socket_server.response(307, b"", f"Location: {elsewhere}/anywhere")
    return HTTPServer(lambda connection: connection.sendall(answer))


def http_servers(
    status: int, body: bytes, *headers: str, refusals: Mapping[Case, bytes]
) -> Mapping[Case, Make]:
    """Return the servers of an HTTP provider by case."""
    complete = socket_server.response(status, body, *headers)
    cut = socket_server.response(status, body + b" " * 10, *headers)[:-10]
    broken: Mapping[Case, Act] = {
        Case.SILENT: _wait,
        Case.HUNG_UP: _hang_up,
        Case.RESET: socket_server.reset,
        Case.TRUNCATED: lambda connection: _send_and_hang_up(connection, cut),
        Case.DRIPPING: lambda connection: _drip(
            connection, complete[: complete.index(b"\n") + 1], DRIP
        ),
    }
    return {
        Case.ACCEPTED: replying(complete),
        Case.NONSENSE: replying(socket_server.response(299, b"<html>Welcome</html>")),
        Case.BUSY: replying(socket_server.response(502, b"<html>Bad gateway</html>")),
        Case.REDIRECTED: redirecting,
        **{case: _server(act) for case, act in broken.items()},
        **{case: replying(answer) for case, answer in refusals.items()},
    }


class SMTPServer(MailServer):
    """An SMTP server that requires a login, and may truncate or never end its replies."""

    def __init__(self, replies: Mapping[str, str]) -> None:
        greeting = "250-mail.example.com\r\n250 AUTH PLAIN"
        super().__init__({"EHLO": greeting, **replies})

    @property
    def received(self) -> Sequence[bytes]:
        return self.mails

    @property
    def begun(self) -> int:
        return sum(command.upper().startswith("MAIL") for command in self.commands)

    def _reply(self, connection: socket.socket, command: str) -> None:
        reply = self._reply_to(command)
        if reply == CUT:
            _send_and_hang_up(connection, b"250-Queued\r\n250-as 12")
        if reply == DRIPS:
            _drip(connection, b"", b"250-and\r\n")
        super()._reply(connection, command)


def smtp_servers(refusals: Mapping[Case, Mapping[str, str]]) -> Mapping[Case, Make]:
    """Return the servers of an SMTP provider by case. ``refusals`` has replies by command."""
    cases: Mapping[Case, Mapping[str, str]] = {
        Case.ACCEPTED: {},
        Case.SILENT: {"message": SILENCE},
        Case.HUNG_UP: {"message": HANG_UP},
        Case.RESET: {"message": RESET},
        Case.TRUNCATED: {"message": CUT},
        Case.DRIPPING: {"message": DRIPS},
        Case.NONSENSE: {"message": "what?"},
        **refusals,
    }
    return {case: _smtp_server(replies) for case, replies in cases.items()}


def _smtp_server(replies: Mapping[str, str]) -> Make:
    return lambda _elsewhere: SMTPServer(replies)


def _server(act: Act) -> Make:
    return lambda _elsewhere: HTTPServer(act)


def _wait(connection: socket.socket) -> None:
    while connection.recv(1024):
        pass


def _hang_up(_connection: socket.socket) -> None:
    raise ConnectionAbortedError


def _send_and_hang_up(connection: socket.socket, some: bytes) -> None:
    connection.sendall(some)
    raise ConnectionAbortedError


def _drip(connection: socket.socket, beginning: bytes, again: bytes) -> None:
    """Send ``beginning``, then ``again`` byte by byte and repeatedly, until the client leaves."""
    connection.sendall(beginning)
    while True:
        for byte in again:
            connection.sendall(bytes([byte]))
            lag(DRIP_PAUSE)
