"""Sessions with mail servers as users of other software reported them."""

import socket
import ssl
from pathlib import Path
from typing import Any

import pytest

from domain.errors import FailureCode, ProviderError, ProviderUnavailableError, TransientError
from notifyproject.platform.event_loop import run
from providers.smtp.connection import Connection
from tests.support.factories.notifications import outbound
from tests.support.fakes import socket_server
from tests.support.fakes.certificates import self_signed
from tests.support.fakes.smtp_server import SILENCE, MailServer, mail_server, provider, refusal
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, SHORT

pytestmark = pytest.mark.usefixtures("opened")
FAREWELLS = (
    # https://github.com/knadh/listmonk/issues/3025, https://github.com/mozilla/sumo/issues/2215
    "451 4.4.2 Timeout waiting for data from client., hang up",
    # https://github.com/manyuanrong/deno-smtp/issues/39
    "451 4.4.2 Timeout - closing connection. 9sm1 - gsmtp, hang up",
    # https://github.com/nodemailer/nodemailer/issues/1205
    "451 4.7.0 Timeout waiting for client input, hang up",
    # https://github.com/chatmail/relay/issues/315
    "450 4.4.2 mail.example.com Error: timeout exceeded, hang up",
    "452 4.5.3 Too many messages in this session",
    "421 4.4.2 Closing, hang up",
    # https://github.com/knadh/smtppool/pull/8
    "503 5.5.1 Error: nested MAIL command",
    "503 Sender already specified",
    # https://github.com/haraka/Haraka/issues/1852
    "503 Bad sequence of commands",
    "502 5.5.2 Error: command not recognized",
    "500 5.5.1 Command unrecognized",
)


@each_case("farewell", FAREWELLS)
def test_end_of_a_kept_connection_costs_a_mail_nothing(farewell: str) -> None:
    server = MailServer(later={"MAIL": farewell})
    with mail_server(server) as (smtp, running):
        for _ in range(3):
            run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 3
    assert len(server.mails) == 3


@each_case(
    "reply",
    [
        "450 4.7.1 Error: too many mails from 192.0.2.1",
        "451 4.7.1 You have exceeded the daily sending limit",
        "550 5.7.1 Sender address rejected: not owned by user",
        "530 5.7.0 Authentication required",
        "501 5.1.7 Bad sender address syntax",
        "552 5.3.4 Message size exceeds fixed limit",
    ],
)
def test_other_refusal_of_the_sender_is_not_repeated(reply: str) -> None:
    with mail_server(MailServer(later={"MAIL": reply})) as (smtp, running):
        run(smtp.send(outbound(), timeout=LIMIT))
        with pytest.raises(ProviderError):
            run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 1


@each_case("farewell", FAREWELLS)
def test_refusal_of_a_first_mail_is_not_repeated(farewell: str) -> None:
    with mail_server(MailServer({"MAIL": farewell})) as (smtp, running):
        with pytest.raises(ProviderError):
            run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 1


@each_case(
    "reply",
    [
        # https://github.com/swiftmailer/swiftmailer/issues/1232
        "530 5.7.0 Must issue a STARTTLS command first",
        "530 5.7.0 Authentication required",
        "530-5.5.1 Authentication Required. Learn more at\r\n530 5.5.1 https://x.example",
        "530 5.7.1 Client was not authenticated",
        "538 5.7.11 Encryption required for requested authentication mechanism",
        "535 5.7.8 Error: authentication failed",
    ],
)
def test_missing_login_is_not_taken_for_a_wrong_sender(reply: str) -> None:
    error = refusal({"MAIL": reply})
    assert isinstance(error, ProviderUnavailableError)
    assert "requires a login, or TLS" in error.reason


@pytest.mark.parametrize(
    ("made", "is_trusted", "problem"),
    [
        # https://github.com/postalserver/postal/issues/1410
        ({"host": "127.0.0.1"}, False, "self-signed certificate"),
        # https://github.com/Mailu/Mailu/issues/3027
        ({"host": "mail.example.com"}, True, "not valid for '127.0.0.1'"),
        ({"host": "127.0.0.2"}, True, "not valid for '127.0.0.1'"),
        ({"host": "127.0.0.1", "is_expired": True}, True, "expired"),
    ],
)
def test_refused_certificate_is_told(
    made: dict[str, Any],
    is_trusted: bool,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    certificate = self_signed(tmp_path, **made)
    if is_trusted:
        context = ssl.create_default_context(cafile=certificate)
        monkeypatch.setattr(Connection, "ssl_context", context)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(certificate)
    server = MailServer()

    def encrypted(connection: socket.socket) -> None:
        with serving.wrap_socket(connection, server_side=True) as secure:
            server(secure)

    with socket_server.serving(encrypted) as running, pytest.raises(TransientError) as error:
        run(provider(running.port, use_ssl=True).send(outbound(), timeout=LIMIT))
    assert "certificate isn't accepted" in error.value.reason
    assert problem in error.value.reason
    assert server.mails == []


def test_port_of_starttls_is_told() -> None:
    """https://github.com/dawidd6/action-send-mail/issues/215"""
    with (
        socket_server.serving(
            lambda connection: connection.sendall(b"220 mail.example.com\r\n")
        ) as running,
        pytest.raises(TransientError, match=r"port may be one of STARTTLS") as error,
    ):
        run(provider(running.port, use_ssl=True).send(outbound(), timeout=LIMIT))
    assert error.value.code is FailureCode.CONNECTION_FAILED


@each_case(
    "silent, features, options",
    [
        ("EHLO", "", {}),
        ("STAR", "STARTTLS", {"use_tls": True}),
        ("AUTH", "AUTH PLAIN", {"username": "u", "password": "p"}),
        ("MAIL", "", {}),
        ("DATA", "", {}),
    ],
)
def test_silence_after_the_greeting_is_told(
    silent: str, features: str, options: dict[str, Any]
) -> None:
    replies = {"EHLO": f"250-mail.example.com\r\n250 {features}", silent: SILENCE}
    with (
        mail_server(MailServer(replies), **options) as (smtp, _),
        pytest.raises(TransientError, match="stopped responding before"),
    ):
        run(smtp.send(outbound(), timeout=SHORT))


def test_host_without_an_answer_has_no_greeting_to_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    def time_out(*_: object, **__: object) -> None:
        raise TimeoutError("timed out")

    monkeypatch.setattr("socket.create_connection", time_out)
    with pytest.raises(TransientError, match=r"^No connection to the SMTP server\.$"):
        run(provider(1).send(outbound(), timeout=LIMIT))


def test_port_of_tls_from_the_start_is_told() -> None:
    """Such a server waits for the client, and the client for the greeting."""
    with (
        socket_server.serving(socket_server.unreading) as running,
        pytest.raises(TransientError, match="No greeting of the SMTP server") as error,
    ):
        run(provider(running.port, use_tls=True).send(outbound(), timeout=SHORT))
    assert not error.value.is_ambiguous
