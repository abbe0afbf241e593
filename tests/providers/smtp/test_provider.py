"""SMTP messages and replies."""

import email
import email.policy
import socket
from threading import Barrier
from typing import Any

import pytest

from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers.contract import Message
from tests.support.factories.notifications import outbound
from tests.support.fakes.smtp_server import MailServer, mail_server, provider, refusal
from tests.support.tables import each_case
from tests.support.threads import at_once
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("opened")


def test_message_id_contains_the_reference() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, _):
        result = run(smtp.send(outbound(), timeout=LIMIT))
    assert result.provider_id == f"<{'a' * 24}.email.1@example.com>"
    assert not result.is_delivered
    envelope = [line for line in server.commands if line[:4].upper() in ("MAIL", "RCPT")]
    assert [line.partition(":")[2] for line in envelope] == [
        "<notifications@example.com>",
        "<ada@example.com>",
    ]


def test_mail_has_both_bodies_and_headers() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, _):
        run(smtp.send(outbound(), timeout=LIMIT))
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    assert mail["From"] == "Notifications <notifications@example.com>"
    assert mail["To"] == "Ada <ada@example.com>"
    assert mail["Subject"] == "Paid"
    assert mail["Message-ID"] == f"<{'a' * 24}.email.1@example.com>"
    bodies = {
        part.get_content_type(): part.get_content().strip()
        for part in mail.walk()
        if not part.is_multipart()
    }
    assert bodies == {"text/plain": "Your payment has arrived.", "text/html": "<p>Paid</p>"}


def test_any_script_arrives_unchanged() -> None:
    text = "caf\u00e9 \U0001f469\u200d\U0001f469\u200d\U0001f467 \u0645\u0631\u062d\u0628\u0627"
    server = MailServer()
    message = Message(subject=text, text=f"{text}\n.\n..dots", html=None)
    with mail_server(server) as (smtp, _):
        run(smtp.send(outbound(message=message, recipient_name=text), timeout=LIMIT))
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    assert mail["Subject"] == text
    assert text in mail["To"]
    assert mail.get_content().replace("\r\n", "\n").strip() == f"{text}\n.\n..dots"


def test_thread_reuses_its_connection() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, running):
        for _ in range(3):
            run(smtp.send(outbound(), timeout=LIMIT))
        assert running.connections == 1
    assert len(server.mails) == 3


def test_each_thread_has_its_own_connection() -> None:
    # The server waits for all three: a thread that is done would send the next mail.
    together = Barrier(3, timeout=LIMIT)

    class Waiting(MailServer):
        def __call__(self, connection: socket.socket) -> None:
            together.wait()
            super().__call__(connection)

    server = Waiting()
    with mail_server(server) as (smtp, running):
        at_once(*[lambda: run(smtp.send(outbound(), timeout=LIMIT))] * 3)
        assert running.connections == 3
    assert len(server.mails) == 3


@each_case(
    "command, reply, kind, code",
    [
        ("RCPT", "421 4.7.0 Try later", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "450 4.2.0 Mailbox busy", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "451 4.7.1 Greylisted", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "452 4.2.2 Over quota", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "550 5.1.1 No such user", InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "551 5.1.6 Moved", InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "553 5.1.3 Bad name", InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "552 5.2.2 Full", InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "554 5.7.1 Denied", PermanentError, FailureCode.REJECTED),
        ("MAIL", "421 4.7.0 Try later", TransientError, FailureCode.PROVIDER_ERROR),
        ("MAIL", "451 4.3.0 Local error", TransientError, FailureCode.PROVIDER_ERROR),
        ("DATA", "451 4.3.0 Local error", TransientError, FailureCode.PROVIDER_ERROR),
        ("DATA", "554 5.5.1 No valid recipients", PermanentError, FailureCode.REJECTED),
        ("message", "421 4.3.2 Shutting down", TransientError, FailureCode.PROVIDER_ERROR),
        ("message", "450 4.7.1 Try later", TransientError, FailureCode.PROVIDER_ERROR),
        ("message", "550 5.7.1 Looks like spam", PermanentError, FailureCode.REJECTED),
        ("message", "552 5.3.4 Too big", PermanentError, FailureCode.TOO_LARGE),
        ("message", "554 5.7.1 Refused", PermanentError, FailureCode.REJECTED),
        ("greeting", "421 4.3.2 Too busy", TransientError, FailureCode.PROVIDER_ERROR),
    ],
)
def test_4xx_is_temporary_and_5xx_permanent(
    command: str, reply: str, kind: type[ProviderError], code: FailureCode
) -> None:
    error = refusal({command: reply})
    assert type(error) is kind
    assert error.code is code
    assert error.response.status == int(reply[:3])
    assert not getattr(error, "is_ambiguous", False)


