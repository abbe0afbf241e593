"""What SendGrid's route refuses in the parts of a mail that may be left out."""

import base64
from typing import Any

import pytest

from tests.support.clients.sandbox import Box, mail

PDF = {
    "content": base64.b64encode(b"%PDF").decode(),
    "filename": "invoice.pdf",
    "type": "application/pdf",
    "disposition": "attachment",
    "content_id": "invoice",
}


@pytest.fixture(scope="module")
def box(shared_sandbox: Box) -> Box:
    return shared_sandbox


def said(box: Box, **changes: Any) -> list[tuple[str, str]]:
    """Return what is wrong with a mail that is good but for these changes."""
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
def test_files_in_base64_with_a_name_are_taken(box: Box, attachments: Any) -> None:
    assert said(box, attachments=attachments) == []


@pytest.mark.parametrize(
    ("change", "field", "words"),
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
def test_a_file_that_is_none_is_refused(
    box: Box, change: dict[str, Any], field: str, words: str
) -> None:
    ((found, message),) = said(box, attachments=[PDF, PDF | change])
    assert found == f"attachments.1.{field}"
    assert words in message


@pytest.mark.parametrize(
    ("attachments", "field"), [({}, "attachments"), ("x", "attachments"), ([5], "attachments.0")]
)
def test_attachments_are_a_list_of_objects(box: Box, attachments: Any, field: str) -> None:
    assert fields(box, attachments=attachments) == [field]


HEADERS = {"List-Unsubscribe": "<https://x.example/u/1>", "X-Entity": "order-1"}
RESERVED = [
    *("x-sg-id", "X-SG-EID", "Received", "DKIM-Signature", "Content-Type"),
    *("content-transfer-encoding", "To", "FROM", "Subject", "reply-to", "CC", "Bcc"),
]


@pytest.mark.parametrize("place", ["headers", "personalizations.0.headers"])
class TestHeaders:
    """Of a mail, and of a personalization."""

    def changes(self, place: str, headers: Any) -> dict[str, Any]:
        return own(headers=headers) if "." in place else {"headers": headers}

    def test_headers_of_ones_own_are_taken(self, box: Box, place: str) -> None:
        for good in (None, {}, HEADERS):
            assert said(box, **self.changes(place, good)) == []

    @pytest.mark.parametrize("name", RESERVED)
    def test_those_that_sendgrid_writes_itself_are_refused(
        self, box: Box, place: str, name: str
    ) -> None:
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
    def test_what_is_no_header_is_refused(
        self, box: Box, place: str, headers: Any, name: str, words: str
    ) -> None:
        ((field, message),) = said(box, **self.changes(place, headers))
        assert field == f"{place}{name}"
        assert words in message


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"-name-": "Ada"},
        {f"-{n}-": "x" for n in range(100)},
        {"-a-": "x" * 9_997},
    ],
)
def test_substitutions_of_a_personalization_are_taken(box: Box, given: Any) -> None:
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
def test_too_many_or_too_long_substitutions_are_refused(box: Box, given: Any, words: str) -> None:
    ((field, message),) = said(box, **own(substitutions=given))
    assert field == "personalizations.0.substitutions"
    assert words in message


def test_each_personalization_has_its_own_room(box: Box) -> None:
    people = [
        {"to": [{"email": f"user{n}@example.com"}], "substitutions": {"-a-": "x" * 9_000}}
        for n in range(3)
    ]
    assert said(box, personalizations=people) == []


@pytest.mark.parametrize("given", [None, [], ["mail"], [f"c{n}" for n in range(10)], ["x" * 255]])
def test_categories_are_taken(box: Box, given: Any) -> None:
    assert said(box, categories=given) == []


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ("mail", "categories", "array of strings"),
        ([5], "categories", "array of strings"),
        ([f"c{n}" for n in range(11)], "categories", "You provided 11 categories"),
        (["a", "x" * 256], "categories.1", "longer than 255 characters"),
        (["a", "b", "a"], "categories.2", "more than once"),
        (["\u00e4"], "categories.0", "non-ASCII"),
    ],
)
def test_what_is_no_list_of_categories_is_refused(
    box: Box, given: Any, field: str, words: str
) -> None:
    ((found, message),) = said(box, categories=given)
    assert found == field
    assert words in message


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
def test_an_answer_goes_to_one_address(box: Box, reply_to: Any, field: str) -> None:
    assert fields(box, reply_to=reply_to) == [field]


def test_custom_arguments_have_a_size_in_all(box: Box) -> None:
    room = 10_000 - len('{"one":"","two":""}')
    half = {"one": "x" * (room // 2)}
    rest = "y" * (room - room // 2)
    assert said(box, custom_args=half, **own(custom_args={"two": rest})) == []
    found = fields(box, custom_args=half, **own(custom_args={"two": rest + "y"}))
    assert found == ["personalizations.0.custom_args"]


def test_all_that_is_wrong_is_said_at_once(box: Box) -> None:
    found = fields(
        box,
        attachments=[PDF | {"content": "%"}],
        headers={"To": "x"},
        categories=["a", "a"],
        custom_args=[],
        **own(headers={"From": "x"}, substitutions=[]),
    )
    assert found == [
        "personalizations.0.headers.From",
        "personalizations.0.substitutions",
        "attachments.0.content",
        "headers.To",
        "categories.1",
        "custom_args",
    ]
