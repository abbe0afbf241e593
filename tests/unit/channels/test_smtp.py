"""Mail by SMTP: what is sent, and what each reply means."""

import contextlib
import email
import email.policy
import smtplib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from notifications.channels.base import Message
from notifications.channels.email_smtp import SMTP
from notifications.errors import (
    ChannelUnavailable,
    FailureCode,
    InvalidRecipient,
    PermanentError,
    ProviderError,
    RecipientAction,
    TransientError,
)

from ..building import outbound
from . import wire
from .smtp_server import MailServer


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[smtplib.SMTP]]:
    """Keep every connection a test opens, and close what is left of them after it."""
    connections: list[smtplib.SMTP] = []
    make = smtplib.SMTP.__init__

    def remembering(self: smtplib.SMTP, *args: Any, **options: Any) -> None:
        connections.append(self)
        make(self, *args, **options)

    monkeypatch.setattr(smtplib.SMTP, "__init__", remembering)
    yield connections
    for connection in connections:
        connection.close()


def provider(port: int, **options: Any) -> SMTP:
    default = {
        "host": "127.0.0.1",
        "port": port,
        "username": "",
        "password": "",
        "use_tls": False,
        "use_ssl": False,
    }
    return SMTP(sender="Notifications <notifications@example.com>", options=default | options)


@contextlib.contextmanager
def mail_server(server: MailServer, **options: Any) -> Iterator[tuple[SMTP, wire.Wire]]:
    """Run a mail server and give the provider that sends by it."""
    with wire.serving(server) as running:
        yield provider(running.port, **options), running


def refusal(replies: dict[str, str], *, timeout: float = 5.0) -> ProviderError:
    with mail_server(MailServer(replies)) as (smtp, _), pytest.raises(ProviderError) as error:
        smtp.send(outbound(), timeout=timeout)
    return error.value


def test_a_mail_is_handed_over_and_its_message_id_holds_the_reference() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, _):
        result = smtp.send(outbound(), timeout=5)
    assert result.provider_id == f"<{'a' * 24}.email.1@example.com>"
    assert not result.delivered
    envelope = [line for line in server.commands if line[:4].upper() in ("MAIL", "RCPT")]
    assert [line.partition(":")[2] for line in envelope] == [
        "<notifications@example.com>",
        "<ada@example.com>",
    ]


def test_a_mail_has_both_bodies_and_the_headers_people_see() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, _):
        smtp.send(outbound(), timeout=5)
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


def test_a_mail_in_any_script_arrives_as_it_was_written() -> None:
    text = "caf\u00e9 \U0001f469\u200d\U0001f469\u200d\U0001f467 \u0645\u0631\u062d\u0628\u0627"
    server = MailServer()
    message = Message(subject=text, text=f"{text}\n.\n..dots", html=None)
    with mail_server(server) as (smtp, _):
        smtp.send(outbound(message=message, recipient_name=text), timeout=5)
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    assert mail["Subject"] == text
    assert text in mail["To"]
    assert mail.get_content().replace("\r\n", "\n").strip() == f"{text}\n.\n..dots"


def test_a_connection_is_used_again_by_the_same_thread() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, running):
        for _ in range(3):
            smtp.send(outbound(), timeout=5)
        assert running.connections == 1
    assert len(server.mails) == 3