def test_unknown_mailbox_is_suspect_and_its_reply_redacted() -> None:
    error = refusal({"RCPT": "550 5.1.1 <ada@example.com> is unknown here"})
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT
    assert "is unknown here" in error.response.excerpt
    for text in (error.response.excerpt, error.reason):
        assert "ada" not in text


LOGIN = "250-mail.example.com\r\n250 AUTH PLAIN"


@each_case(
    "replies, options",
    [
        ({"EHLO": LOGIN, "AUTH": "535 5.7.8 Wrong password"}, {}),
        ({"EHLO": LOGIN, "AUTH": "534 5.7.9 Use an app password"}, {}),
        ({"EHLO": LOGIN, "AUTH": "454 4.7.0 Not now"}, {}),
        ({"EHLO": "250-mail.example.com\r\n250 AUTH X-OWN"}, {}),
        ({}, {}),
        ({}, {"username": "", "password": "", "use_tls": True}),
    ],
)
def test_failed_login_or_starttls_is_about_the_account(
    replies: dict[str, str], options: dict[str, Any]
) -> None:
    server = MailServer(replies)
    with (
        mail_server(server, **({"username": "u", "password": "p"} | options)) as (smtp, _),
        pytest.raises(ProviderUnavailableError) as error,
    ):
        run(smtp.send(outbound(), timeout=LIMIT))
    assert server.mails == []
    if "AUTH" in replies:
        assert error.value.response.status == int(replies["AUTH"][:3])


@each_case(
    "command, reply, kind",
    [
        ("greeting", "554 5.7.1 Your network is blocked", ProviderUnavailableError),
        ("EHLO", "550 Who?", ProviderUnavailableError),
        ("MAIL", "530 5.7.0 Authentication required", ProviderUnavailableError),
        ("MAIL", "550 5.7.1 Not yours", ProviderUnavailableError),
        ("MAIL", "553 5.1.8 No such domain", ProviderUnavailableError),
        ("MAIL", "554 No", ProviderUnavailableError),
        ("MAIL", "552 5.3.4 Too big", PermanentError),
        ("RCPT", "550 5.7.1 Your server is on a blocklist", ProviderUnavailableError),
        ("RCPT", "553 5.7.1 Relay", PermanentError),
    ],
)
def test_policy_refusal_is_not_about_the_mailbox(
    command: str, reply: str, kind: type[ProviderError]
) -> None:
    error = refusal({command: reply} | ({"HELO": reply} if command == "EHLO" else {}))
    assert type(error) is kind
    assert error.response.status == int(reply[:3])


@each_case(
    "reply, code",
    [("550 5.1.1 No such user", "5.1.1"), ("550 No such user", None), ("550 5.1 No", None)],
)
def test_enhanced_status_code_is_kept(reply: str, code: str | None) -> None:
    error = refusal({"RCPT": reply})
    assert error.response.code == code


@each_case("command", ["greeting", "MAIL", "RCPT", "DATA"])
@each_case("nonsense", ["what?", "999 Hello", "-12 Hello", "600 Hello", ""])
def test_nonsense_before_the_message_is_not_ambiguous(command: str, nonsense: str) -> None:
    error = refusal({command: nonsense})
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous


@each_case("nonsense", ["what?", "354 Go on", "999 Hello", "-12 Hello", "x" * 9000])
def test_nonsense_after_the_message_is_ambiguous(nonsense: str) -> None:
    error = refusal({"message": nonsense})
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


@each_case(
    "fields",
    [
        {"message": Message(subject="one\r\nBcc: eve@example.com", text="x")},
        {"message": Message(subject="Paid", text="\ud800")},
        {"recipient": "ada@example.com\r\nRCPT TO:<eve@example.com>"},
        {"recipient": "ada@\u2602\u2602"},
    ],
)
def test_unencodable_mail_is_not_sent(fields: dict[str, Any]) -> None:
    with mail_server(MailServer()) as (smtp, running):
        with pytest.raises(PermanentError) as error:
            run(smtp.send(outbound(**fields), timeout=LIMIT))
        assert running.connections == 0
    assert error.value.code is FailureCode.RENDER_FAILED
    assert "ada" not in error.value.reason


def test_international_domain_is_encoded() -> None:
    """IDNA 2003 encoded this domain as strasse.example, which is another domain."""
    server = MailServer()
    with mail_server(server) as (smtp, _):
        run(smtp.send(outbound(recipient="ada@stra\u00dfe.example"), timeout=LIMIT))
    # Commands are in either case: Python 3.13 writes another than 3.12 does.
    commands = [command.lower() for command in server.commands]
    assert "rcpt to:<ada@xn--strae-oqa.example>" in commands
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    assert mail["To"] == "Ada <ada@xn--strae-oqa.example>"


def test_invalid_host_is_about_the_account() -> None:
    with pytest.raises(ProviderUnavailableError):
        run(provider(25, host="x" * 300).send(outbound(), timeout=LIMIT))
