"""Unsubscribe and Reply-To headers of both email providers."""

import email
import email.policy
from dataclasses import replace
from email.message import EmailMessage

import pytest

from domain.errors import FailureCode, PermanentError
from notifyproject.platform.event_loop import run
from providers.contract import Message
from tests.support.factories.notifications import outbound
from tests.support.fakes import socket_server
from tests.support.fakes.smtp_server import MailServer, provider
from tests.support.providers.sendgrid import account
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("opened")
URL = "https://notify.example.com/u/" + "A-_b" * 60
"""Longer than a line of mail."""
LEAVING = Message(subject="News", text="There is news.", unsubscribe_url=URL)
AUTOMATIC = {"Auto-Submitted": "auto-generated"}
UNSUBSCRIBING = {
    "List-Unsubscribe": f"<{URL}>",
    "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
}


def by_smtp(message: Message, *, reply_to: str | None = None) -> tuple[EmailMessage, bytes]:
    """Return a mail as the server gets it, parsed and raw."""
    server = MailServer()
    with socket_server.serving(server) as running:
        plain = provider(running.port)
        smtp = replace(plain, reply_to=reply_to)
        run(smtp.send(outbound(message=message), timeout=LIMIT))
    (raw,) = server.mails
    return email.message_from_bytes(raw, policy=email.policy.default), raw


def test_sendgrid_mail_has_one_click_unsubscribe_headers() -> None:
    body = account().body(outbound(message=LEAVING))
    assert body["personalizations"][0]["headers"] == AUTOMATIC | UNSUBSCRIBING
    assert "substitutions" not in body["personalizations"][0]


def test_smtp_mail_has_one_click_unsubscribe_headers() -> None:
    mail, _ = by_smtp(LEAVING)
    assert {name: mail[name] for name in UNSUBSCRIBING} == UNSUBSCRIBING


def test_unsubscribe_header_is_not_folded() -> None:
    """Mail programs ignore a folded or encoded link."""
    _, raw = by_smtp(LEAVING)
    assert f"\r\nList-Unsubscribe: <{URL}>\r\n".encode() in raw
    assert b"=?utf-8?" not in raw
    assert b"List-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in raw


def test_mail_without_subscription_has_no_list_headers() -> None:
    assert account().body(outbound())["personalizations"][0]["headers"] == AUTOMATIC
    mail, _ = by_smtp(Message(subject="Paid", text="Your payment has arrived."))
    assert not any(name.startswith("List-") for name in mail)


def test_unsubscribe_url_with_a_line_break_is_refused() -> None:
    message = Message(subject="News", text="x", unsubscribe_url="https://x/\r\nBcc: eve@x.example")
    with pytest.raises(PermanentError) as error:
        by_smtp(message)
    assert error.value.code is FailureCode.RENDER_FAILED


DEFAULT = "The Shop's friends <friends@example.com>"


@each_case(
    "own, default, expected",
    [
        (None, None, None),
        (None, "", None),
        (None, DEFAULT, {"email": "friends@example.com", "name": "The Shop's friends"}),
        (None, "friends@example.com", {"email": "friends@example.com"}),
        ("agent@example.com", None, {"email": "agent@example.com"}),
        ("agent@example.com", DEFAULT, {"email": "agent@example.com"}),
        ("agent@stra\u00dfe.example", None, {"email": "agent@xn--strae-oqa.example"}),
    ],
)
def test_reply_to_is_the_messages_or_the_default(
    own: str | None, default: str | None, expected: dict[str, str] | None
) -> None:
    message = Message(subject="Paid", text="Your payment has arrived.", reply_to=own)
    body = account(reply_to=default).body(outbound(message=message))
    assert body.get("reply_to") == expected
    header = by_smtp(message, reply_to=default)[0]["Reply-To"]
    if expected is None:
        assert header is None
    else:
        (address,) = header.addresses
        assert address.addr_spec == expected["email"]
        assert address.display_name == expected.get("name", "")


def test_reply_to_name_may_be_in_any_script() -> None:
    name = "Atendimento caf\u00e9 \u0645\u0631\u062d\u0628\u0627"
    mail, _ = by_smtp(Message(subject="x", text="x"), reply_to=f"{name} <a@example.com>")
    assert mail["Reply-To"].addresses[0].display_name == name


@each_case("reply_to", ["a@example.com\r\nBcc: eve@example.com", "a@\u2602\u2602"])
def test_invalid_reply_to_is_refused(reply_to: str) -> None:
    message = Message(subject="x", text="x", reply_to=reply_to)
    with pytest.raises(PermanentError) as error:
        by_smtp(message)
    assert error.value.code is FailureCode.RENDER_FAILED
