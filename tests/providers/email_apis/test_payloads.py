"""What every kind sends: names, headers, and attachments as they are, and nothing elsewhere."""

import base64
import email.message
import html
import json
import logging
import mimetypes
import re
from typing import Any
from urllib.parse import unquote_plus

import pytest

from domain.errors import FailureCode, PermanentError, ProviderError
from notifyproject.platform.event_loop import run
from providers.contract import Message
from providers.http import Response
from providers.mail import AttachmentFile
from tests.providers.contract.runner import logged
from tests.providers.email_apis.brevo import BREVO
from tests.providers.email_apis.cases import EVERY
from tests.providers.email_apis.kinds import ADDRESS, KEY, REFERENCE, KindCase
from tests.providers.email_apis.sparkpost import SPARKPOST
from tests.support.factories.notifications import outbound
from tests.support.fakes import socket_server
from tests.support.waiting import LIMIT

CANARY = "canary-of-bodies-0815"
URL = "https://notify.example.com/u/token"
WITHOUT_METHODS = {"resend", "brevo", "mailjet"}
"""They take no parameters of a type, such as the method of an invitation."""
FILES = (
    AttachmentFile(filename="bill.pdf", content_type="application/pdf", content=b"%PDF\0"),
    AttachmentFile(
        filename="meeting.ics", content_type="text/calendar; method=REQUEST", content=b"BEGIN:V"
    ),
    AttachmentFile(filename="prices.csv", content_type="text/csv", content="5 €".encode("cp1252")),
    AttachmentFile(filename="prix été.txt", content_type="text/plain", content="é".encode()),
    AttachmentFile(filename="photo.png", content_type="application/octet-stream", content=b"PNG"),
    AttachmentFile(filename="data.unknown", content_type="no type", content=b"\xff"),
)


def message(**fields: Any) -> Message:
    default = {
        "subject": f"Zażółć {CANARY}",
        "text": CANARY,
        "html": f"<p>{CANARY}</p>",
        "unsubscribe_url": URL,
        "reply_to": "help@bücher.example",
    }
    return Message(**(default | fields))


def sent(case: KindCase, **fields: Any) -> str:
    """Return the whole request as text, with JSON decoded."""
    files = fields.pop("files", ())
    request = case.account().build(outbound(**fields), files=files).request
    body = request.body or b""
    if body.startswith(b"{"):
        return json.dumps(json.loads(body), ensure_ascii=False)
    text = body.decode(errors="replace")
    is_form = request.headers["Content-Type"] == "application/x-www-form-urlencoded"
    return unquote_plus(text) if is_form else text


@EVERY
def test_mail_has_every_part(case: KindCase) -> None:
    text = sent(case, recipient=ADDRESS, reference=REFERENCE, message=message())
    for part in (ADDRESS, "shop@example.com", CANARY, "auto-generated", URL, REFERENCE):
        assert part in text, part
    assert "help@xn--bcher-kva.example" in text


@EVERY
def test_name_with_special_characters_remains_one_recipient(case: KindCase) -> None:
    for name in ('Lovelace, "Ada"; <x>', "Ada: Countess", "Zażółć", "a@b.example", "\\"):
        built = case.account().build(outbound(recipient=ADDRESS, recipient_name=name))
        body = json.dumps(case.accepted).encode()
        accepted = Response(status=case.success, headers={}, body=body)
        assert built.accepted_id(accepted) == case.message_id


@EVERY
def test_line_break_reaches_no_header(case: KindCase) -> None:
    for field in ({"recipient_name": "Ada\r\nBcc: x@example.com"},):
        with pytest.raises(PermanentError) as found:
            case.account().build(outbound(**field))
        assert found.value.code is FailureCode.RENDER_FAILED


@EVERY
def test_attachments_have_their_bytes_and_names(case: KindCase) -> None:
    text = sent(case, message=message(), files=FILES)
    for file in FILES:
        is_there = base64.b64encode(file.content).decode() in text
        assert is_there or file.content.decode(errors="replace") in text, file
    for name in ("bill.pdf", "meeting.ics", "prices.csv", "photo.png"):
        assert name in text
    assert "REQUEST" in text or case.name in WITHOUT_METHODS


