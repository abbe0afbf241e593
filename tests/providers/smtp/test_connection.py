"""Mail by SMTP: connections that are kept, break, and are replaced."""

import smtplib
import socket
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from providers.smtp import connection as smtp_connection
from tests.support.factories.records import outbound
from tests.support.fakes import socket_server
from tests.support.fakes.smtp_server import (
    HANG_UP,
    RESET,
    SILENCE,
    MailServer,
    mail_server,
    provider,
    refusal,
)
from tests.support.waiting import LIMIT, SHORT, SILENT_FOR, ending, lag

pytestmark = pytest.mark.usefixtures("opened")


@pytest.mark.parametrize("reply", [HANG_UP, RESET])
@pytest.mark.parametrize("command", ["greeting", "EHLO", "MAIL", "RCPT"])
def test_a_connection_that_breaks_before_the_message_has_sent_nothing(
    command: str, reply: str
) -> None:
    replies = {command: reply} | ({"HELO": reply} if command == "EHLO" else {})
    error = refusal(replies)
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous
    assert error.code is FailureCode.CONNECTION_FAILED


@pytest.mark.parametrize("reply", [HANG_UP, RESET, "hang up mid-mail"])
def test_a_connection_that_breaks_in_the_message_may_have_sent_it(reply: str) -> None:
    error = refusal({"message": reply})
    assert isinstance(error, TransientError)
    assert error.is_ambiguous
    assert error.code is FailureCode.CONNECTION_LOST


def test_a_server_that_falls_silent_after_the_message_may_have_taken_it() -> None:
    error = refusal({"message": SILENCE}, timeout=SHORT)
    assert isinstance(error, TransientError)
    assert error.is_ambiguous
    assert error.code is FailureCode.TIMEOUT


@pytest.mark.parametrize("command", ["greeting", "MAIL", "RCPT"])
def test_a_server_that_falls_silent_before_the_message_has_not_got_it(command: str) -> None:
    error = refusal({command: SILENCE}, timeout=SHORT)
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous


@pytest.mark.parametrize("reply", [HANG_UP, RESET, SILENCE])
def test_a_server_that_does_not_ask_for_the_message_has_not_got_it(reply: str) -> None:
    error = refusal({"DATA": reply}, timeout=SHORT)
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous


def test_a_server_that_is_not_there_has_not_got_it() -> None:
    with socket_server.serving(MailServer()) as running:
        port = running.port
    with pytest.raises(TransientError) as error:
        provider(port).send(outbound(), timeout=LIMIT)
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


def test_a_server_that_talks_nonsense_has_not_got_it() -> None:
    with (
        socket_server.serving(lambda connection: connection.sendall(b"\xff\xfe\r\n")) as running,
        pytest.raises(ProviderError) as error,
    ):
        provider(running.port).send(outbound(), timeout=SHORT)
    assert not getattr(error.value, "is_ambiguous", False)


def connections_over_idleness(server: MailServer, *, afterwards: int = 1) -> int:
    """Send a mail, wait for the server to close, and send again; return how many it took."""
    with mail_server(server) as (smtp, running):
        smtp.send(outbound(), timeout=LIMIT)
        running.until_idle()
        for _ in range(afterwards):
            smtp.send(outbound(), timeout=LIMIT)
        return running.connections


def test_a_connection_that_lay_idle_too_long_is_replaced() -> None:
    server = MailServer(idle=0.1)
    assert connections_over_idleness(server) == 2
    assert len(server.mails) == 2


def test_a_connection_that_the_server_has_said_goodbye_to_is_replaced() -> None:
    server = MailServer(idle=0.1, farewell="421 4.4.2 Timeout exceeded")
    assert connections_over_idleness(server) == 2
    assert len(server.mails) == 2


def test_a_connection_that_replaced_another_is_kept_too() -> None:
    server = MailServer(idle=0.1)
    assert connections_over_idleness(server, afterwards=2) == 2
    assert len(server.mails) == 3


