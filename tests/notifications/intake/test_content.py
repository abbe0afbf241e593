"""What a notification says."""

from pathlib import Path
from typing import Any

import pytest

from domain.content import Recipient
from domain.states import Channel
from notifications.content import engine, rendering
from notifications.intake.content import MAX_BODY_BYTES, MAX_DERIVED_SUBJECT_LENGTH
from tests.support.factories.contents import PAID, composed
from tests.support.factories.records import write_template

pytestmark = pytest.mark.usefixtures("shipped_types")


def test_the_template_speaks_when_the_caller_does_not() -> None:
    content, problems = composed()
    assert problems == []
    assert content.subject == "Payment confirmed: Sunrise"
    assert content.body is not None
    assert "49.90" in content.body
    assert (content.template_id, content.template_version) == ("payment_confirmed", 0)
    assert not content.is_masked


def test_the_callers_body_is_used_as_it_is_and_no_template() -> None:
    body = "{{ code }} <script>alert(1)</script> \U0001f469\u200d\U0001f467 \u202ereversed"
    content, problems = composed(subject="Hello", body=body)
    assert problems == []
    assert (content.subject, content.body, content.template_id) == ("Hello", body, None)
    assert content.template_version is None


def test_the_callers_subject_replaces_the_templates() -> None:
    content, _ = composed(subject="Hello")
    assert content.subject == "Hello"
    assert content.template_id == "payment_confirmed"


def test_the_caller_may_name_another_template() -> None:
    content, problems = composed(template_id="new_sale")
    assert problems == []
    assert content.subject == "New sale: Sunrise"
    assert content.template_id == "new_sale"


@pytest.mark.parametrize(
    "name", ["nope", "_layout", "../mfa_code", "mfa_code/..", "MFA_CODE", ".", "mfa_code\x00"]
)
def test_a_template_that_is_not_there_is_a_problem(name: str) -> None:
    assert composed(template_id=name)[1] == [("/content/template_id", "unknown_template")]


@pytest.mark.parametrize("kind", ["transactional", "marketing", "alert"])
def test_a_type_without_a_template_needs_a_body(kind: str) -> None:
    assert composed(kind=kind)[1] == [("/content/body", "required")]
    assert composed(kind=kind, body="Hello")[1] == []


@pytest.mark.parametrize(
    ("body", "subject"),
    [
        ("Hello", "Hello"),
        ("Hello\nmore", "Hello"),
        ("\n\n  Hello there  \r\nmore", "Hello there"),
        ("x" * 200, "x" * MAX_DERIVED_SUBJECT_LENGTH),
        ("\u202eHel\u200blo", "Hello"),
    ],
)
def test_without_a_subject_the_first_line_is_one(body: str, subject: str) -> None:
    assert composed(body=body)[0].subject == subject


def test_a_subject_made_from_the_body_has_no_control_characters() -> None:
    for character in ("\x07", "\x1b", "\x7f", "\x9b"):
        content, _ = composed(body=f"Hello {character}there")
        assert content.subject == "Hello there"


@pytest.mark.parametrize(
    ("data", "pointer"),
    [
        ({}, "/data/video_title"),
        ({"video_title": "Sunrise"}, "/data/amount"),
        ({"video_title": "Sunrise", "amount": 1}, "/data/order_id"),
    ],
)
def test_a_variable_that_is_missing_is_named(data: dict[str, Any], pointer: str) -> None:
    assert composed(data=data)[1] == [(pointer, "missing_variable")]


@pytest.mark.parametrize(
    ("variable", "pointer"),
    [
        ("order", "/data/order"),
        ("order.number", "/data/order/number"),
        ("recipient.name", "/recipient/name"),
        ("recipients", "/data/recipients"),
        (None, "/data"),
    ],
)
def test_a_missing_variable_has_the_place_where_it_is_to_be_given(
    monkeypatch: pytest.MonkeyPatch, variable: str | None, pointer: str
) -> None:
    def fail(**_fields: Any) -> tuple[str, str]:
        raise engine.TemplateError("missing_variable", "It is missing.", variable=variable)

    monkeypatch.setattr(rendering, "render_text", fail)
    assert composed()[1] == [(pointer, "missing_variable")]


def test_a_variable_that_only_a_channel_needs_is_missed_if_the_channel_is_taken(
    templates: Path,
) -> None:
    write_template(templates, "payment_confirmed", push="{{ order_id }}", whatsapp="{{ tip }}")
    data = {"order_id": 1}
    assert composed(data=data, channels=list(Channel))[1] == [("/data/tip", "missing_variable")]
    assert composed(data=data, channels=[Channel.EMAIL, Channel.PUSH])[1] == []
    assert composed(data=data, channels=[Channel.WHATSAPP], body="The caller's")[1] == []


