"""Content of a new notification: texts, mail options, and the size of a push."""

from email import message_from_string, policy
from pathlib import Path
from typing import Any

import msgspec
import pytest

from domain.channels import Channel
from domain.content import MAX_ATTACHMENTS, Attachment
from domain.media_types import parse_media_type
from domain.states import DeliveryStatus
from notifications.content import engine, rendering
from notifications.content.rendering import render_message
from notifications.intake.content import MAX_BODY_BYTES, MAX_DERIVED_SUBJECT_LENGTH
from notifications.intake.requests import (
    AttachmentRequest,
    ContentRequest,
    NotificationRecipientRequest,
)
from notifications.models.notification import FILENAME_LENGTH
from notifications.store.references import AttemptReference
from notifications.validation import InvalidRequestError
from providers.fcm.messages import MAX_PAYLOAD, build_payload
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import outbound, write_template
from tests.support.factories.requests import PAID, composed, prepared
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("shipped_types")


def test_template_is_used_by_default() -> None:
    content, problems = composed()
    assert problems == []
    assert content.subject == "Payment confirmed: Sunrise"
    assert content.body is not None
    assert "49.90" in content.body
    assert (content.template_id, content.template_version) == ("payment_confirmed", 0)
    assert not content.is_masked


def test_inline_body_is_used_unchanged() -> None:
    body = "{{ code }} <script>alert(1)</script> \U0001f469\u200d\U0001f467 \u202ereversed"
    content, problems = composed(subject="Hello", body=body)
    assert problems == []
    assert (content.subject, content.body, content.template_id) == ("Hello", body, None)
    assert content.template_version is None


def test_inline_subject_replaces_the_template_subject() -> None:
    content, _ = composed(subject="Hello")
    assert content.subject == "Hello"
    assert content.template_id == "payment_confirmed"


def test_request_can_name_another_template() -> None:
    content, problems = composed(template_id="new_sale")
    assert problems == []
    assert content.subject == "New sale: Sunrise"
    assert content.template_id == "new_sale"


@each_case(
    "name", ["nope", "_layout", "../mfa_code", "mfa_code/..", "MFA_CODE", ".", "mfa_code\x00"]
)
def test_unknown_template_is_reported(name: str) -> None:
    assert composed(template_id=name)[1] == [("/content/template_id", "unknown_template")]


@each_case("kind", ["transactional", "marketing", "alert"])
def test_type_without_a_template_needs_a_body(kind: str) -> None:
    assert composed(kind=kind)[1] == [("/content/body", "required")]
    assert composed(kind=kind, body="Hello")[1] == []


@each_case(
    "body, subject",
    [
        ("Hello", "Hello"),
        ("Hello\nmore", "Hello"),
        ("\n\n  Hello there  \r\nmore", "Hello there"),
        ("x" * 200, "x" * MAX_DERIVED_SUBJECT_LENGTH),
        ("\u202eHel\u200blo", "Hello"),
    ],
)
def test_subject_is_derived_from_the_first_line(body: str, subject: str) -> None:
    assert composed(body=body)[0].subject == subject


def test_derived_subject_has_no_control_characters() -> None:
    for character in ("\x07", "\x1b", "\x7f", "\x9b"):
        content, _ = composed(body=f"Hello {character}there")
        assert content.subject == "Hello there"


@each_case(
    "data, names",
    [
        ({}, ["video_title", "amount", "order_id"]),
        ({"video_title": "Sunrise"}, ["amount", "order_id"]),
        ({"video_title": "Sunrise", "amount": 1}, ["order_id"]),
    ],
)
def test_all_missing_variables_are_reported(data: dict[str, Any], names: list[str]) -> None:
    assert composed(data=data)[1] == [(f"/data/{name}", "missing_variable") for name in names]


