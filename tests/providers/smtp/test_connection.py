"""SMTP connections: reuse, failures, replacement, and TLS."""

import smtplib
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers.smtp import connection as smtp_connection
from providers.smtp import provider as smtp_provider
from providers.smtp.connection import Connection
from tests.support.factories.notifications import outbound
from tests.support.fakes import socket_server
from tests.support.fakes.certificates import self_signed
from tests.support.fakes.smtp_server import (
    HANG_UP,
    NOTHING,
    RESET,
    SILENCE,
    MailServer,
    mail_server,
    provider,
    refusal,
)
from tests.support.fork import become_child
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT, SILENT_FOR, ending, lag

pytestmark = pytest.mark.usefixtures("opened")


@each_case("reply", [HANG_UP, RESET])
@each_case("command", ["greeting", "EHLO", "MAIL", "RCPT"])
def test_broken_connection_before_the_message_is_not_ambiguous(command: str, reply: str) -> None:
    replies = {command: reply} | ({"HELO": reply} if command == "EHLO" else {})
    error = refusal(replies)
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous
    assert error.code is FailureCode.CONNECTION_FAILED


@each_case("reply", [HANG_UP, RESET, "hang up mid-mail"])
def test_broken_connection_in_the_message_is_ambiguous(reply: str) -> None:
    error = refusal({"message": reply})
    assert isinstance(error, TransientError)
    assert error.is_ambiguous
    assert error.code is FailureCode.CONNECTION_LOST


@each_case(
    "command, reply",
    [
        ("greeting", SILENCE),
        ("MAIL", SILENCE),
        ("RCPT", SILENCE),
        ("DATA", SILENCE),
        ("DATA", HANG_UP),
        ("DATA", RESET),
    ],
)
def test_missing_reply_before_the_message_is_not_ambiguous(command: str, reply: str) -> None:
    error = refusal({command: reply}, timeout=SHORT)
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous


def test_invalid_greeting_is_not_ambiguous() -> None:
    with (
        socket_server.serving(lambda connection: connection.sendall(b"\xff\xfe\r\n")) as running,
        pytest.raises(ProviderError) as error,
    ):
        run(provider(running.port).send(outbound(), timeout=SHORT))
    assert not getattr(error.value, "is_ambiguous", False)


def connections_over_idleness(server: MailServer, *, afterwards: int = 1) -> int:
    """Send before and after the server closes the connection. Return the number of connections."""
    with mail_server(server) as (smtp, running):
        run(smtp.send(outbound(), timeout=LIMIT))
        running.until_idle()
        for _ in range(afterwards):
            run(smtp.send(outbound(), timeout=LIMIT))
        return running.connections


@each_case("farewell, afterwards", [("", 1), ("421 4.4.2 Timeout exceeded", 1), ("", 2)])
def test_connection_closed_by_the_server_is_replaced_once(farewell: str, afterwards: int) -> None:
    server = MailServer(idle=0.1, farewell=farewell)
    assert connections_over_idleness(server, afterwards=afterwards) == 2
    assert len(server.mails) == 1 + afterwards


def test_long_idle_connection_is_not_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A firewall may drop an idle connection silently."""
    with mail_server(MailServer()) as (smtp, running):
        run(smtp.send(outbound(), timeout=LIMIT))
        monkeypatch.setattr(smtp_connection, "MAX_IDLE", -1.0)
        run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 2


def test_forked_process_has_its_own_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server(MailServer()) as (smtp, running):
        run(smtp.send(outbound(), timeout=LIMIT))
        become_child(monkeypatch, smtp_provider)
        run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 2


def test_closed_connection_to_a_gone_server_is_not_ambiguous() -> None:
    server = MailServer(idle=0.1)
    with mail_server(server) as (smtp, running):
        run(smtp.send(outbound(), timeout=LIMIT))
        running.close()
        with pytest.raises(TransientError) as error:
            run(smtp.send(outbound(), timeout=LIMIT))
    assert not error.value.is_ambiguous
    assert len(server.mails) == 1


def test_ambiguous_mail_is_not_repeated() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, running):
        run(smtp.send(outbound(), timeout=LIMIT))
        server.replies = {"message": HANG_UP}
        with pytest.raises(TransientError) as error:
            run(smtp.send(outbound(), timeout=LIMIT))
        assert error.value.is_ambiguous
        assert running.connections == 1
    assert len(server.mails) == 2


def test_failure_is_followed_by_a_new_connection() -> None:
    server = MailServer({"RCPT": "550 No such user"})
    with mail_server(server) as (smtp, running):
        with pytest.raises(InvalidRecipientError):
            run(smtp.send(outbound(), timeout=LIMIT))
        server.replies = {}
        run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 2
    assert len(server.mails) == 1


def test_slow_server_is_bounded_by_the_time_limit() -> None:
    """The time limit applies to the whole send, because a lease covers only one time limit."""
    server = MailServer(pause=SHORT * 0.6)
    with mail_server(server) as (smtp, _), pytest.raises(ProviderError), ending(after=SHORT - 0.05):
        run(smtp.send(outbound(), timeout=SHORT))
    assert server.mails == []


def test_slow_lookup_sends_nothing_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow DNS lookup can outlast the lease, after which another worker may be sending."""
    look_up = socket.getaddrinfo

    def slowly(*args: Any, **options: Any) -> Any:
        lag(SHORT * 1.2)
        return look_up(*args, **options)

    server = MailServer()
    with mail_server(server) as (smtp, _):
        monkeypatch.setattr(socket, "getaddrinfo", slowly)
        with pytest.raises(TransientError) as error:
            run(smtp.send(outbound(), timeout=SHORT))
    assert not error.value.is_ambiguous
    assert server.commands == []


