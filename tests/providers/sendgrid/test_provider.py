"""SendGrid requests, acceptances, and errors."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import unquote
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
from providers.mail import AttachmentFile
from providers.sendgrid import provider
from providers.sendgrid.provider import MAX_ID_LENGTH, SubstitutionTag
from tests.support.factories.notifications import FIXED_NOON, outbound
from tests.support.fakes import socket_server
from tests.support.providers import sendgrid
from tests.support.providers.sendgrid import account
from tests.support.tables import each_case
from tests.support.waiting import LIMIT


def test_body_has_one_recipient_two_parts_and_a_reference() -> None:
    assert account().body(outbound()) == {
        "from": {"email": "notifications@example.com", "name": "Notifications"},
        "subject": "Paid",
        "personalizations": [
            {
                "to": [{"email": "ada@example.com", "name": "Ada"}],
                "custom_args": {"reference": f"{'a' * 24}.email.1"},
                "headers": {"Auto-Submitted": "auto-generated"},
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


@each_case(
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
        run(account(base_url=server.url).send(mail, timeout=LIMIT))
    sent = json.loads(handler.requests[0].partition(b"\r\n\r\n")[2])
    assert sent["subject"] == text
    assert [part["value"] for part in sent["content"]] == [text, text]
    assert unquote(sent["personalizations"][0]["to"][0]["name"]) == text


def test_mail_is_one_post_with_the_key() -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as server:
        run(account(base_url=server.url).send(outbound(), timeout=LIMIT))
    (request,) = handler.requests
    head = request.partition(b"\r\n\r\n")[0]
    assert head.startswith(b"POST /v3/mail/send HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer SG.key\r\n" in head
    assert b"\r\nContent-Type: application/json" in head


def test_international_domain_is_encoded() -> None:
    body = account().body(outbound(recipient="ada@stra\u00dfe.example"))
    assert body["personalizations"][0]["to"][0]["email"] == "ada@xn--strae-oqa.example"


@each_case(
    "fields",
    [{"message": Message(subject="Paid", text="\ud800")}, {"recipient": "ada@\u2602\u2602"}],
)
def test_unencodable_mail_is_not_sent(fields: dict[str, Any]) -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as server, pytest.raises(PermanentError) as error:
        run(account(base_url=server.url).send(outbound(**fields), timeout=LIMIT))
    assert handler.requests == []
    assert error.value.code is FailureCode.RENDER_FAILED


@each_case("name", [None, "Ada"])
@each_case("html", [None, "<p>Paid</p>"])
@each_case("tag", [None, SubstitutionTag("-tag-")])
@each_case("url", [None, "https://n.example.com/u/abc"])
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
    body = account(sender="Shop <shop@example.com>").shared_body(message, [file], tag)
    person = provider.personalization(mail, tag=tag)
    assert {**body, "personalizations": [person]} == sendgrid.built(mail, file, tag)


@each_case(
    "headers, provider_id",
    [(["X-Message-Id: sg-1"], "sg-1"), (["x-message-id: sg-2"], "sg-2"), ([], None)],
)
def test_202_is_accepted_with_or_without_an_id(headers: list[str], provider_id: str | None) -> None:
    answer = socket_server.response(202, b"", *headers)
    with socket_server.serving(socket_server.answering(answer)) as server:
        result = run(account(base_url=server.url).send(outbound(), timeout=LIMIT))
    assert (result.provider_id, result.response.status) == (provider_id, 202)
    assert not result.is_delivered


def test_message_id_is_truncated() -> None:
    answer = socket_server.response(202, b"", f"X-Message-Id: {'x' * 5_000}")
    with socket_server.serving(socket_server.answering(answer)) as server:
        result = run(account(base_url=server.url).send(outbound(), timeout=LIMIT))
    assert result.provider_id == "x" * MAX_ID_LENGTH


EPOCH = int(FIXED_NOON.timestamp())


def errors(*fields: str | None) -> bytes:
    return json.dumps(
        {"errors": [{"message": "wrong", "field": field, "help": None} for field in fields]}
    ).encode()


def refusal(answer: bytes, *, timeout: float = LIMIT) -> ProviderError:
    with (
        socket_server.serving(socket_server.answering(answer)) as server,
        pytest.raises(ProviderError) as error,
    ):
        run(account(base_url=server.url).send(outbound(), timeout=timeout))
    return error.value


@each_case(
    "status, body, kind, code",
    [
        (429, b"", TransientError, FailureCode.RATE_LIMITED),
        (408, b"", TransientError, FailureCode.PROVIDER_ERROR),
        (500, b"", TransientError, FailureCode.PROVIDER_ERROR),
        (502, b"<html>Bad gateway</html>", TransientError, FailureCode.PROVIDER_ERROR),
        (503, errors(None), TransientError, FailureCode.PROVIDER_ERROR),
        (599, b"", TransientError, FailureCode.PROVIDER_ERROR),
        (301, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (302, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (307, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (399, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (401, errors(None), ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (403, errors("from"), ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (404, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (405, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (415, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (400, errors("subject"), PermanentError, FailureCode.REJECTED),
        (400, errors("from.email"), ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (400, errors("content.0.value"), PermanentError, FailureCode.REJECTED),
        (400, errors(None), PermanentError, FailureCode.REJECTED),
        (400, b"not JSON", PermanentError, FailureCode.REJECTED),
        (400, b"", PermanentError, FailureCode.REJECTED),
        (413, b"", PermanentError, FailureCode.TOO_LARGE),
        (402, b"", ProviderUnavailableError, FailureCode.CHANNEL_UNAVAILABLE),
        (418, b"", PermanentError, FailureCode.REJECTED),
        (
            400,
            errors("personalizations.0.to.0.email"),
            InvalidRecipientError,
            FailureCode.INVALID_RECIPIENT,
        ),
        (
            400,
            errors("subject", "personalizations.0.to.0.email"),
            InvalidRecipientError,
            FailureCode.INVALID_RECIPIENT,
        ),
        (
            400,
            errors("personalizations.0.to"),
            InvalidRecipientError,
            FailureCode.INVALID_RECIPIENT,
        ),
    ],
)
def test_other_answer_is_an_error_of_its_class(
    status: int, body: bytes, kind: type[ProviderError], code: FailureCode
) -> None:
    error = refusal(socket_server.response(status, body))
    assert type(error) is kind
    assert error.code is code
    assert error.response.status == status


def test_other_personalization_error_is_not_about_the_address() -> None:
    for field in ("", ".0.custom_args", ".0.subject", ".0.to.0.name", ".0.headers.Reply-To"):
        answer = socket_server.response(400, errors(f"personalizations{field}"))
        assert type(refusal(answer)) is PermanentError


@each_case("status", [200, 201, 203, 204 + 1, 206, 299])
def test_undocumented_success_is_ambiguous(status: int) -> None:
    error = refusal(socket_server.response(status, b"{}"))
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


@each_case("status", [504, 524])
def test_gateway_that_waited_in_vain_leaves_the_outcome_open(status: int) -> None:
    """https://github.com/sendgrid/sendgrid-php/issues/933"""
    error = refusal(socket_server.response(status, b"<html>Gateway Timeout</html>"))
    assert isinstance(error, TransientError)
    assert error.is_ambiguous


