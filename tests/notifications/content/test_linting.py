"""Template linting: faults with line and reason."""

from typing import Any

import pytest

from notifications.content.linting import MAX_LANGUAGES, TemplateFault, lint_template
from notifications.content.source import MAX_SOURCE
from notifications.content.templates import Part
from tests.support.tables import each_case
from tests.support.waiting import computing

EXAMPLE = {"order": "12345", "items": [{"name": "Tea"}], "shop": {"city": "Porto"}, "code": "1"}


def faults(parts: dict[str, dict[str, str]], **example: Any) -> list[TemplateFault]:
    return lint_template(
        name="parcel_lost",
        parts=parts,
        example_data=EXAMPLE | example,
        sensitive=frozenset({"code"}),
    )


def fault_of(source: str, *, part: str = "body") -> tuple[str, int | None, str]:
    (fault,) = faults({"default": {"subject": "S", "body": "B", part: source}})
    assert (fault.language, fault.part) == ("default", part)
    return fault.code, fault.line, fault.reason


def test_valid_template_has_no_faults() -> None:
    good = {
        "subject": "Order {{ order }} for {{ recipient.name }}",
        "body": "{% for item in items %}{{ forloop.index }} {{ item.name }}{% endfor %}",
        "email_html": "<p>{{ shop.city }}{% if recipient.locale == 'pt' %}!{% endif %}</p>",
        "push_title": "{{ order | upcase }}",
        "push": "{{ '2026-01-01' | in_zone: recipient.timezone | date: '%Y' }}",
        "whatsapp": "{% assign o = order %}*{{ o }}* {{ items.size }} {{ items[0].name }}",
    }
    assert faults({"default": good, "pt": good, "pt-BR": {"body": "Oi"}}) == []


@each_case(
    "source, line, reason",
    [
        ("a\n{% nope %}", 2, "Unexpected tag 'nope'."),
        ("a\nb {% endif %}", 2, "Unexpected tag 'endif'."),
        ("a\n\n{{ order | }}\n", 3, "Expected word, found end of expression."),
        ("{{ order }}\n{% for x %}{% endfor %}", 2, "Expected in, found end of expression."),
        ("{% if order %}\n{% for i in items %}\nx", 2, "Expected tag endfor, found end of"),
        ("{% if order %}x{% endif %}\n{% if order %}\nx", 2, "Expected tag endif, found end of"),
        ("a\n{{ order", 2, "Expected '}}', found end of file."),
        ("a\n{{ 'order }}", 2, 'Unexpected "\'".'),
        ("a\n{% include 'b' %}", 2, "Unexpected tag 'include'."),
        ("a\n{% include 'b' %}", 2, "Unexpected tag 'include'."),
    ],
)
def test_syntax_error_is_reported_with_its_line(source: str, line: int, reason: str) -> None:
    code, at, message = fault_of(source)
    assert (code, at) == ("syntax", line)
    assert message.startswith(reason)


@pytest.mark.parametrize("part", ["body", "email_html"])
def test_unknown_filter_is_named(part: str) -> None:
    fault = fault_of("a\n{{ order | shout }}", part=part)
    assert fault == ("unknown_filter", 2, "Unknown filter 'shout'.")
    assert fault_of("{{ order | safe }}", part="email_html")[0] == "unknown_filter"
    assert fault_of("{% if order == 'x' %}{{ order | shout }}{% endif %}")[0] == "unknown_filter"


@each_case(
    "source, variable",
    [
        ("{{ parcel }}", "parcel"),
        ("{% if parcel %}x{% endif %}y", "parcel"),
        ("{{ parcel | default: 'x' }}", "parcel"),
        ("{{ order | append: parcel }}", "parcel"),
        ("{{ shop.street }}", "shop.street"),
        ("{{ recipient.email }}", "recipient.email"),
        ("{% for x in parcels %}{{ x }}{% endfor %}y", "parcels"),
        ("{{ size }}", "size"),
    ],
)
def test_unknown_variable_is_named(source: str, variable: str) -> None:
    fault = fault_of(f"a\n{source}")
    assert fault == ("unknown_variable", 2, f"The type's example data has no '{variable}'.")


