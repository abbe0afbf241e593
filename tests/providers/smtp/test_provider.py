"""Mail by SMTP: what is sent, and what each reply means."""

import email
import email.policy
import threading
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
from providers.contract import Message
from tests.support.factories.records import outbound
from tests.support.fakes.smtp_server import MailServer, mail_server, provider, refusal
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("opened")


def test_a_mail_is_handed_over_and_its_message_id_holds_the_reference() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, _):
        result = smtp.send(outbound(), timeout=LIMIT)
    assert result.provider_id == f"<{'a' * 24}.email.1@example.com>"
    assert not result.is_delivered
    envelope = [line for line in server.commands if line[:4].upper() in ("MAIL", "RCPT")]
    assert [line.partition(":")[2] for line in envelope] == [
        "<notifications@example.com>",
        "<ada@example.com>",
    ]


def test_a_mail_has_both_bodies_and_the_headers_people_see() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, _):
        smtp.send(outbound(), timeout=LIMIT)
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
        smtp.send(outbound(message=message, recipient_name=text), timeout=LIMIT)
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    assert mail["Subject"] == text
    assert text in mail["To"]
    assert mail.get_content().replace("\r\n", "\n").strip() == f"{text}\n.\n..dots"


def test_a_connection_is_used_again_by_the_same_thread() -> None:
    server = MailServer()
    with mail_server(server) as (smtp, running):
        for _ in range(3):
            smtp.send(outbound(), timeout=LIMIT)
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
        ("RCPT", "550 5.1.1 No such user", InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "551 5.1.6 Moved", InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
        ("RCPT", "553 5.1.3 Bad name", InvalidRecipientError, FailureCode.INVALID_RECIPIENT),
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
    assert error.response is not None
    assert error.response.status == int(reply[:3])
    assert not getattr(error, "is_ambiguous", False)


def test_a_mailbox_that_is_not_there_is_counted_and_not_given_up_at_once() -> None:
    error = refusal({"RCPT": "550 5.1.1 <ada@example.com>: no such user"})
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT


def test_what_the_server_said_is_kept_without_the_address() -> None:
    error = refusal({"RCPT": "550 5.1.1 <ada@example.com> is unknown here"})
    assert error.response is not None
    assert "is unknown here" in error.response.excerpt
    for text in (error.response.excerpt, error.reason):
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
        pytest.raises(ProviderUnavailableError) as error,
    ):
        smtp.send(outbound(), timeout=LIMIT)
    assert error.value.response is not None
    assert error.value.response.status == int(reply[:3])


def test_a_server_without_the_encryption_that_is_configured_is_not_used() -> None:
    server = MailServer()
    with mail_server(server, use_tls=True) as (smtp, _), pytest.raises(ProviderUnavailableError):
        smtp.send(outbound(), timeout=LIMIT)
    assert server.mails == []


def test_a_server_without_the_login_that_is_configured_is_not_used() -> None:
    server = MailServer()
    options = {"username": "u", "password": "p"}
    with mail_server(server, **options) as (smtp, _), pytest.raises(ProviderUnavailableError):
        smtp.send(outbound(), timeout=LIMIT)
    assert server.mails == []


def test_a_server_that_turns_us_away_at_the_door_says_nothing_about_the_message() -> None:
    assert isinstance(
        refusal({"greeting": "554 5.7.1 Your network is blocked"}), ProviderUnavailableError
    )


def test_a_server_that_wants_a_login_first_says_nothing_about_the_message() -> None:
    assert isinstance(
        refusal({"MAIL": "530 5.7.0 Authentication required"}), ProviderUnavailableError
    )


@pytest.mark.parametrize("reply", ["550 5.7.1 Not yours", "553 5.1.8 No such domain", "554 No"])
def test_a_sender_that_is_not_taken_says_nothing_about_the_message(reply: str) -> None:
    error = refusal({"MAIL": reply})
    assert isinstance(error, ProviderUnavailableError)
    assert error.response is not None
    assert error.response.status == int(reply[:3])


def test_a_mail_that_is_too_big_by_its_announcement_will_not_go() -> None:
    assert type(refusal({"MAIL": "552 5.3.4 Too big"})) is PermanentError


