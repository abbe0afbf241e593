"""Limits on expensive templates, HTML, and data."""

import contextlib
from collections.abc import Mapping
from typing import Any

import pytest

from notifications.content import inlining
from notifications.content.engine import HTML_ENVIRONMENT, Template, TemplateError
from notifications.content.linting import TemplateFault, lint_template
from tests.support import hostile_templates as hostile
from tests.support.tables import each_case
from tests.support.waiting import computing


def faults(part: str, source: str) -> list[TemplateFault]:
    return lint_template(
        name="parcel_lost",
        parts={"default": {"subject": "S", "body": "B", part: source}},
        example_data=hostile.DATA,
        sensitive=frozenset(),
    )


@each_case("name", hostile.LIQUID)
def test_expensive_liquid_is_refused(name: str) -> None:
    (fault,) = faults("body", hostile.LIQUID[name])
    assert fault.code in ("template_failed", "too_complex", "syntax")
    assert fault.line == 1
    assert fault.reason


@each_case("name", hostile.HTML)
def test_expensive_html_is_refused(name: str) -> None:
    (fault,) = faults("email_html", hostile.HTML[name])
    assert (fault.code, fault.part) == ("too_complex", "email_html")
    assert fault.line == (2 if name == "nested elements" else 1)


def test_deeply_nested_html_is_refused_with_its_line() -> None:
    source = "<p>x</p>\n{% if\norder %}\n" + "<div>\n" * 250 + "{% endif %}"
    (fault,) = faults("email_html", source)
    assert fault.line == 4 + 200
    assert fault.reason == "HTML nesting exceeds 200 levels; every element needs its end tag."


@each_case("name", hostile.HARMLESS)
def test_harmless_html_is_accepted(name: str) -> None:
    assert {fault.code for fault in faults("email_html", hostile.HARMLESS[name])} <= {"blank"}


@each_case("name", hostile.HTML)
def test_stored_expensive_html_fails_to_render(name: str) -> None:
    with pytest.raises(TemplateError):
        inlining.inline_fragment(hostile.HTML[name], css="p { margin: 0; }")


@each_case(
    "source, data",
    [
        ("{% for i in items %}{{ i | upcase }}{% endfor %}", {"items": ["x" * 2_000] * 900}),
        ("{% for i in (1..900) %}{{ a }}{% endfor %}", {"a": [[[""] * 20] * 4] * 4}),
        ("{% for i in (1..900) %}{% echo a %}{% endfor %}", {"a": [[[""] * 20] * 4] * 4}),
        ("{{ a | replace: 'a', b | size }}", {"a": "a" * 50_000, "b": "b" * 50_000}),
        ("{{ a | split: '' | size }}", {"a": "a" * 50_000}),
        ("{{ a | join: b | size }}", {"a": ["x"] * 5_000, "b": "b" * 5_000}),
        ("{{ a | append: b }}", {"a": [["x" * 10_000] * 1_000], "b": "b"}),
        ("{% assign b = a | concat: a | concat: a %}x", {"a": ["x" * 50_000] * 2}),
        ("{{ a | times: a }}", {"a": 10**400}),
        ("{{ '2026' | date: a }}", {"a": "%c" * 500}),
        ("{% for i in (1..a) reversed %}{% break %}{% endfor %}x", {"a": 10**12}),
        (
            "{% for i in (1..900) %}{% if a == a %}{% endif %}{% endfor %}x",
            {"a": [[1] * 5_000] * 5},
        ),
        ("{{ a }}" * 300, {"a": "&" * 60_000}),
        ("{% if a %}" + "{{ a }}" * 300 + "{% endif %}", {"a": "&" * 60_000}),
    ],
)
@each_case("environment", [None, HTML_ENVIRONMENT])
def test_expensive_data_is_refused(source: str, data: Mapping[str, Any], environment: Any) -> None:
    template = Template(source, **({} if environment is None else {"environment": environment}))
    with pytest.raises(TemplateError, match=r"work|characters|entries|bits|KB|can't"):
        template.render(data)


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "abs", "at_most: 1"])
def test_long_decimal_is_read_in_linear_time(name: str) -> None:
    with computing(at_most=0.5), contextlib.suppress(TemplateError):
        Template(f"{{{{ a | {name} }}}}").render({"a": "9" * 250_000 + ".5"})


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("source", ["{{ a }}", "{{ a | join }}", "{{ a | uniq | size }}"])
def test_deeply_nested_data_fails_to_render(source: str) -> None:
    with pytest.raises(TemplateError):
        Template(source).render({"a": nested(100_000)})


