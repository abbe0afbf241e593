"""Cases of the rules beyond their page."""

from typing import Any

from domain.schema_changes import MAX_FOUND
from domain.type_rules import find
from tests.domain.test_schema_changes import OBJECT, with_a
from tests.support.tables import each_case


def codes(body: str, **definition: Any) -> list[str]:
    return [finding.code for finding in find(definition, {"default": {"body": body}})]


@each_case(
    "body, schema, is_known",
    [
        ("{{ a.size }}", with_a({"type": "string"}), True),
        ("{{ a.b.c }}", with_a({"type": "object"}), True),
        ("{{ a.b }}", with_a(with_a({})), False),
        ("{{ a.a }}", with_a(with_a({})), True),
        ("{{ a[0].a }}", with_a({"items": with_a({})}), True),
        ("{{ a[0].b }}", with_a({"items": with_a({})}), False),
        ("{% for x in a %}{{ x.b }}{% endfor %}", with_a({"items": with_a({})}), True),
        ("{% assign b = a %}{{ b }}", with_a({}), True),
        ("{{ b }}", with_a({}, additionalProperties={}), True),
        ("{{ b }}", {**OBJECT, "additionalProperties": False}, False),
        ("{{ b }}", OBJECT, True),
        ("{{ digest.count }}{{ start_time }}", with_a({}), True),
        ("{{ size }}", with_a({}), False),
        ("{{ [a] }}", with_a({}), True),
        ("{{ [recipient.locale] }}", with_a({}), True),
        ("{{ [b] }}", with_a({}), False),
        ("{{ a.c }}", with_a({"$ref": "#/$defs/b", **with_a({})}, **{"$defs": {"b": {}}}), False),
        ("{{ a.b }}", with_a({"properties": True}), False),
    ],
)
def test_variable_is_known_by_the_schema(body: str, schema: Any, is_known: bool) -> None:
    assert codes(body, schema=schema) == ([] if is_known else ["unknown_variable"])


@each_case(
    "html, found",
    [
        ('<html xmlns="http://www.w3.org/1999/xhtml">', []),
        ("<p>{{ 'http://a.example' }}</p>", ["insecure_link"]),
        ('<img\n src="https://a.example/{{ a }}"\n alt="{{ a }}">', []),
        ("<img src='https://a.example/x' ALT>", []),
        ("<img data-alt='x' src='https://a.example/x'>", ["image_without_text"]),
        ("<imgx>", []),
        ("{{ '<img>' }}{% comment %}{% endcomment %}", []),
        ("{{% if a %}<img>{% endif %}", ["image_without_text"]),
    ],
)
def test_links_and_images(html: str, found: list[str]) -> None:
    given = {"default": {"email_html": html}}
    assert [finding.code for finding in find({"example_data": {"a": "1"}}, given)] == found


def test_unclosed_liquid_is_searched_for_its_end_once() -> None:
    hidden = "{{" * 6_000 + "x" * 20_000
    given = {"default": {"email_html": f"<img>{{% raw %}}{hidden}{{% endraw %}}<img>"}}
    assert [finding.code for finding in find({}, given)] == ["image_without_text"] * 2


def test_failure_to_fill_in_is_no_finding() -> None:
    loop = "{% for a in (1..9999) %}{{ a }}{% endfor %}"
    assert find({"channels": ["push"]}, {"default": {"push": loop}}) == []


def test_findings_of_a_text_have_a_limit() -> None:
    assert len(find({}, {"default": {"email_html": "<img>" * 1_000}})) == MAX_FOUND
