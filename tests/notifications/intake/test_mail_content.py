"""What only a mail has: where answers go, and files."""

from typing import Any

import msgspec
import pytest

from domain.content import MAX_ATTACHMENTS, Attachment
from notifications.intake.requests import AttachmentRequest, ContentRequest
from notifications.models.notification import FILENAME_LENGTH
from tests.support.factories.contents import composed

pytestmark = pytest.mark.usefixtures("shipped_types")
URL = "https://files.example.com/invoices/7.pdf"


@pytest.fixture(autouse=True)
def _allowed(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset({"files.example.com", "cdn.example.com"})


def problems_with(**fields: Any) -> list[tuple[str, str]]:
    """Return what is wrong with a mail that has one attachment."""
    one = AttachmentRequest(**({"url": URL, "filename": "7.pdf"} | fields))
    return composed(attachments=[one])[1]


def accepted(**fields: Any) -> Attachment:
    """Return an attachment as it is stored."""
    one = AttachmentRequest(**({"url": URL, "filename": "7.pdf"} | fields))
    content, problems = composed(attachments=[one])
    assert problems == []
    return content.attachments[0]


# Answers.


def test_nothing_is_said_about_answers_unless_the_caller_does() -> None:
    assert composed()[0].reply_to is None


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("agent@example.com", "agent@example.com"),
        ("Agent@EXAMPLE.com", "Agent@example.com"),
        ("agent@b\u00fccher.example", "agent@b\u00fccher.example"),
    ],
)
def test_an_address_for_answers_is_kept_in_its_normal_form(given: str, kept: str) -> None:
    content, problems = composed(reply_to=given)
    assert (content.reply_to, problems) == (kept, [])


@pytest.mark.parametrize(
    "address",
    [
        *("", "agent", "agent@localhost", "agent@[127.0.0.1]", "Agent <agent@example.com>"),
        *(
            "a@b.example, c@d.example",
            "a@b.example\r\nBcc: eve@example.com",
            "a" * 65 + "@b.example",
        ),
    ],
)
def test_an_address_for_answers_is_one_address(address: str) -> None:
    content, problems = composed(reply_to=address)
    assert problems == [("/content/reply_to", "invalid_email")]
    assert content.reply_to is None


# Files.


def test_a_file_is_kept_by_its_address_and_name() -> None:
    assert accepted() == Attachment(url=URL, filename="7.pdf", content_type="application/pdf")


def test_without_files_there_are_none() -> None:
    assert composed()[0].attachments == ()