def test_missing_credit_is_about_the_account() -> None:
    body = json.dumps({"errors": [{"message": "Maximum credits exceeded"}]}).encode()
    error = refusal(socket_server.response(401, body))
    assert isinstance(error, ProviderUnavailableError)
    assert "Maximum credits exceeded" in error.response.excerpt


def test_bad_address_is_suspect() -> None:
    error = refusal(socket_server.response(400, errors("personalizations.0.to.0.email")))
    assert isinstance(error, InvalidRecipientError)
    assert error.action is RecipientAction.SUSPECT


@each_case(
    "body",
    [
        b"[]",
        b"null",
        b'"x"',
        b"7",
        b"{}",
        b'{"errors": null}',
        b'{"errors": {}}',
        b'{"errors": [1, null, "x"]}',
        b'{"errors": [{}]}',
        b'{"errors": [{"field": null}]}',
        b'{"errors": [{"field": {}}]}',
        b'{"errors": [{"field": 7}]}',
        b"\xff\xfe",
        b"{",
        b'{"errors": [{"message": "caf\xe9"}]}',
        b'{"\xff": 1}',
        b'{"errors": [{"field": "\\ud8',
        b"[" * 10_000,
    ],
)
def test_undocumented_body_is_a_permanent_error(body: bytes) -> None:
    error = refusal(socket_server.response(400, body))
    assert type(error) is PermanentError
    assert error.response is not None
    assert error.response.code is None


def test_error_field_is_truncated_and_redacted() -> None:
    error = refusal(socket_server.response(400, errors(f"x ada@example.com {'x' * 5_000}")))
    assert error.response.code.startswith("x [address] xxx")
    assert len(error.response.code) == MAX_ID_LENGTH


def test_response_excerpt_is_redacted() -> None:
    body = json.dumps(
        {"errors": [{"field": "subject", "message": "ada@example.com may not get this"}]}
    ).encode()
    error = refusal(socket_server.response(400, body))
    assert error.response.code == "subject"
    assert "ada" not in error.response.excerpt
    assert "may not get this" in error.response.excerpt


@each_case(
    "headers, pause",
    [
        ([f"X-RateLimit-Reset: {EPOCH + 30}"], 30.0),
        ([f"X-RateLimit-Reset: {EPOCH + 30}", "Retry-After: 5"], 30.0),
        ([f"X-RateLimit-Reset: {EPOCH + 10**6}"], 86_400.0),
        ([f"X-RateLimit-Reset: {EPOCH}"], None),
        ([f"X-RateLimit-Reset: {EPOCH - 3600}"], None),
        (["X-RateLimit-Reset: 9999999999"], 86_400.0),
        (["X-RateLimit-Reset: 60", "Retry-After: 5"], 5.0),
        (["X-RateLimit-Reset: soon", "Retry-After: 5"], 5.0),
        (["X-RateLimit-Reset: -1"], None),
        (["X-RateLimit-Reset: 17637264000000"], None),
        (["X-RateLimit-Reset: "], None),
        (["Retry-After: 120"], 120.0),
        (["Retry-After: Sat, 21 Nov 2026 12:02:00 GMT"], 120.0),
        (["Retry-After: soon"], None),
        ([], None),
    ],
)
def test_rate_limit_has_a_retry_time(headers: list[str], pause: float | None) -> None:
    error = refusal(socket_server.response(429, b"", *headers))
    assert isinstance(error, TransientError)
    assert error.retry_after == pause


def test_unavailable_account_may_have_a_retry_time() -> None:
    error = refusal(socket_server.response(403, b"", "Retry-After: 60"))
    assert isinstance(error, ProviderUnavailableError)
    assert error.retry_after == 60.0


def test_pause_uses_the_given_clock() -> None:
    moved = account(clock=lambda: FIXED_NOON + timedelta(seconds=20))
    headers = {"x-ratelimit-reset": str(EPOCH + 30)}
    assert moved._parse_pause(headers) == 10.0
    assert datetime.fromtimestamp(EPOCH, UTC) == FIXED_NOON