def test_braces_in_the_data_are_text() -> None:
    content, problems = composed(data=PAID | {"video_title": "{{ amount }} {% raw %}"})
    assert problems == []
    assert content.subject == "Payment confirmed: {{ amount }} {% raw %}"


@pytest.mark.parametrize(
    "subject",
    ["a\nb", "a\rb", "Paid\r\nBcc: eve@example.com", "a\x00", "a\tb", "\x1b[31m", "a\x85"],
)
def test_a_subject_is_one_line_without_control_characters(subject: str) -> None:
    assert composed(subject=subject)[1] == [("/content/subject", "control_characters")]


@pytest.mark.parametrize("subject", ["", " ", "\u00a0", "\u200b\u200b", "\u202e \u2066"])
def test_a_blank_subject_is_a_problem(subject: str) -> None:
    assert composed(subject=subject)[1] == [("/content/subject", "blank")]


@pytest.mark.parametrize(
    ("subject", "kept"),
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
def test_a_subject_loses_what_changes_its_direction_and_nothing_else(
    subject: str, kept: str
) -> None:
    content, problems = composed(subject=subject)
    assert problems == []
    assert content.subject == kept


@pytest.mark.parametrize("body", ["", " ", "\n\t\r\n", "\u200b\n\u202e", "\x07"])
def test_a_blank_body_is_a_problem(body: str) -> None:
    assert composed(body=body)[1] == [("/content/body", "blank")]


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ("x" * MAX_BODY_BYTES, []),
        ("x" * (MAX_BODY_BYTES + 1), [("/content/body", "too_long")]),
        ("\u00e9" * (MAX_BODY_BYTES // 2), []),
        ("\u00e9" * (MAX_BODY_BYTES // 2 + 1), [("/content/body", "too_long")]),
    ],
    ids=["100 KB", "over 100 KB", "100 KB in two-byte letters", "over 100 KB of them"],
)
def test_a_body_has_at_most_100_kb(body: str, problems: list[tuple[str, str]]) -> None:
    assert composed(body=body)[1] == problems


def test_a_rendered_subject_and_body_are_limited_too() -> None:
    assert composed(data=PAID | {"video_title": "x" * 300})[1] == [("/data", "too_long")]
    long = PAID | {"video_title": "x" * MAX_BODY_BYTES}
    assert composed(data=long)[1] == [("/data", "too_long"), ("/data", "too_long")]


def test_a_rendered_subject_has_no_control_characters() -> None:
    for character in ("\r\n", "\x00", "\x07", "\x1b", "\x7f"):
        content, _ = composed(data=PAID | {"video_title": f"Sun{character}Bcc: eve@example.com"})
        assert content.subject is not None
        assert content.subject.isprintable()


def test_the_persons_language_is_the_templates() -> None:
    content, problems = composed(recipient=Recipient(email="ada@example.com", locale="xx-YY"))
    assert problems == []
    assert content.subject == "Payment confirmed: Sunrise"


def test_links_are_checked_and_kept() -> None:
    content, problems = composed(
        image_url="https://cdn.example.com/i.png", deep_link="app://orders/1001"
    )
    assert problems == []
    assert content.image_url == "https://cdn.example.com/i.png"
    assert content.deep_link == "app://orders/1001"


def test_links_lose_what_changes_their_direction() -> None:
    content, _ = composed(deep_link="app://or\u202eders\u200b/1001")
    assert content.deep_link == "app://orders/1001"


def test_bad_links_are_problems_with_their_places() -> None:
    _, problems = composed(image_url="http://127.0.0.1/i.png", deep_link="javascript:alert(1)")
    assert problems == [
        ("/content/image_url", "invalid_url"),
        ("/content/deep_link", "invalid_url"),
    ]


def test_all_problems_are_told_at_once() -> None:
    _, problems = composed(subject="\n", body=" ", image_url="x", deep_link="x")
    assert [pointer for pointer, _ in problems] == [
        "/content/subject",
        "/content/body",
        "/content/image_url",
        "/content/deep_link",
    ]


def test_the_payload_is_passed_on() -> None:
    payload = {"orderId": "1001", "$password": "kept as text", "nested": {"a": [1, None]}}
    assert composed(payload=payload)[0].payload == payload