@each_case(
    "source, text",
    [
        ("{{ 'a-b' | replace: '-', '+' }}{{ 'ab' | replace: '', '-' }}", "a+b-a-b-"),
        ("{{ items | join: ', ' }} {{ items | join }}", "b, a, b b a b"),
        ("{{ 'a b' | split: ' ' | size }}{{ 'abc' | split: '' | join: '.' }}", "2a.b.c"),
        ("{{ items | concat: items | size }}{{ items | uniq | join }}", "6b a"),
        ("{{ rows | uniq: 'k' | map: 'v' | join }}", "1 3"),
        ("{{ mixed | uniq | size }}", "3"),
        ("{{ '<p>a <!-- b --><b>c</b></p><style>d</style>' | strip_html }}", "a c"),
        ("{{ '2026-01-02' | date: '%Y/%m' }}{{ 'no date' | date: '%Y' }}", "2026/01no date"),
        ("{{ (1..3) | join }}{% for i in (1..3) reversed %}{{ i }}{% endfor %}", "1 2 3321"),
        ("{% if items contains 'a' and items != rows %}y{% endif %}", "y"),
        ("{% case items[0] %}{% when 'x', 'b' %}y{% else %}n{% endcase %}", "y"),
    ],
)
def test_bounded_filters_equal_liquid(source: str, text: str) -> None:
    rows = [{"k": 1, "v": 1}, {"k": 1, "v": 2}, {"v": 3}]
    data = {"items": ["b", "a", "b"], "rows": rows, "mixed": [{"a": [1]}, {"a": [1.0]}, [1]]}
    assert Template(source).render(data) == text


def test_long_list_of_rows_renders() -> None:
    row = (
        '<tr><td class="label">{{ forloop.index }}. {{ i.name | upcase }}</td>'
        "<td>{% if i.price > 9 %}{{ i.price | times: 2 }}{% else %}-{% endif %}</td></tr>"
    )
    source = "<table>{% for i in items %}" + row + "{% endfor %}</table>"
    rows = {"items": [{"name": f"Tea {n}", "price": n} for n in range(900)]}
    assert Template(source, environment=HTML_ENVIRONMENT).render(rows).count("<tr>") == 900


@pytest.fixture
def unguarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notifications.content.markup.find_excess", lambda _html: None)


@pytest.mark.parametrize("name", ["nested elements", "bold that goes on", "many styles"])
def test_html_beyond_the_static_limits_ends_only_the_subprocess(name: str, unguarded: None) -> None:
    """The dry run in a subprocess catches HTML that the static limits accept."""
    (fault,) = faults("email_html", hostile.HTML[name])
    assert fault.code == "too_complex"
    assert "exceeds the memory or time limit" in fault.reason


def test_dry_run_names_the_language(unguarded: None) -> None:
    found = lint_template(
        name="parcel_lost",
        parts={
            "default": {"subject": "S", "body": "B", "email_html": "<p>x</p>"},
            "pt": {"email_html": "<div>" * 7_000},
        },
        example_data={},
        sensitive=frozenset(),
    )
    (fault,) = found
    assert (fault.language, fault.part, fault.code) == ("pt", "email_html", "too_complex")


@pytest.mark.parametrize(
    ("body", "code"), [("{{ order }}" * 400, "too_complex"), ("x" * 60_000, "too_long")]
)
def test_all_parts_together_are_limited(body: str, code: str) -> None:
    languages = ("default", "pt", "fr", "es", "de", "it", "nl", "sv", "fi")
    parts = {language: {"subject": "S", "body": body} for language in languages}
    found = lint_template(name="t", parts=parts, example_data=hostile.DATA, sensitive=frozenset())
    assert [(fault.code, fault.language) for fault in found] == [(code, None)]