@each_case(
    "variable, pointer",
    [
        ("order", "/data/order"),
        ("order.number", "/data/order/number"),
        ("recipient.name", "/recipient/name"),
        ("recipients", "/data/recipients"),
        (None, "/data"),
    ],
)
def test_missing_variable_is_reported_with_its_pointer(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, pointer: str
) -> None:
    def fail(**_fields: Any) -> tuple[str, str]:
        raise engine.TemplateError("missing_variable", "It is missing.", variable=variable)

    monkeypatch.setattr(rendering, "render_text", fail)
    assert composed()[1] == [(pointer, "missing_variable")]


def test_variable_of_a_channel_is_needed_only_for_that_channel(templates: Path) -> None:
    write_template(templates, "payment_confirmed", push="{{ order_id }}", whatsapp="{{ tip }}")
    data = {"order_id": 1}
    assert composed(data=data, channels=list(Channel))[1] == [("/data/tip", "missing_variable")]
    assert composed(data=data, channels=[Channel.EMAIL, Channel.PUSH])[1] == []
    assert composed(data=data, channels=[Channel.WHATSAPP], body="The caller's")[1] == []


@each_case(
    "subject",
    ["a\nb", "a\rb", "Paid\r\nBcc: eve@example.com", "a\x00", "a\tb", "\x1b[31m", "a\x85"],
)
def test_subject_with_control_characters_is_refused(subject: str) -> None:
    assert composed(subject=subject)[1] == [("/content/subject", "control_characters")]


@each_case(
    "field, text",
    [
        *(("subject", text) for text in ("", " ", "\u00a0", "\u200b\u200b", "\u202e \u2066")),
        *(("body", text) for text in ("", " ", "\n\t\r\n", "\u200b\n\u202e", "\x07")),
    ],
)
def test_blank_subject_or_body_is_refused(field: str, text: str) -> None:
    assert composed(**{field: text})[1] == [(f"/content/{field}", "blank")]