def test_each_thread_has_a_connection_of_its_own() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, running):
        threads = [
            threading.Thread(target=smtp.send, args=(outbound(),), kwargs={"timeout": 5})
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert running.connections == 3
    assert len(server.mails) == 3


@pytest.mark.parametrize(
    ("command", "reply", "kind", "code"),
    [
        ("RCPT", "421 4.7.0 Try later", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "450 4.2.0 Mailbox busy", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "451 4.7.1 Greylisted", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "452 4.2.2 Over quota", TransientError, FailureCode.PROVIDER_ERROR),
        ("RCPT", "550 5.1.1 No such user", InvalidRecipient, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "551 5.1.6 Moved", InvalidRecipient, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "553 5.1.3 Bad name", InvalidRecipient, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "552 5.2.2 Mailbox full", PermanentError, FailureCode.REJECTED),
        ("RCPT", "554 5.7.1 Denied", PermanentError, FailureCode.REJECTED),
        ("MAIL", "421 4.7.0 Try later", TransientError, FailureCode.PROVIDER_ERROR),
        ("MAIL", "451 4.3.0 Local error", TransientError, FailureCode.PROVIDER_ERROR),
        ("DATA", "451 4.3.0 Local error", TransientError, FailureCode.PROVIDER_ERROR),
        ("DATA", "554 5.5.1 No valid recipients", PermanentError, FailureCode.REJECTED),
        ("message", "421 4.3.2 Shutting down", TransientError, FailureCode.PROVIDER_ERROR),
        ("message", "450 4.7.1 Try later", TransientError, FailureCode.PROVIDER_ERROR),
        ("message", "550 5.7.1 Looks like spam", PermanentError, FailureCode.REJECTED),
        ("message", "552 5.3.4 Too big", PermanentError, FailureCode.REJECTED),
        ("message", "554 5.7.1 Refused", PermanentError, FailureCode.REJECTED),
        ("greeting", "421 4.3.2 Too busy", TransientError, FailureCode.PROVIDER_ERROR),
    ],
)
def test_a_reply_of_four_may_work_later_and_one_of_five_will_not(
    command: str, reply: str, kind: type[ProviderError], code: FailureCode
) -> None:
    error = refusal({command: reply})
    assert type(error) is kind
    assert error.code is code
    assert error.answer is not None
    assert error.answer.status == int(reply[:3])
    assert not getattr(error, "ambiguous", False)


def test_a_mailbox_that_is_not_there_is_counted_and_not_given_up_at_once() -> None:
    error = refusal({"RCPT": "550 5.1.1 <ada@example.com>: no such user"})
    assert isinstance(error, InvalidRecipient)
    assert error.action is RecipientAction.SUSPECT


def test_what_the_server_said_is_kept_without_the_address() -> None:
    error = refusal({"RCPT": "550 5.1.1 <ada@example.com> is unknown here"})
    assert error.answer is not None
    assert "is unknown here" in error.answer.excerpt
    for text in (error.answer.excerpt, error.reason):
        assert "ada" not in text


@pytest.mark.parametrize(
    "reply",
    ["535 5.7.8 Wrong password", "534 5.7.9 Use an app password", "454 4.7.0 Not now"],
)
def test_a_login_that_is_refused_is_a_matter_of_the_account(reply: str) -> None:
    replies = {"EHLO": "250-mail.example.com\r\n250 AUTH PLAIN", "AUTH": reply}
    options = {"username": "u", "password": "p"}
    with (
        mail_server(MailServer(replies), **options) as (smtp, _),
        pytest.raises(ChannelUnavailable) as error,
    ):
        smtp.send(outbound(), timeout=5)
    assert error.value.answer is not None
    assert error.value.answer.status == int(reply[:3])


def test_a_server_without_the_encryption_that_is_configured_is_not_used() -> None:
    server = MailServer()
    with mail_server(server, use_tls=True) as (smtp, _), pytest.raises(ChannelUnavailable):
        smtp.send(outbound(), timeout=5)
    assert server.mails == []


def test_a_server_without_the_login_that_is_configured_is_not_used() -> None:
    server = MailServer()
    options = {"username": "u", "password": "p"}
    with mail_server(server, **options) as (smtp, _), pytest.raises(ChannelUnavailable):
        smtp.send(outbound(), timeout=5)
    assert server.mails == []


def test_a_server_that_turns_us_away_at_the_door_says_nothing_about_the_message() -> None:
    assert isinstance(
        refusal({"greeting": "554 5.7.1 Your network is blocked"}), ChannelUnavailable
    )


def test_a_server_that_wants_a_login_first_says_nothing_about_the_message() -> None:
    assert isinstance(refusal({"MAIL": "530 5.7.0 Authentication required"}), ChannelUnavailable)


def test_a_mail_server_sends_no_receipts() -> None:
    assert provider(25).parse_receipts({}, b"[]") == []


def test_the_password_is_not_shown_when_the_provider_is() -> None:
    assert "hunter2" not in repr(provider(25, password="hunter2"))