@EVERY
def test_built_request_names_only_the_account(case: KindCase) -> None:
    request = case.account().build(outbound()).request
    assert request.url.startswith("http://127.0.0.1:1/")
    assert not {name.lower() for name in request.headers} & {"cookie", "user-agent", "host"}


@EVERY
def test_error_of_the_library_quotes_nothing(case: KindCase, monkeypatch: Any) -> None:
    account = case.account()
    payload = type(account.build(outbound()).payload)

    def refuse(self: Any, *_: Any) -> None:
        self.unsupported_feature(CANARY)

    monkeypatch.setattr(payload, "set_text_body", refuse)
    with pytest.raises(PermanentError) as found:
        account.build(outbound(recipient=ADDRESS, message=message()))
    error = found.value
    assert error.__cause__ is None
    assert error.__suppress_context__
    assert CANARY not in f"{error} {error!r}"


@EVERY
def test_nothing_private_is_logged(case: KindCase) -> None:
    request = outbound(recipient=ADDRESS, recipient_name="Ada", message=message())
    answers = [
        socket_server.response(case.success, json.dumps(case.accepted).encode()),
        *(socket_server.response(answer.status, answer.raw) for answer in case.answers),
    ]
    shown = list[str]()
    for answer in answers:
        with socket_server.serving(answering(answer)) as server, logged() as lines:
            account = case.account(options={"api_url": server.url}, clock=case.account().clock)
            try:
                outcome: object = run(account.send(request, timeout=LIMIT))
            except ProviderError as error:
                outcome = error
                logging.getLogger("tests").warning("refused", exc_info=error)
        shown += [*lines, repr(account), str(outcome), repr(outcome), repr(account.account)]
        shown.append(repr(getattr(outcome, "response", None)))
    text = "\n".join(shown)
    assert [word for word in (ADDRESS, CANARY, KEY, "Lovelace") if word in text] == []


def answering(answer: bytes) -> Any:
    def serve(connection: Any) -> None:
        while socket_server.read_request(connection):
            connection.sendall(answer)

    return serve


@EVERY
def test_type_of_an_attachment_fits_the_name_where_it_must(case: KindCase) -> None:
    builder = case.account()._builder
    for part, file in zip(builder._attachments(FILES), FILES, strict=True):
        assert isinstance(part, email.message.Message)
        guessed = mimetypes.guess_type(file.filename)[0]
        if case.kind.types_follow_names and guessed:
            assert part.get_content_type() == guessed


TEMPLATES = ("{{ env }}", '{"a":{"b":{}}}', "{{#if x}}{{{y}}}{{/if}}", "{% if x %}", "a {b} c")


def test_sparkpost_evaluates_only_variables_of_ours() -> None:
    variable = re.compile(r"\{\{(\w+)\}\}")
    for text in TEMPLATES:
        found = fields_of(SPARKPOST, message(subject=text, text=text, html=f"<p>{text}</p>"))
        values = found.get("substitution_data", {})
        for part, expected in (("subject", text), ("text", text), ("html", f"<p>{text}</p>")):
            sent = found["content"][part]
            # As SparkPost does: values are not evaluated again.
            texts, names = variable.split(sent)[::2], variable.findall(sent)
            assert not any("{{" in one or "}}" in one for one in texts), sent
            shown = [one for pair in zip(texts, [*names, ""], strict=True) for one in pair]
            assert "".join(values.get(one, one) for one in shown) == expected


def test_sparkpost_is_told_whether_a_mail_is_transactional() -> None:
    for category, expected in (("marketing", False), ("transactional", True), ("", True)):
        found = fields_of(SPARKPOST, message(), category=category)
        assert found["options"] == {"transactional": expected}
        assert "substitution_data" not in found


def test_brevo_gets_no_template() -> None:
    for text in TEMPLATES:
        found = fields_of(BREVO, message(subject=text, text=text, html=f"<p>{text}</p>"))
        for part in ("subject", "textContent", "htmlContent"):
            assert "{{" not in found[part]
            assert "{%" not in found[part]
        assert html.unescape(found["htmlContent"]) == f"<p>{text}</p>"
        assert found["textContent"].replace("\N{WORD JOINER}", "") == text


def fields_of(case: KindCase, content: Message, **fields: Any) -> dict[str, Any]:
    request = case.account().build(outbound(message=content, **fields)).request
    return dict(json.loads(request.body or b""))
