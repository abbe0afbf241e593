"""Mail by SMTP over encrypted connections."""

import socket
import ssl
from pathlib import Path

import pytest

from domain.errors import ProviderError, ProviderUnavailableError, TransientError
from providers.smtp.connection import Connection
from tests.support.factories.records import outbound
from tests.support.fakes import socket_server
from tests.support.fakes.certificates import self_signed
from tests.support.fakes.smtp_server import NOTHING, MailServer, mail_server, provider
from tests.support.waiting import LIMIT, SHORT, ending

pytestmark = pytest.mark.usefixtures("opened")


OFFERING = {"EHLO": "250-mail.example.com\r\n250 STARTTLS"}


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file with a certificate for this machine and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"), host="127.0.0.1")


@pytest.fixture
def trusted(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the provider trust the server's certificate."""
    context = ssl.create_default_context(cafile=certificate)
    monkeypatch.setattr(Connection, "ssl_context", context)


def encrypted(server: MailServer, certificate: Path) -> socket_server.Handler:
    """Return a handler that encrypts a connection from its first byte."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def handle(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as secure:
            server(secure)

    return handle


def upgrading(server: MailServer, certificate: Path) -> socket_server.Handler:
    """Return a handler that encrypts a connection when it is asked to."""
    secure = encrypted(server, certificate)

    def handle(connection: socket.socket) -> None:
        MailServer(OFFERING | {"STAR": "220 Go on"}, until="STAR")(connection)
        server.replies = {"greeting": NOTHING}
        secure(connection)

    return handle


@pytest.mark.usefixtures("trusted")
def test_a_mail_goes_over_a_connection_that_is_encrypted_from_the_start(certificate: Path) -> None:
    server = MailServer(idle=0.2)
    with socket_server.serving(encrypted(server, certificate)) as running:
        smtp = provider(running.port, use_ssl=True)
        for _ in range(2):
            smtp.send(outbound(), timeout=LIMIT)
        assert running.connections == 1
    assert len(server.mails) == 2


@pytest.mark.usefixtures("trusted")
def test_a_mail_goes_over_a_connection_that_is_encrypted_on_the_way(certificate: Path) -> None:
    server = MailServer(idle=0.2)
    with socket_server.serving(upgrading(server, certificate)) as running:
        smtp = provider(running.port, use_tls=True)
        for _ in range(2):
            smtp.send(outbound(), timeout=LIMIT)
        assert running.connections == 1
    assert len(server.mails) == 2


@pytest.mark.parametrize("option", ["use_ssl", "use_tls"])
def test_a_server_that_nobody_vouches_for_gets_nothing(option: str, certificate: Path) -> None:
    server = MailServer()
    handler = {"use_ssl": encrypted, "use_tls": upgrading}[option](server, certificate)
    with socket_server.serving(handler) as running, pytest.raises(TransientError) as error:
        provider(running.port, **{option: True}).send(outbound(), timeout=LIMIT)
    assert not error.value.is_ambiguous
    assert "TLS" in error.value.reason
    assert server.mails == []


@pytest.mark.parametrize(
    ("reply", "kind"),
    [("454 4.7.0 Not now", TransientError), ("554 5.7.3 No", ProviderUnavailableError)],
)
def test_a_refusal_to_encrypt_says_nothing_about_the_message(
    reply: str, kind: type[ProviderError]
) -> None:
    server = MailServer(OFFERING | {"STAR": reply})
    with mail_server(server, use_tls=True) as (smtp, _), pytest.raises(kind):
        smtp.send(outbound(), timeout=LIMIT)
    assert server.mails == []


@pytest.mark.parametrize("option", ["use_ssl", "use_tls"])
def test_a_handshake_that_never_ends_is_not_waited_for(option: str) -> None:
    def stall(connection: socket.socket) -> None:
        if option == "use_tls":
            MailServer(OFFERING | {"STAR": "220 Go on"}, until="STAR")(connection)
        while connection.recv(1024):
            pass

    with socket_server.serving(stall) as running, pytest.raises(TransientError) as error, ending():
        provider(running.port, **{option: True}).send(outbound(), timeout=SHORT)
    assert not error.value.is_ambiguous
