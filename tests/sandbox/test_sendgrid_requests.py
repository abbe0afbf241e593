"""Requests to the sandbox's SendGrid: required and optional fields."""

import base64
import gzip
import json
import socket
from typing import Any

import pytest
import urllib3

from tests.support.clients.sandbox import Box, mail
from tests.support.tables import each_case

LIMIT = 30 * 1024 * 1024


@pytest.fixture
def box(shared_box: Box) -> Box:
    return shared_box


def errors(answer: Any) -> list[dict[str, Any]]:
    found = json.loads(answer.data)["errors"]
    assert all(set(error) == {"message", "field", "help"} for error in found)
    return found


def people(count: int) -> list[dict[str, str]]:
    return [{"email": f"user{number}@example.com"} for number in range(count)]


def test_accepted_mail_has_an_id_and_no_body(box: Box) -> None:
    answer = box.send(mail())
    assert (answer.status, answer.data) == (202, b"")
    assert len(answer.headers["X-Message-Id"]) == 22


@pytest.mark.parametrize(
    ("key", "status", "message"),
    [
        (None, 401, "authorization required"),
        ("", 401, "The provided authorization grant is invalid, expired, or revoked"),
        ("other", 401, "The provided authorization grant is invalid, expired, or revoked"),
        ("SG.revoked", 401, "The provided authorization grant is invalid, expired, or revoked"),
        ("SG.exhausted", 401, "Maximum credits exceeded"),
        ("SG.noscope", 403, "access forbidden"),
    ],
)
def test_invalid_key_is_refused(box: Box, key: str | None, status: int, message: str) -> None:
    answer = box.send(mail(), key=key)
    assert answer.status == status
    assert errors(answer) == [{"message": message, "field": None, "help": None}]
    assert not box.requests()[0]["accepted"]


def test_other_scheme_than_bearer_is_refused(box: Box) -> None:
    assert box.send(mail(), key=None, Authorization="Basic SG.test").status == 401


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_other_content_type_is_refused(box: Box, kind: str) -> None:
    answer = box.send(mail(), **{"Content-Type": kind})
    assert (answer.status, errors(answer)[0]["message"]) == (
        415,
        "Content-Type should be application/json.",
    )


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"{'a': 1}", b'"\xff"', b'"\\ud800"', b"[" * 100_000, b"{} {}", b"NaN"]
)
def test_body_that_is_not_json_is_refused(box: Box, raw: bytes) -> None:
    answer = box.send(raw)
    assert (answer.status, errors(answer)[0]["message"]) == (400, "Bad Request")
    assert box.requests()[0]["body"] is None


