"""An SMTP server with scripted replies."""

import base64
import contextlib
import hmac
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import pytest

from domain.errors import ProviderError
from notifyproject.platform.event_loop import run
from providers.smtp.provider import SMTP
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.fakes import socket_server
from tests.support.waiting import LIMIT, lag

OK = {
    "greeting": "220 mail.example.com",
    "EHLO": "250 mail.example.com",
    "HELO": "250 mail.example.com",
    "MAIL": "250 OK",
    "RCPT": "250 OK",
    "DATA": "354 Go on",
    "message": "250 Queued as 1234",
    "RSET": "250 OK",
    "QUIT": "221 Bye",
    "AUTH": "235 Welcome",
}

QUESTIONS = {
    "LOGIN": ["VXNlcm5hbWU6", "UGFzc3dvcmQ6"],
    "CRAM-MD5": [base64.b64encode(b"<1896.697170952@mail.example.com>").decode()],
}
MAX_LINE = 998
SILENCE, HANG_UP, RESET, NOTHING = "silence", "hang up", "reset", "nothing"


@dataclass
class MailServer:
    """A handler for :func:`socket_server.serving`.

    ``replies`` has replies by command, including ``greeting`` and ``message`` (the end of the
    mail). A reply may be SILENCE, HANG_UP, RESET, or ``<reply>, hang up``. NOTHING sends none.
    """

    replies: Mapping[str, str] = field(default_factory=dict)
    pause: float = 0.0
    """Seconds before each reply."""
    idle: float | None = None
    """Seconds without a command, after the first mail, until the connection is closed."""
    farewell: str = ""
    """Sent before that close."""
    later: Mapping[str, str] = field(default_factory=dict)
    """Replies by command after the first mail of a connection."""
    credentials: tuple[str, str] | None = None
    """User and password that AUTH checks; None: ``replies`` has its reply."""
    questions: Mapping[str, Sequence[str]] = field(default_factory=lambda: QUESTIONS)
    """What AUTH asks, by mechanism."""
    is_strict: bool = False
    """Refuses 8-bit mail, lines over 998 octets, and line ends other than CRLF."""
    until: str = "QUIT"
    """The last command that this handler serves."""
    commands: list[str] = field(default_factory=list)
    mails: list[bytes] = field(default_factory=list)
    _earlier_mails: int = 0

    def __call__(self, connection: socket.socket) -> None:
        self._earlier_mails = len(self.mails)
        self._reply(connection, "greeting")
        lines = connection.makefile("rb")
        while True:
            try:
                line = lines.readline()
            except TimeoutError:
                connection.sendall(f"{self.farewell}\r\n".encode() if self.farewell else b"")
                return
            if not line:
                return
            command = line[:4].decode().strip().upper()
            self.commands.append(line.decode().strip())
            if command == "AUTH" and self.credentials is not None:
                self._log_in(connection, lines, *line.decode().split()[1:])
                continue
            self._reply(connection, command)
            if command == "DATA" and self._reply_to("DATA").startswith("354"):
                self._take(connection, lines)
            if command == self.until:
                return

    def _log_in(
        self, connection: socket.socket, lines: BinaryIO, mechanism: str, *first: str
    ) -> None:
        answers = list(first)
        for question in self.questions.get(mechanism, ()):
            connection.sendall(f"334 {question}\r\n".encode())
            answers.append(lines.readline().decode().strip())
            if answers[-1] == "*":
                connection.sendall(b"501 Cancelled\r\n")
                return
        is_known = answers == self._expected_answers(mechanism)
        connection.sendall(b"235 Welcome\r\n" if is_known else b"535 5.7.8 Wrong\r\n")

    def _expected_answers(self, mechanism: str) -> list[str]:
        user, password = self.credentials or ("", "")
        questions = [base64.b64decode(question) for question in self.questions.get(mechanism, ())]
        match mechanism:
            case "PLAIN":
                texts = [f"\0{user}\0{password}"]
            case "LOGIN":
                asked = [b"pass" in question.lower() for question in questions]
                # Without words, the user's name comes first.
                texts = [password if item else user for item in (asked if any(asked) else (0, 1))]
            case _:
                digest = hmac.new(password.encode(), questions[0], "md5").hexdigest()
                texts = [f"{user} {digest}"]
        return [base64.b64encode(text.encode()).decode() for text in texts]

    def _take(self, connection: socket.socket, lines: BinaryIO) -> None:
        if self._reply_to("message") == "hang up mid-mail":
            lines.readline()
            raise ConnectionAbortedError
        mail = b""
        while (line := lines.readline()) not in (b".\r\n", b""):
            mail += line.removeprefix(b".")
        self.mails.append(mail)
        if self.idle is not None and len(self.mails) == 1:
            connection.settimeout(self.idle)
        if self.is_strict and (refusal := _strict_refusal(mail)):
            self.replies = {**self.replies, "message": refusal}
        self._reply(connection, "message")

    def _reply_to(self, command: str) -> str:
        if len(self.mails) > self._earlier_mails and command in self.later:
            return self.later[command]
        return self.replies.get(command, OK.get(command, "502 What?"))

    def _reply(self, connection: socket.socket, command: str) -> None:
        reply = self._reply_to(command)
        lag(self.pause)
        if reply == SILENCE:
            while connection.recv(1024):
                pass
            raise ConnectionAbortedError
        if reply == RESET:
            socket_server.reset(connection)
            raise ConnectionAbortedError
        if reply == HANG_UP:
            raise ConnectionAbortedError
        if reply != NOTHING:
            connection.sendall(f"{reply.partition(', hang up')[0]}\r\n".encode())
        if reply.endswith(", hang up"):
            raise ConnectionAbortedError


def _strict_refusal(mail: bytes) -> str | None:
    lines = mail.split(b"\r\n")
    if not mail.isascii():
        return "554 5.6.1 8-bit data without 8BITMIME"
    if any(len(line) > MAX_LINE for line in lines):
        return f"550 maximum allowed line length is {MAX_LINE} octets, got {max(map(len, lines))}"
    if any(b"\r" in line or b"\n" in line for line in lines):
        return "550 5.5.2 Bare carriage return or line feed"
    return None


def provider(port: int, **options: Any) -> SMTP:
    default = {
        "host": "127.0.0.1",
        "port": port,
        "username": "",
        "password": "",
        "use_tls": False,
        "use_ssl": False,
    }
    return SMTP(
        sender="Notifications <notifications@example.com>",
        options=default | options,
        clock=lambda: FIXED_NOON,
    )


@contextlib.contextmanager
def mail_server(
    server: MailServer, **options: Any
) -> Iterator[tuple[SMTP, socket_server.SocketServer]]:
    with socket_server.serving(server) as running:
        yield provider(running.port, **options), running


def refusal(replies: dict[str, str], *, timeout: float = LIMIT) -> ProviderError:
    """Return the error of a mail to a server with these replies."""
    with mail_server(MailServer(replies)) as (smtp, _), pytest.raises(ProviderError) as error:
        run(smtp.send(outbound(), timeout=timeout))
    return error.value