def test_all_faults_are_reported() -> None:
    found = faults(
        {
            "default": {"subject": "{{ a }}\n{{ b | c }}", "body": "{% d %}"},
            "pt": {"body": "{{ e }}"},
        }
    )
    assert [(f.language, f.part, f.code, f.line) for f in found] == [
        ("default", Part.SUBJECT, "unknown_filter", 2),
        ("default", Part.SUBJECT, "unknown_variable", 1),
        ("default", Part.SUBJECT, "unknown_variable", 2),
        ("default", Part.BODY, "syntax", 1),
        ("pt", Part.BODY, "unknown_variable", 1),
    ]
    assert found[0].text == "Line 2: Unknown filter 'c'."


def test_oversized_output_is_refused() -> None:
    code, line, reason = fault_of("a\n{% for i in (1..1001) %}x{% endfor %}")
    assert (code, line) == ("template_failed", 2)
    assert reason == "Over 1,000 loop iterations."
    long = "{% for i in (1..900) %}" + "x" * 300 + "{% endfor %}"
    assert fault_of(long)[2] == "The text is over 256 KB long."


def test_filter_error_with_the_example_is_refused() -> None:
    assert fault_of("{{ order | in_zone }}")[0] == "template_failed"
    assert fault_of("{{ order | divided_by: 0 }}")[0] == "template_failed"


def test_template_must_render_with_masked_secrets() -> None:
    """Secrets are stored and shown as masks, so a template must render with a mask."""
    assert fault_of("{{ code | in_zone }}")[0] == "template_failed"
    assert faults({"default": {"subject": "{{ code }}", "body": "{{ code | upcase }}"}}) == []


@pytest.mark.parametrize("source", ["", "  \n", "{% if order == 'x' %}x{% endif %}", "\u200b"])
def test_blank_part_is_refused(source: str) -> None:
    assert fault_of(source)[0] == "blank"


@pytest.mark.parametrize("part", ["subject", "push_title"])
def test_single_line_part_is_limited_to_255_characters(part: str) -> None:
    assert fault_of("x" * 256, part=part)[0] == "too_long"
    assert faults({"default": {"subject": "S", "body": "B", part: "x" * 255}}) == []


def test_part_size_is_limited() -> None:
    reason = "A part has at most 65,536 characters."
    assert fault_of("x" * (MAX_SOURCE + 1)) == ("too_long", None, reason)


def test_misplaced_liquid_in_html_is_refused() -> None:
    source = "<p>x</p>\n<a {% if order %}href='/'{% endif %}>x</a>"
    code, line, _ = fault_of(source, part="email_html")
    assert (code, line) == ("misplaced", 2)


def test_default_language_needs_subject_and_body() -> None:
    found = faults({"pt": {"subject": "S", "body": "B"}})
    assert [(f.language, f.part, f.code) for f in found] == [
        ("default", Part.SUBJECT, "required"),
        ("default", Part.BODY, "required"),
    ]
    assert [f.part for f in faults({"default": {"body": "B"}})] == [Part.SUBJECT]


def test_shipped_parts_need_not_be_repeated() -> None:
    found = lint_template(
        name="mfa_code",
        parts={"pt": {"body": "{{ code }}"}},
        example_data={"code": "1"},
        sensitive=frozenset({"code"}),
    )
    assert found == []


@pytest.mark.parametrize("parts", [{}, {"default": {}}, {"default": {}, "pt": {}}])
def test_template_without_parts_is_refused(parts: dict[str, dict[str, str]]) -> None:
    assert [f.code for f in faults(parts)] == ["required"]


@each_case(
    "language",
    ["PT", "pt_BR", "pt-br", "portuguese", "p", "", "../pt", "pt/..", "zh-hant", "Default"],
)
def test_invalid_language_is_refused(language: str) -> None:
    found = faults({"default": {"subject": "S", "body": "B"}, language: {"body": "B"}})
    assert [(f.code, f.language) for f in found] == [("invalid_locale", language)]