@pytest.mark.parametrize("body", [[], "text", 5, None, [mail()]])
def test_body_that_is_no_object_is_refused(box: Box, body: Any) -> None:
    assert errors(box.send(body))[0]["field"] == "(root)"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"personalizations": None}, "personalizations"),
        ({"personalizations": []}, "personalizations"),
        ({"personalizations": {}}, "personalizations"),
        ({"personalizations": ["ada"]}, "personalizations.0"),
        ({"personalizations": [{}]}, "personalizations.0.to"),
        ({"personalizations": [{"to": []}]}, "personalizations.0.to"),
        ({"personalizations": [{"to": "ada"}]}, "personalizations.0.to"),
        ({"personalizations": [{"to": ["ada"]}]}, "personalizations.0.to.0"),
        ({"personalizations": [{"to": [{}]}]}, "personalizations.0.to.0.email"),
        (
            {"personalizations": [{"to": people(2)}, {"to": [{"email": "ada"}]}]},
            "personalizations.1.to.0.email",
        ),
        (
            {"personalizations": [{"to": people(1), "cc": [{"email": "ada@"}]}]},
            "personalizations.0.cc.0.email",
        ),
        ({"personalizations": [{"to": people(1), "bcc": people(1)}]}, "personalizations.0"),
        ({"personalizations": [{"to": people(1)}] * 1001}, "personalizations"),
        ({"personalizations": [{"to": people(1001)}]}, "personalizations"),
        ({"personalizations": [{"to": people(501)}, {"to": people(500)}]}, "personalizations"),
        (
            {"personalizations": [{"to": people(1), "custom_args": {"number": 5}}]},
            "personalizations.0.custom_args.number",
        ),
        (
            {"personalizations": [{"to": people(1), "custom_args": {"long": "x" * 10_000}}]},
            "personalizations.0.custom_args",
        ),
        (
            {
                "custom_args": {"one": "x" * 6_000},
                "personalizations": [{"to": people(1), "custom_args": {"two": "x" * 6_000}}],
            },
            "personalizations.0.custom_args",
        ),
        (
            {"custom_args": {"long": "x" * 10_000}, "personalizations": [{"to": people(1)}]},
            "custom_args",
        ),
        ({"custom_args": []}, "custom_args"),
        ({"from": None}, "from.email"),
        ({"from": {"name": "Shop"}}, "from.email"),
        ({"from": {"email": "shop"}}, "from.email"),
        ({"from": "shop@example.com"}, "from"),
        ({"from": {"email": "shop@example.com", "name": 5}}, "from.name"),
        ({"reply_to": {"email": "shop"}}, "reply_to.email"),
        *((changes, "subject") for changes in ({"subject": None}, {"subject": ""}, {"subject": 5})),
        ({"content": None}, "content"),
        ({"content": []}, "content"),
        ({"content": {}}, "content"),
        ({"content": "text"}, "content"),
        ({"content": ["text"]}, "content.0"),
        ({"content": [{"type": "text/plain", "value": ""}]}, "content.0.value"),
        ({"content": [{"type": "text/plain"}]}, "content.0.value"),
        ({"content": [{"type": "", "value": "text"}]}, "content.0.type"),
        (
            {
                "content": [
                    {"type": "text/html", "value": "<p>text</p>"},
                    {"type": "text/plain", "value": "text"},
                ]
            },
            "content",
        ),
    ],
)
def test_invalid_mail_is_refused_with_its_field(
    box: Box, changes: dict[str, Any], field: str
) -> None:
    answer = box.send({name: value for name, value in mail(**changes).items() if value is not None})
    assert (answer.status, [error["field"] for error in errors(answer)]) == (400, [field])
    recorded = box.requests()[0]
    assert (recorded["outcome"], recorded["accepted"]) == ("invalid-request", False)
    assert field in recorded["reason"]


@each_case(
    "address",
    [
        "",
        "ada",
        "@example.com",
        "ada@example",
        "ada@@example.com",
        "ada@exa mple.com",
        "ada <ada@example.com>",
        "ada@-example.com",
        "ada,bob@example.com",
        "ada@example.com\n",
        "ädä@example.com",
        "a" * 65 + "@example.com",
        "ada@" + "a" * 60 + ("." + "a" * 60) * 4 + ".com",
    ],
)
def test_invalid_address_is_refused_with_sendgrids_error(box: Box, address: str) -> None:
    [error] = errors(box.send(mail(address)))
    assert error["message"] == "Does not contain a valid address."
    assert error["field"] == "personalizations.0.to.0.email"
    assert error["help"].endswith("#message.personalizations.to")


def test_all_errors_of_required_fields_are_listed(box: Box) -> None:
    fields = [error["field"] for error in errors(box.send({}))]
    assert fields == ["personalizations", "from.email", "subject", "content"]


@pytest.mark.parametrize(
    "changes",
    [
        {"personalizations": [{"to": people(1000)}]},
        {"subject": "", "personalizations": [{"to": people(1), "subject": "Its own"}]},
        {"subject": "", "content": [], "template_id": "d-1"},
        {"content": [{"type": "text/html", "value": "<p>text</p>"}]},
        {"reply_to": {"email": "help@example.com"}},
        {"custom_args": {"one": "x" * 9_000}},
    ],
)
def test_unusual_mail_is_accepted(box: Box, changes: dict[str, Any]) -> None:
    assert box.send(mail(**changes)).status == 202


def test_body_over_thirty_megabytes_is_refused(box: Box) -> None:
    padding = LIMIT - len(json.dumps(mail(text="")))
    assert box.send(mail(text="x" * padding)).status == 202
    answer = box.send(mail(text="x" * (padding + 1)))
    assert (answer.status, errors(answer)[0]["field"]) == (413, None)
    assert [request["status"] for request in box.requests()] == [413, 202]


def test_compressed_mail_is_refused(box: Box) -> None:
    body = gzip.compress(json.dumps(mail()).encode())
    assert box.send(body, **{"Content-Encoding": "gzip"}).status == 400


def test_incomplete_request_is_ignored(box: Box, caplog: pytest.LogCaptureFixture) -> None:
    port = urllib3.util.parse_url(box.sandbox.url).port
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"POST /v3/mail/send HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf")
    box.send(mail())
    assert [request["status"] for request in box.requests()] == [202]
    assert caplog.records == []