def test_without_an_allowed_host_there_are_no_attachments_here(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset()
    assert problems_with() == [("/content/attachments", "not_enabled")]
    assert composed()[1] == []


@pytest.mark.parametrize(
    ("url", "code"),
    [
        *[
            (url, "invalid_url")
            for url in (
                *("http://files.example.com/a", "ftp://files.example.com/a", "javascript:x"),
                *("https://user@files.example.com/a", "https://files.example.com:8443/a"),
                *("https://files.example.com:99999/a", "https://localhost/a", "https://127.0.0.1/"),
                *("https://169.254.169.254/latest", "https://0x7f000001/", "https://2130706433/"),
                *(
                    "https://[::ffff:10.0.0.1]/",
                    "https://metadata.google.internal/",
                    "https://nas/",
                ),
                *("https://files.example.com/\u00e9", "https://files.example.com/a b", "a.pdf"),
            )
        ],
        *[
            (url, "host_not_allowed")
            for url in (
                *("https://example.com/a", "https://x.files.example.com/a"),
                *("https://files.example.com.evil.example/a", "https://files.example.com./a"),
                "https://evil.example/files.example.com",
            )
        ],
    ],
)
def test_a_file_comes_from_a_public_host_that_is_allowed(url: str, code: str) -> None:
    assert problems_with(url=url) == [("/content/attachments/0/url", code)]


def test_a_hosts_name_may_be_in_capitals() -> None:
    assert accepted(url="https://FILES.Example.com/a").url == "https://FILES.Example.com/a"


@pytest.mark.parametrize(
    "name",
    [
        *("../etc/passwd", "a/b.pdf", "a\\b.pdf", "C:a.pdf", ".bashrc", "a.pdf.", ".", ".."),
        *("a\r\nBcc: x.pdf", "a\x00.pdf", "a\u2028.pdf", 'a".pdf', "a;.pdf", "a*.pdf", "<a>.pdf"),
    ],
)
def test_a_file_has_the_name_of_a_file(name: str) -> None:
    assert problems_with(filename=name) == [("/content/attachments/0/filename", "invalid_filename")]


@pytest.mark.parametrize("name", [" ", "\u200b", "\u202e\u202c"])
def test_a_file_has_a_name_that_is_seen(name: str) -> None:
    assert problems_with(filename=name) == [("/content/attachments/0/filename", "blank")]


def test_a_name_reads_as_it_is() -> None:
    """Characters that change the direction make a program look like a document."""
    assert accepted(filename="invoice\u202efdp.exe").filename == "invoicefdp.exe"
    assert accepted(filename=" fatura \u00f3 \u8acb.pdf ").filename == "fatura \u00f3 \u8acb.pdf"


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        *[("a.pdf", "application/pdf"), ("a.csv", "text/csv"), ("A.PNG", "image/png")],
        *[("a", "application/octet-stream"), ("a.unheard", "application/octet-stream")],
        *[("a.tar.gz", "application/octet-stream"), ("a.eml", "application/octet-stream")],
    ],
)
def test_a_type_that_is_not_given_is_what_the_name_tells(name: str, content_type: str) -> None:
    assert accepted(filename=name).content_type == content_type


@pytest.mark.parametrize("given", ["text/csv", "TEXT/CSV", "application/vnd.ms-excel+zip"])
def test_a_type_that_is_given_is_taken(given: str) -> None:
    assert accepted(content_type=given).content_type == given.lower()


@pytest.mark.parametrize(
    "given",
    [
        *("pdf", "text/", "/csv", "text/csv; charset=utf-8", "text/csv\r\nX: y", "te xt/csv"),
        *("multipart/mixed", "message/rfc822", "text/c\u00f3v", "text/csv/x", "-/-"),
    ],
)
def test_a_type_is_one_of_a_single_file(given: str) -> None:
    expected = [("/content/attachments/0/content_type", "invalid_content_type")]
    assert problems_with(content_type=given) == expected


def test_every_file_is_looked_at() -> None:
    one = AttachmentRequest(url=URL, filename="7.pdf")
    bad = AttachmentRequest(url="http://x", filename="/", content_type="x")
    assert composed(attachments=[one, bad])[1] == [
        ("/content/attachments/1/url", "invalid_url"),
        ("/content/attachments/1/filename", "invalid_filename"),
        ("/content/attachments/1/content_type", "invalid_content_type"),
    ]


@pytest.mark.parametrize(
    "content",
    [
        {"attachments": [{"url": URL, "filename": "7.pdf"}] * (MAX_ATTACHMENTS + 1)},
        {"attachments": [{"url": URL}]},
        {"attachments": [{"filename": "7.pdf"}]},
        {"attachments": [{"url": URL, "filename": ""}]},
        {"attachments": [{"url": URL, "filename": "x" * (FILENAME_LENGTH + 1)}]},
        {"attachments": [{"url": URL, "filename": "7.pdf", "content": "JVBERi0="}]},
        {"attachments": [{"url": "https://x.example/" + "x" * 2_048, "filename": "7.pdf"}]},
        {"attachments": [{"url": {"$gt": ""}, "filename": "7.pdf"}]},
        {"attachments": {"url": URL, "filename": "7.pdf"}},
        {"attachments": None},
        {"reply_to": ["a@example.com"]},
        {"reply_to": "x" * 321},
    ],
)
def test_a_request_is_checked_for_its_form_first(content: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(content, ContentRequest)