@each_case(
    "subject, kept",
    [
        ("\u202eHello", "Hello"),
        ("He\u200bllo\ufeff", "Hello"),
        ("caf\u00e9 e\u0301", "caf\u00e9 e\u0301"),
        (
            "\U0001f469\u200d\U0001f469\u200d\U0001f467",
            "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        ),
        ("\u0645\u0631\u062d\u0628\u0627", "\u0645\u0631\u062d\u0628\u0627"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("{{ code }}", "{{ code }}"),
        ("$password", "$password"),
    ],
)
def test_subject_loses_only_direction_and_invisible_characters(subject: str, kept: str) -> None:
    content, problems = composed(subject=subject)
    assert problems == []
    assert content.subject == kept


@each_case(
    "body, problems",
    [
        ("x" * MAX_BODY_BYTES, []),
        ("x" * (MAX_BODY_BYTES + 1), [("/content/body", "too_long")]),
        ("\u00e9" * (MAX_BODY_BYTES // 2), []),
        ("\u00e9" * (MAX_BODY_BYTES // 2 + 1), [("/content/body", "too_long")]),
    ],
)
def test_body_is_limited_to_100_kb(body: str, problems: list[tuple[str, str]]) -> None:
    assert composed(body=body)[1] == problems


def test_rendered_subject_and_body_are_limited() -> None:
    assert composed(data=PAID | {"video_title": "x" * 300})[1] == [("/data", "too_long")]
    long = PAID | {"video_title": "x" * MAX_BODY_BYTES}
    assert composed(data=long)[1] == [("/data", "too_long"), ("/data", "too_long")]


def test_rendered_subject_has_no_control_characters() -> None:
    for character in ("\r\n", "\x00", "\x07", "\x1b", "\x7f"):
        content, _ = composed(data=PAID | {"video_title": f"Sun{character}Bcc: eve@example.com"})
        assert content.subject is not None
        assert content.subject.isprintable()


def test_links_are_stored() -> None:
    content, problems = composed(
        image_url="https://cdn.example.com/i.png", deep_link="app://orders/1001"
    )
    assert problems == []
    assert content.image_url == "https://cdn.example.com/i.png"
    assert content.deep_link == "app://orders/1001"


def test_links_lose_direction_characters() -> None:
    content, _ = composed(deep_link="app://or\u202eders\u200b/1001")
    assert content.deep_link == "app://orders/1001"


def test_invalid_links_are_reported_with_their_pointers() -> None:
    _, problems = composed(image_url="http://127.0.0.1/i.png", deep_link="javascript:alert(1)")
    assert problems == [
        ("/content/image_url", "invalid_url"),
        ("/content/deep_link", "invalid_url"),
    ]


def test_payload_is_kept() -> None:
    payload = {"orderId": "1001", "$password": "kept as text", "nested": {"a": [1, None]}}
    assert composed(payload=payload)[0].payload == payload


URL = "https://files.example.com/invoices/7.pdf"


@pytest.fixture(autouse=True)
def _allowed(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset({"files.example.com", "cdn.example.com"})


def problems_with(**fields: Any) -> list[tuple[str, str]]:
    attachment = AttachmentRequest(**({"url": URL, "filename": "7.pdf"} | fields))
    return composed(attachments=[attachment])[1]


def accepted(**fields: Any) -> Attachment:
    attachment = AttachmentRequest(**({"url": URL, "filename": "7.pdf"} | fields))
    content, problems = composed(attachments=[attachment])
    assert problems == []
    return content.attachments[0]


def test_reply_to_is_optional() -> None:
    assert composed()[0].reply_to is None


@each_case(
    "given, kept",
    [
        ("agent@example.com", "agent@example.com"),
        ("Agent@EXAMPLE.com", "Agent@example.com"),
        ("agent@b\u00fccher.example", "agent@b\u00fccher.example"),
    ],
)
def test_reply_to_is_stored_in_normal_form(given: str, kept: str) -> None:
    content, problems = composed(reply_to=given)
    assert (content.reply_to, problems) == (kept, [])


@each_case(
    "address",
    [
        "",
        "agent",
        "agent@localhost",
        "agent@[127.0.0.1]",
        "Agent <agent@example.com>",
        "a@b.example, c@d.example",
        "a@b.example\r\nBcc: eve@example.com",
        "a" * 65 + "@b.example",
    ],
)
def test_reply_to_is_a_single_address(address: str) -> None:
    content, problems = composed(reply_to=address)
    assert problems == [("/content/reply_to", "invalid_email")]
    assert content.reply_to is None


def test_attachment_is_stored_with_url_and_name() -> None:
    assert accepted() == Attachment(url=URL, filename="7.pdf", content_type="application/pdf")


def test_attachments_are_optional() -> None:
    assert composed()[0].attachments == ()


def test_attachments_need_an_allowed_host(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset()
    assert problems_with() == [("/content/attachments", "not_enabled")]
    assert composed()[1] == []


@each_case(
    "url, code",
    [
        *[
            (url, "invalid_url")
            for url in (
                "http://files.example.com/a",
                "ftp://files.example.com/a",
                "javascript:x",
                "https://user@files.example.com/a",
                "https://files.example.com:8443/a",
                "https://files.example.com:99999/a",
                "https://localhost/a",
                "https://127.0.0.1/",
                "https://169.254.169.254/latest",
                "https://0x7f000001/",
                "https://2130706433/",
                "https://[::ffff:10.0.0.1]/",
                "https://metadata.google.internal/",
                "https://nas/",
                "https://files.example.com/\u00e9",
                "https://files.example.com/a b",
                "a.pdf",
            )
        ],
        *[
            (url, "host_not_allowed")
            for url in (
                "https://example.com/a",
                "https://x.files.example.com/a",
                "https://files.example.com.evil.example/a",
                "https://files.example.com./a",
                "https://evil.example/files.example.com",
            )
        ],
    ],
)
def test_attachment_url_is_public_and_its_host_allowed(url: str, code: str) -> None:
    assert problems_with(url=url) == [("/content/attachments/0/url", code)]


def test_host_comparison_ignores_case() -> None:
    assert accepted(url="https://FILES.Example.com/a").url == "https://FILES.Example.com/a"


@each_case(
    "name",
    [
        "../etc/passwd",
        "a/b.pdf",
        "a\\b.pdf",
        "C:a.pdf",
        ".bashrc",
        "a.pdf.",
        ".",
        "..",
        "a\r\nBcc: x.pdf",
        "a\x00.pdf",
        "a\u2028.pdf",
        'a".pdf',
        "a;.pdf",
        "a*.pdf",
        "<a>.pdf",
    ],
)
def test_filename_is_a_plain_file_name(name: str) -> None:
    assert problems_with(filename=name) == [("/content/attachments/0/filename", "invalid_filename")]


@each_case("name", [" ", "\u200b", "\u202e\u202c"])
def test_blank_filename_is_refused(name: str) -> None:
    assert problems_with(filename=name) == [("/content/attachments/0/filename", "blank")]


def test_filename_loses_direction_characters() -> None:
    """Direction characters can make a program look like a document."""
    assert accepted(filename="invoice\u202efdp.exe").filename == "invoicefdp.exe"
    assert accepted(filename=" fatura \u00f3 \u8acb.pdf ").filename == "fatura \u00f3 \u8acb.pdf"


@each_case(
    "name, content_type",
    [
        *[("a.pdf", "application/pdf"), ("a.csv", "text/csv"), ("A.PNG", "image/png")],
        *[("a", "application/octet-stream"), ("a.unheard", "application/octet-stream")],
        *[("a.ics", "text/calendar; charset=utf-8"), ("a.webp", "image/webp")],
        *[("a.tar.gz", "application/octet-stream"), ("a.eml", "application/octet-stream")],
        ("Vertrag.DOCX", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        ("a.pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        *[
            ("a.odt", "application/vnd.oasis.opendocument.text"),
            ("docx", "application/octet-stream"),
        ],
        *[("README.md", "text/markdown; charset=utf-8")],
        *[("ticket.pkpass", "application/vnd.apple.pkpass")],
    ],
)
def test_content_type_is_derived_from_the_filename(name: str, content_type: str) -> None:
    assert accepted(filename=name).content_type == content_type


@each_case("given", ["text/csv", "TEXT/CSV", "application/vnd.ms-excel+zip"])
def test_given_content_type_is_used(given: str) -> None:
    assert accepted(content_type=given).content_type == given.lower()


@each_case(
    "given",
    [
        "pdf",
        "text/",
        "/csv",
        "text/csv; charset",
        "text/csv\r\nX: y",
        "te xt/csv",
        'text/csv; a="\r\n"',
        "text/csv; a=b; A=c",
        "text/csv; a=\u00e9",
        "text/csv;;a=b",
        "multipart/mixed",
        "message/rfc822",
        "text/c\u00f3v",
        "text/csv/x",
        "-/-",
    ],
)
def test_invalid_content_type_is_refused(given: str) -> None:
    expected = [("/content/attachments/0/content_type", "invalid_content_type")]
    assert problems_with(content_type=given) == expected


def test_all_attachments_are_checked() -> None:
    valid = AttachmentRequest(url=URL, filename="7.pdf")
    invalid = AttachmentRequest(url="http://x", filename="/", content_type="x")
    assert composed(attachments=[valid, invalid])[1] == [
        ("/content/attachments/1/url", "invalid_url"),
        ("/content/attachments/1/filename", "invalid_filename"),
        ("/content/attachments/1/content_type", "invalid_content_type"),
    ]


@each_case(
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
def test_request_structure_is_validated(content: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(content, ContentRequest)


TOO_LONG = ("/content/payload", "too_long")
LONG = "https://example.com/" + "p" * 2_000


def problems(**fields: Any) -> list[tuple[str, str]]:
    """Return the problems of a push to Ada. Checks that an accepted push fits FCM's limit."""
    try:
        new = prepared(**{"channels": ["push"], **fields}).notification
    except InvalidRequestError as invalid:
        return [(problem.pointer, problem.code) for problem in invalid.problems]
    if (Channel.PUSH, DeliveryStatus.PENDING) in [(d.channel, d.status) for d in new.deliveries]:
        message = render_message(
            channel=Channel.PUSH, content=new.content, data=new.data, recipient=new.recipient
        )
        reference = str(AttemptReference(new.id, Channel.PUSH, 11, "e" * 64))
        accepted = outbound(reference=reference, notification_id=str(new.id), message=message)
        build_payload(accepted, now=NOON)
    return []


def content(**more: Any) -> ContentRequest:
    return ContentRequest(**{"subject": "Hello", "body": "There"} | more)


def test_push_over_4_kb_is_refused() -> None:
    assert problems(content=content(payload={"fill": "x" * MAX_PAYLOAD})) == [TOO_LONG]


def test_largest_accepted_push_can_be_sent() -> None:
    accepted = [
        size
        for size in range(3_600, MAX_PAYLOAD, 8)
        if problems(content=content(body="é" * 100, payload={"fill": "x" * size})) == []
    ]
    assert accepted == list(range(3_600, accepted[-1] + 1, 8))
    assert 3_600 < accepted[-1] < MAX_PAYLOAD - 200


@each_case("letter", ["x", "é", "中", "\U0001f600"])
def test_long_text_is_truncated_and_fits(letter: str) -> None:
    assert problems(content=ContentRequest(subject=letter * 255, body=letter * 20_000)) == []


def test_links_count_against_the_push_limit() -> None:
    assert problems(content=content(image_url=LONG, deep_link=LONG)) == [("/content", "too_long")]
    assert problems(content=content(image_url=LONG)) == []


def test_rendered_text_counts_against_the_push_limit() -> None:
    content = ContentRequest(payload={"fill": "x" * 3_200})
    data = {"order_id": 1, "video_title": "Sunrise"}
    for amount, expected in (("49.90", []), ("中 " * 200, [TOO_LONG])):
        given = {"type": "payment_confirmed", "data": data | {"amount": amount}}
        assert problems(content=content, **given) == expected


@each_case("channels", [["email"], ["in_app"], ["email", "in_app"]])
def test_other_channels_have_no_push_limit(channels: list[str]) -> None:
    large = content(payload={"fill": "x" * 10_000})
    assert problems(channels=channels, content=large) == []
    assert problems(channels=[*channels, "push"], content=large) == [TOO_LONG]


def test_skipped_push_has_no_limit() -> None:
    """Without a ``user_id``, push is skipped even if it is a default channel."""
    given = {
        "type": "order_shipped",
        "user_id": None,
        "recipient": NotificationRecipientRequest(email="ada@example.com"),
        "content": content(payload={"fill": "x" * 10_000}),
    }
    assert problems(channels=None, **given) == []
    assert problems(**given | {"user_id": "ada", "channels": None}) == [TOO_LONG]


def test_unmasked_secret_counts_against_the_push_limit() -> None:
    fill = {"fill": "x" * 3_750}
    for code, expected in (("1", []), ("中 " * 200, [TOO_LONG])):
        given = {"type": "mfa_code", "data": {"code": code}}
        assert problems(content=ContentRequest(payload=fill), **given) == expected


@each_case(
    "given, stored",
    [
        ("text/calendar; method=REQUEST", "text/calendar; method=REQUEST"),
        ("TEXT/Calendar;METHOD=REQUEST", "text/calendar; method=REQUEST"),
        ("text/csv; charset=utf-8", "text/csv; charset=utf-8"),
        (
            'text/calendar; charset="UTF-8"; method=CANCEL',
            "text/calendar; charset=UTF-8; method=CANCEL",
        ),
        ('application/x-y; a="b c;d"', 'application/x-y; a="b c;d"'),
        ('application/x-y; a="q\\"q"', 'application/x-y; a="q\\"q"'),
    ],
)
def test_parameters_of_a_media_type_are_kept(given: str, stored: str) -> None:
    """https://github.com/sendgrid/sendgrid-php/issues/250"""
    assert accepted(content_type=given).content_type == stored
    parsed = message_from_string(f"Content-Type: {stored}\n\n", policy=policy.default)
    kind = parse_media_type(given)
    assert kind is not None
    assert parsed.get_content_type() == kind.name
    assert dict(parsed["content-type"].params) == dict(kind.parameters)