def test_invalid_utf8_in_a_header_is_replaced_in_the_log(box: Box) -> None:
    answer = box.send(mail(), **{"X-Odd": b"\xff\xc3\xa9"})
    assert answer.status == 202
    assert box.requests()[0]["headers"]["x-odd"] == "\ufffdé"


def test_sandbox_mode_sends_nothing(box: Box) -> None:
    answer = box.send(mail(mail_settings={"sandbox_mode": {"enable": True}}))
    assert answer.status == 200
    assert not box.requests()[0]["accepted"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v3/mail/send", 405), ("POST", "/v3/mail/sent", 404), ("DELETE", "/v3/", 404)],
)
def test_other_route_is_refused_and_recorded(box: Box, method: str, path: str, status: int) -> None:
    answer = box.http.request(method, box.sandbox.url + path)
    assert (answer.status, errors(answer)[0]["field"]) == (status, None)
    assert [(request["method"], request["path"]) for request in box.requests()] == [(method, path)]


PDF = {
    "content": base64.b64encode(b"%PDF").decode(),
    "filename": "invoice.pdf",
    "type": "application/pdf",
    "disposition": "attachment",
    "content_id": "invoice",
}


def said(box: Box, **changes: Any) -> list[tuple[str, str]]:
    """Send a valid mail with these changes; return the field and message of each error."""
    answer = box.send(mail(**changes))
    if answer.status == 202:
        return []
    assert answer.status == 400
    return [(error["field"], error["message"]) for error in answer.json()["errors"]]


def fields(box: Box, **changes: Any) -> list[str]:
    return [field for field, _ in said(box, **changes)]


def own(**changes: Any) -> dict[str, Any]:
    return {"personalizations": [{"to": [{"email": "ada@example.com"}], **changes}]}


@pytest.mark.parametrize(
    "attachments",
    [
        None,
        [],
        [PDF, PDF],
        [{"content": "eA==", "filename": "x"}],
        [PDF | {"disposition": "inline"}],
        [PDF | {"filename": "Rechnung \u00e4.pdf"}],
    ],
)
def test_valid_attachments_are_accepted(box: Box, attachments: Any) -> None:
    assert said(box, attachments=attachments) == []


@each_case(
    "change, field, words",
    [
        ({"content": ""}, "content", "at least one character"),
        ({"content": None}, "content", "at least one character"),
        ({"content": 5}, "content", "at least one character"),
        ({"content": "%PDF"}, "content", "must be base64 encoded"),
        ({"content": "eA="}, "content", "must be base64 encoded"),
        ({"content": "eA==\n"}, "content", "must be base64 encoded"),
        ({"content": "-_8="}, "content", "must be base64 encoded"),
        ({"filename": None}, "filename", "filename is required"),
        ({"filename": ""}, "filename", "must be a string"),
        ({"filename": 5}, "filename", "must be a string"),
        ({"filename": "a\r\nb"}, "filename", "can't contain CRLF"),
        ({"type": ""}, "type", "at least one character"),
        ({"type": 5}, "type", "at least one character"),
        ({"type": "text/csv; charset=utf-8"}, "type", "can't contain ';'"),
        ({"type": "text/csv\n"}, "type", "can't contain ';', or CRLF"),
        ({"disposition": "download"}, "disposition", "You provided download."),
        ({"disposition": 5}, "disposition", "You provided 5."),
        ({"content_id": 5}, "content_id", "must be a string"),
        ({"content_id": "a\nb"}, "content_id", "can't contain CRLF"),
    ],
)
def test_invalid_attachment_is_refused(
    box: Box, change: dict[str, Any], field: str, words: str
) -> None:
    ((found, message),) = said(box, attachments=[PDF, PDF | change])
    assert found == f"attachments.1.{field}"
    assert words in message


@pytest.mark.parametrize(
    ("attachments", "field"), [({}, "attachments"), ("x", "attachments"), ([5], "attachments.0")]
)
def test_attachments_that_are_no_list_of_objects_are_refused(
    box: Box, attachments: Any, field: str
) -> None:
    assert fields(box, attachments=attachments) == [field]


HEADERS = {"List-Unsubscribe": "<https://x.example/u/1>", "X-Entity": "order-1"}

RESERVED = [
    "x-sg-id",
    "X-SG-EID",
    "Received",
    "DKIM-Signature",
    "Content-Type",
    "content-transfer-encoding",
    "To",
    "FROM",
    "Subject",
    "reply-to",
    "CC",
    "Bcc",
]