@pytest.mark.parametrize("reply", ["550 5.7.1 Your server is on a blocklist", "553 5.7.1 Relay"])
def test_a_policy_against_us_is_not_held_against_the_mailbox(reply: str) -> None:
    assert type(refusal({"RCPT": reply})) is PermanentError


@pytest.mark.parametrize(
    ("reply", "code"),
    [("550 5.1.1 No such user", "5.1.1"), ("550 No such user", None), ("550 5.1 No", None)],
)
def test_the_servers_own_code_is_kept(reply: str, code: str | None) -> None:
    error = refusal({"RCPT": reply})
    assert error.response is not None
    assert error.response.code == code


def test_a_server_that_does_not_want_to_be_greeted_says_nothing_about_the_message() -> None:
    error = refusal({"EHLO": "550 Who?", "HELO": "550 Who?"})
    assert isinstance(error, ProviderUnavailableError)


def test_without_a_way_to_log_in_that_both_know_nothing_is_sent() -> None:
    server = MailServer({"EHLO": "250-mail.example.com\r\n250 AUTH X-OWN"})
    with (
        mail_server(server, username="u", password="p") as (smtp, _),
        pytest.raises(ProviderUnavailableError),
    ):
        smtp.send(outbound(), timeout=LIMIT)


@pytest.mark.parametrize("command", ["greeting", "MAIL", "RCPT", "DATA"])
@pytest.mark.parametrize("nonsense", ["what?", "999 Hello", "-12 Hello", "600 Hello", ""])
def test_nonsense_before_the_message_is_no_refusal_of_it(command: str, nonsense: str) -> None:
    error = refusal({command: nonsense})
    assert isinstance(error, TransientError)
    assert not error.is_ambiguous


@pytest.mark.parametrize("nonsense", ["what?", "354 Go on", "999 Hello", "-12 Hello", "x" * 9000])
def test_nonsense_after_the_message_may_mean_that_it_went(nonsense: str) -> None:
    error = refusal({"message": nonsense})
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


@pytest.mark.parametrize(
    "fields",
    [
        {"message": Message(subject="one\r\nBcc: eve@example.com", text="x")},
        {"message": Message(subject="Paid", text="\ud800")},
        {"recipient": "ada@example.com\r\nRCPT TO:<eve@example.com>"},
        {"recipient": "ada@\u2602\u2602"},
    ],
    ids=["a line break in the subject", "half a character", "a line break", "no domain"],
)
def test_what_cannot_be_made_into_a_mail_is_refused_before_anybody_is_called(
    fields: dict[str, Any],
) -> None:
    with mail_server(MailServer()) as (smtp, running):
        with pytest.raises(PermanentError) as error:
            smtp.send(outbound(**fields), timeout=LIMIT)
        assert running.connections == 0
    assert error.value.code is FailureCode.RENDER_FAILED
    assert "ada" not in error.value.reason


def test_a_domain_in_any_script_is_the_one_that_was_meant() -> None:
    """By older rules a mail to this domain went to strasse.example, which is somebody else."""
    server = MailServer()
    with mail_server(server) as (smtp, _):
        smtp.send(outbound(recipient="ada@stra\u00dfe.example"), timeout=LIMIT)
    # Commands are in either case: Python 3.13 writes another than 3.12 does.
    commands = [command.lower() for command in server.commands]
    assert "rcpt to:<ada@xn--strae-oqa.example>" in commands
    mail = email.message_from_bytes(server.mails[0], policy=email.policy.default)
    assert mail["To"] == "Ada <ada@xn--strae-oqa.example>"


def test_a_password_that_cannot_be_one_is_a_matter_of_the_account() -> None:
    server = MailServer({"EHLO": "250-mail.example.com\r\n250 AUTH PLAIN"})
    with (
        mail_server(server, username="u", password="p\u00e9") as (smtp, _),
        pytest.raises(ProviderUnavailableError),
    ):
        smtp.send(outbound(), timeout=LIMIT)
    assert server.mails == []


def test_a_host_that_cannot_be_one_is_a_matter_of_the_account() -> None:
    with pytest.raises(ProviderUnavailableError):
        provider(25, host="x" * 300).send(outbound(), timeout=LIMIT)


def test_a_mail_server_sends_no_receipts() -> None:
    assert provider(25).parse_receipts({}, b"[]") == []


def test_the_password_is_not_shown_when_the_provider_is() -> None:
    assert "hunter2" not in repr(provider(25, password="hunter2"))
