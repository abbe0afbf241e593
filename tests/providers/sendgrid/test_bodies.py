"""SendGrid requests and acceptances."""

import json
from typing import Any

import pytest

from domain.errors import FailureCode, PermanentError
from providers.contract import Message
from providers.mail import AttachmentFile
from providers.sendgrid import provider
from providers.sendgrid.provider import MAX_ID_LENGTH, SubstitutionTag
from tests.support.factories.notifications import outbound
from tests.support.fakes import socket_server
from tests.support.providers import sendgrid
from tests.support.providers.sendgrid import account
from tests.support.waiting import LIMIT


def test_body_has_one_recipient_two_parts_and_a_reference() -> None:
    assert account().body(outbound()) == {
        "from": {"email": "notifications@example.com", "name": "Notifications"},
        "subject": "Paid",
        "personalizations": [
            {
                "to": [{"email": "ada@example.com", "name": "Ada"}],
                "custom_args": {"reference": f"{'a' * 24}.email.1"},
            }
        ],
        "content": [
            {"type": "text/plain", "value": "Your payment has arrived."},
            {"type": "text/html", "value": "<p>Paid</p>"},
        ],
    }


def test_body_without_html_or_name() -> None:
    message = Message(subject="Paid", text="Your payment has arrived.")
    body = account(sender="notifications@example.com").body(
        outbound(message=message, recipient_name=None)
    )
    assert body["from"] == {"email": "notifications@example.com"}
    assert body["personalizations"][0]["to"] == [{"email": "ada@example.com"}]
    assert [part["type"] for part in body["content"]] == ["text/plain"]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script> & \"quotes\" 'too'",
        "👩‍👩‍👧 caf\u00e9 e\u0301 مرحبا",
        "{{ code }} %recipient% -name- [Unsubscribe]",
        "line one\nline two\r\n\r\nlast",
        "$password \\ \u2028",
        "SG.abc.def is what a key looks like",
    ],
)
def test_texts_are_passed_on_unchanged(text: str) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as server:
        mail = outbound(message=Message(subject=text, text=text, html=text), recipient_name=text)
        account(base_url=server.url).send(mail, timeout=LIMIT)
    sent = json.loads(handler.requests[0].partition(b"\r\n\r\n")[2])
    assert sent["subject"] == text
    assert [part["value"] for part in sent["content"]] == [text, text]
    assert sent["personalizations"][0]["to"][0]["name"] == text


def test_mail_is_one_post_with_the_key() -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as server:
        account(base_url=server.url).send(outbound(), timeout=LIMIT)
    (request,) = handler.requests
    head = request.partition(b"\r\n\r\n")[0]
    assert head.startswith(b"POST /v3/mail/send HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer SG.key\r\n" in head
    assert b"\r\nContent-Type: application/json" in head


def test_reference_contains_no_address() -> None:
    body = account().body(outbound())
    assert "@" not in json.dumps(body["personalizations"][0]["custom_args"])


def test_international_domain_is_encoded() -> None:
    body = account().body(outbound(recipient="ada@stra\u00dfe.example"))
    assert body["personalizations"][0]["to"][0]["email"] == "ada@xn--strae-oqa.example"


@pytest.mark.parametrize(
    "fields",
    [{"message": Message(subject="Paid", text="\ud800")}, {"recipient": "ada@\u2602\u2602"}],
    ids=["half a character", "no domain"],
)
def test_unencodable_mail_is_not_sent(
    fields: dict[str, Any],
) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as server, pytest.raises(PermanentError) as error:
        account(base_url=server.url).send(outbound(**fields), timeout=LIMIT)
    assert handler.requests == []
    assert error.value.code is FailureCode.RENDER_FAILED


@pytest.mark.parametrize("name", [None, "Ada"])
@pytest.mark.parametrize("html", [None, "<p>Paid</p>"])
@pytest.mark.parametrize("tag", [None, SubstitutionTag("-tag-")])
@pytest.mark.parametrize("url", [None, "https://n.example.com/u/abc"])
def test_body_equals_that_of_sendgrids_library(
    name: str | None, html: str | None, tag: SubstitutionTag | None, url: str | None
) -> None:
    message = Message(
        subject="Paid",
        text=f"Paid. {url}",
        html=html,
        reply_to="help@example.com",
        unsubscribe_url=url,
    )
    mail = outbound(message=message, recipient_name=name)
    file = AttachmentFile(
        filename="invoice.pdf", content_type="application/pdf", content=b"%PDF-1.7"
    )
    body = provider.shared_body(
        message, sender=("Shop", "shop@example.com"), default_reply_to=None, files=[file], tag=tag
    )
    person = provider.personalization(mail, tag=tag)
    assert {**body, "personalizations": [person]} == sendgrid.built(mail, file, tag)


@pytest.mark.parametrize(
    ("headers", "provider_id"),
    [(["X-Message-Id: sg-1"], "sg-1"), (["x-message-id: sg-2"], "sg-2"), ([], None)],
)
def test_202_is_accepted_with_or_without_an_id(headers: list[str], provider_id: str | None) -> None:
    with socket_server.serving(
        socket_server.answering(socket_server.response(202, b"", *headers))
    ) as server:
        result = account(base_url=server.url).send(outbound(), timeout=LIMIT)
    assert (result.provider_id, result.response.status) == (provider_id, 202)
    assert not result.is_delivered


def test_message_id_is_truncated() -> None:
    answer = socket_server.response(202, b"", f"X-Message-Id: {'x' * 5_000}")
    with socket_server.serving(socket_server.answering(answer)) as server:
        result = account(base_url=server.url).send(outbound(), timeout=LIMIT)
    assert result.provider_id == "x" * MAX_ID_LENGTH