@pytest.mark.parametrize("place", ["headers", "personalizations.0.headers"])
class TestHeaders:
    """Headers of a mail, and of a personalization."""

    def changes(self, place: str, headers: Any) -> dict[str, Any]:
        return own(headers=headers) if "." in place else {"headers": headers}

    def test_valid_headers_are_accepted(self, box: Box, place: str) -> None:
        for good in (None, {}, HEADERS):
            assert said(box, **self.changes(place, good)) == []

    @pytest.mark.parametrize("name", RESERVED)
    def test_reserved_header_is_refused(self, box: Box, place: str, name: str) -> None:
        found = said(box, **self.changes(place, HEADERS | {name: "x"}))
        assert found == [(f"{place}.{name}", "Header can not be one of the reserved keys.")]

    @pytest.mark.parametrize(
        ("headers", "name", "words"),
        [
            ({"X-A": 5}, ".X-A", "must be strings"),
            ({"X-A": None}, ".X-A", "must be strings"),
            ({"X A": "x"}, ".X A", "non-ASCII characters and empty spaces"),
            ({"": "x"}, ".", "non-ASCII characters and empty spaces"),
            ({"X-\u00c4": "x"}, ".X-\u00c4", "non-ASCII characters and empty spaces"),
            ({"X-A": "x", "x-a": "y"}, ".x-a", "duplicate keys"),
            (["X-A"], "", "Expected: object"),
        ],
    )
    def test_invalid_header_is_refused(
        self, box: Box, place: str, headers: Any, name: str, words: str
    ) -> None:
        ((field, message),) = said(box, **self.changes(place, headers))
        assert field == f"{place}{name}"
        assert words in message


@pytest.mark.parametrize(
    "given",
    [None, {}, {"-name-": "Ada"}, {f"-{n}-": "x" for n in range(100)}, {"-a-": "x" * 9_997}],
)
def test_valid_substitutions_are_accepted(box: Box, given: Any) -> None:
    assert said(box, **own(substitutions=given)) == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([], "must be an object"),
        ({"-a-": 5}, "all strings"),
        ({"-a-": None}, "all strings"),
        ({f"-{n}-": "x" for n in range(101)}, "limited to 100 items"),
        ({"-a-": "x" * 9_998}, "limited to 10,000 bytes"),
        ({"-a-": "\u00e4" * 5_000}, "limited to 10,000 bytes"),
    ],
)
def test_invalid_substitutions_are_refused(box: Box, given: Any, words: str) -> None:
    ((field, message),) = said(box, **own(substitutions=given))
    assert field == "personalizations.0.substitutions"
    assert words in message


def test_limit_of_substitutions_is_per_personalization(box: Box) -> None:
    people = [
        {"to": [{"email": f"user{n}@example.com"}], "substitutions": {"-a-": "x" * 9_000}}
        for n in range(3)
    ]
    assert said(box, personalizations=people) == []


@pytest.mark.parametrize(
    ("reply_to", "field"),
    [
        ({"email": "help@"}, "reply_to.email"),
        ({"name": "Help"}, "reply_to.email"),
        ({"email": "help@example.com", "name": 5}, "reply_to.name"),
        ("help@example.com", "reply_to"),
        ([{"email": "help@example.com"}], "reply_to"),
    ],
)
def test_invalid_reply_to_is_refused(box: Box, reply_to: Any, field: str) -> None:
    assert fields(box, reply_to=reply_to) == [field]


def test_limit_of_custom_arguments_includes_shared_ones(box: Box) -> None:
    room = 10_000 - len('{"one":"","two":""}')
    half = {"one": "x" * (room // 2)}
    rest = "y" * (room - room // 2)
    assert said(box, custom_args=half, **own(custom_args={"two": rest})) == []
    found = fields(box, custom_args=half, **own(custom_args={"two": rest + "y"}))
    assert found == ["personalizations.0.custom_args"]


def test_all_errors_of_optional_fields_are_listed(box: Box) -> None:
    found = fields(
        box,
        attachments=[PDF | {"content": "%"}],
        headers={"To": "x"},
        custom_args=[],
        **own(headers={"From": "x"}, substitutions=[]),
    )
    assert found == [
        "personalizations.0.headers.From",
        "personalizations.0.substitutions",
        "attachments.0.content",
        "headers.To",
        "custom_args",
    ]