@each_case("language", ["pt", "pt-BR", "zh-Hant", "zh-Hant-TW", "es-419", "fil"])
def test_valid_languages_are_accepted(language: str) -> None:
    assert faults({"default": {"subject": "S", "body": "B"}, language: {"body": "B"}}) == []


def test_number_of_languages_is_limited() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    many = {f"a{letter}": {"body": "B"} for letter in letters}
    assert len(many) > MAX_LANGUAGES
    assert [f.code for f in faults(many)] == ["too_many_languages"]


URLS = [
    "https://example.com/?c={{ code }}",
    "HTTPS://example.com/{{ code }}/x",
    "app://x/{{code}}",
    "www.example.com/{{ code }}",
    "example.com/{{ code }}",
    "mailto:{{ code }}@example.com",
    "(https://example.com/{{ code | upcase }})",
    "https://example.com/{{ code | slice: 0, 1 }}",
    "https://example.com/{% if order == '0' %}{{ code }}{% endif %}",
    "https://example.com/?o={{ order }}&c={{ code }}",
    "{% assign c = code %}https://example.com/{{ c }}",
    "{% capture c %}{{ code }}{% endcapture %}https://example.com/{{ c | url_encode }}",
    "{{ 'https://example.com/' | append: code }}",
    "{{ base }}{{ code }}",
]


@each_case("part", ["body", "email_html", "push", "whatsapp"])
@each_case("source", URLS)
def test_sensitive_variable_in_a_url_is_a_fault(source: str, part: str) -> None:
    parts = {"default": {"subject": "S", "body": "B", part: f"Hello\n{source}"}}
    (fault,) = faults(parts, base="https://example.com/?c=")
    assert (fault.code, fault.part) == ("sensitive_in_url", part)
    assert "is sensitive and must not be in a URL" in fault.reason
    assert fault.line in (2, None)


@each_case(
    "html",
    [
        '<a href="{{ code }}">x</a>',
        "<a href='/c/{{ code }}'>x</a>",
        '<b title="{{code}}">x</b>',
        '<img alt="{{ code }}" src="a">',
        "<style>a{background:url({{ code }})}</style>x",
        '{% assign c = code %}<a href="{{ c }}">x</a>',
        "<p>https://example.com/{{ code }}</p>",
        '<a href="https://example.com/{% if order == "0" %}{{ code }}{% endif %}">x</a>',
    ],
)
def test_sensitive_variable_in_an_html_attribute_is_a_fault(html: str) -> None:
    parts = {"default": {"subject": "S", "body": "B", "email_html": f"<p>Hello</p>\n{html}"}}
    (fault,) = faults(parts)
    assert (fault.code, fault.part, fault.language) == ("sensitive_in_url", "email_html", "default")
    assert fault.line in (2, None)


@each_case(
    "part, source",
    [
        ("body", "Code:{{ code }}. See https://example.com/ {{ code }} www.example.com"),
        ("body", "https://example.com/{{ order }} ({{ code }})"),
        ("body", "https://example.com/{% if code %}new{% endif %}\n{{ code }}"),
        ("body", "{{ code }}\nhttps://example.com/?order={{ order }}"),
        ("email_html", '<a href="https://example.com/{{ order }}">x</a>{{ code }}'),
        ("email_html", '<p class="{% if code %}new{% endif %}">{{ code }}</p>'),
        ("email_html", "<p>https://example.com/</p>{{ code }}"),
        ("whatsapp", "*{{ code }}*, shop.example"),
    ],
)
def test_sensitive_variable_beside_a_url_is_valid(part: str, source: str) -> None:
    assert faults({"default": {"subject": "S", "body": "B", part: source}}) == []


def test_sensitive_uses_are_searched_in_linear_time() -> None:
    longest = "a" * (MAX_SOURCE // 2)
    source = longest + " {{ code }}." * 500
    with computing(at_most=1.0):
        assert [fault.code for fault in faults({"default": {"subject": "S", "body": source}})] in (
            [],
            ["too_complex"],
        )