def test_a_connection_that_nobody_has_used_for_long_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A firewall forgets it without a word: whoever uses it waits in vain."""
    with mail_server(MailServer()) as (smtp, running):
        smtp.send(outbound(), timeout=LIMIT)
        monkeypatch.setattr(smtp_connection, "MAX_IDLE", -1.0)
        smtp.send(outbound(), timeout=LIMIT)
        assert running.connections == 2


def test_a_forked_process_has_a_connection_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with mail_server(MailServer()) as (smtp, running):
        smtp.send(outbound(), timeout=LIMIT)
        monkeypatch.setattr("os.getpid", lambda: 4711)
        smtp.send(outbound(), timeout=LIMIT)
        assert running.connections == 2


def test_a_server_that_has_closed_the_connection_and_gone_has_not_got_it() -> None:
    server = MailServer(idle=0.1)
    with mail_server(server) as (smtp, running):
        smtp.send(outbound(), timeout=LIMIT)
        running.close()
        with pytest.raises(TransientError) as error:
            smtp.send(outbound(), timeout=LIMIT)
    assert not error.value.is_ambiguous
    assert len(server.mails) == 1


def test_a_mail_that_may_have_gone_is_not_sent_again_by_itself() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, running):
        smtp.send(outbound(), timeout=LIMIT)
        server.replies = {"message": HANG_UP}
        with pytest.raises(TransientError) as error:
            smtp.send(outbound(), timeout=LIMIT)
        assert error.value.is_ambiguous
        assert running.connections == 1
    assert len(server.mails) == 2


def test_after_a_failure_the_next_mail_has_a_new_connection() -> None:
    server = MailServer({"RCPT": "550 No such user"})
    with mail_server(server) as (smtp, running):
        with pytest.raises(InvalidRecipientError):
            smtp.send(outbound(), timeout=LIMIT)
        server.replies = {}
        smtp.send(outbound(), timeout=LIMIT)
        assert running.connections == 2
    assert len(server.mails) == 1


def test_a_send_ends_in_time_however_slowly_the_server_speaks() -> None:
    """The lease of a delivery outlives one time limit, not one for each command."""
    server = MailServer(pause=SHORT * 0.6)
    with mail_server(server) as (smtp, _), pytest.raises(ProviderError), ending(after=SHORT - 0.05):
        smtp.send(outbound(), timeout=SHORT)
    assert server.mails == []


def test_nothing_is_said_after_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """To look up a host may take any time; by then somebody else may be sending the same."""
    look_up = socket.getaddrinfo

    def slowly(*args: Any, **options: Any) -> Any:
        lag(SHORT * 1.2)
        return look_up(*args, **options)

    server = MailServer()
    with mail_server(server) as (smtp, _):
        monkeypatch.setattr(socket, "getaddrinfo", slowly)
        with pytest.raises(TransientError) as error:
            smtp.send(outbound(), timeout=SHORT)
    assert not error.value.is_ambiguous
    assert server.commands == []


@pytest.mark.parametrize("line", [b"220-more\r\n", b"220-\r\n"])
def test_a_server_that_never_ends_its_reply_is_not_listened_to(line: bytes) -> None:
    said = 0

    def talk(connection: socket.socket) -> None:
        nonlocal said
        while True:
            connection.sendall(line * 1000)
            said += 1000 * len(line)

    with socket_server.serving(talk) as running, pytest.raises(TransientError) as error:
        provider(running.port).send(outbound(), timeout=SILENT_FOR)
    assert not error.value.is_ambiguous
    # Most of it lies in the buffers of the connection.
    assert said < 32 * 1024 * 1024


def test_a_login_that_fails_leaves_no_connection_open(opened: list[smtplib.SMTP]) -> None:
    replies = {"EHLO": "250-mail.example.com\r\n250 AUTH PLAIN", "AUTH": "535 No"}
    with mail_server(MailServer(replies), username="u", password="p") as (smtp, _):
        with pytest.raises(ProviderUnavailableError):
            smtp.send(outbound(), timeout=LIMIT)
        assert [connection.sock for connection in opened] == [None]