@each_case("line", [b"220-more\r\n", b"220-\r\n"])
def test_endless_reply_is_cut_off(line: bytes) -> None:
    sent_bytes = 0

    def reply_endlessly(connection: socket.socket) -> None:
        nonlocal sent_bytes
        while True:
            connection.sendall(line * 1000)
            sent_bytes += 1000 * len(line)

    with socket_server.serving(reply_endlessly) as running, pytest.raises(TransientError) as error:
        run(provider(running.port).send(outbound(), timeout=SILENT_FOR))
    assert not error.value.is_ambiguous
    # Most of it lies in the buffers of the connection.
    assert sent_bytes < 32 * 1024 * 1024


def test_failed_login_closes_the_connection(opened: list[smtplib.SMTP]) -> None:
    replies = {"EHLO": "250-mail.example.com\r\n250 AUTH PLAIN", "AUTH": "535 No"}
    with mail_server(MailServer(replies), username="u", password="p") as (smtp, _):
        with pytest.raises(ProviderUnavailableError):
            run(smtp.send(outbound(), timeout=LIMIT))
        assert [connection.sock for connection in opened] == [None]


OFFERING = {"EHLO": "250-mail.example.com\r\n250 STARTTLS"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("tls"), host="127.0.0.1")


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    context = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(Connection, "ssl_context", context)


def encrypted(server: MailServer, certificate: Path) -> socket_server.Handler:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def handle(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            server(secure)

    return handle


def upgrading(server: MailServer, certificate: Path) -> socket_server.Handler:
    secure = encrypted(server, certificate)

    def handle(connection: socket.socket) -> None:
        MailServer(OFFERING | {"STAR": "220 Go on"}, until="STAR")(connection)
        server.replies = {"greeting": NOTHING}
        secure(connection)

    return handle


HANDLERS = {"use_ssl": encrypted, "use_tls": upgrading}


@pytest.mark.usefixtures("trusted")
@each_case("option", HANDLERS)
def test_mail_is_sent_over_tls(option: str, certificate: Path) -> None:
    server = MailServer(idle=0.2)
    with socket_server.serving(HANDLERS[option](server, certificate)) as running:
        smtp = provider(running.port, **{option: True})
        for _ in range(2):
            run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 1
    assert len(server.mails) == 2


@each_case("option", ["use_ssl", "use_tls"])
def test_untrusted_certificate_gets_nothing(option: str, certificate: Path) -> None:
    server = MailServer()
    handler = HANDLERS[option](server, certificate)
    with socket_server.serving(handler) as running, pytest.raises(TransientError) as error:
        run(provider(running.port, **{option: True}).send(outbound(), timeout=LIMIT))
    assert not error.value.is_ambiguous
    assert "TLS" in error.value.reason
    assert server.mails == []


@each_case(
    "reply, kind",
    [("454 4.7.0 Not now", TransientError), ("554 5.7.3 No", ProviderUnavailableError)],
)
def test_refused_starttls_is_not_about_the_message(reply: str, kind: type[ProviderError]) -> None:
    server = MailServer(OFFERING | {"STAR": reply})
    with mail_server(server, use_tls=True) as (smtp, _), pytest.raises(kind):
        run(smtp.send(outbound(), timeout=LIMIT))
    assert server.mails == []


@each_case("option", ["use_ssl", "use_tls"])
def test_endless_handshake_is_cut_off(option: str) -> None:
    def stall(connection: socket.socket) -> None:
        if option == "use_tls":
            MailServer(OFFERING | {"STAR": "220 Go on"}, until="STAR")(connection)
        while connection.recv(1024):
            pass

    with socket_server.serving(stall) as running, pytest.raises(TransientError) as error, ending():
        run(provider(running.port, **{option: True}).send(outbound(), timeout=SHORT))
    assert not error.value.is_ambiguous
