"""Which changes of a schema refuse what was taken, and cases of the rules beyond their page."""

from typing import Any

from domain.type_rules import breaking_changes, find
from tests.support.tables import each_case

OBJECT: dict[str, Any] = {"type": "object"}


def with_a(part: Any, **more: Any) -> dict[str, Any]:
    return {**OBJECT, "properties": {"a": part}, **more}


def broken(before: Any, after: Any) -> list[str]:
    return [place for place, _ in breaking_changes(before, after)]


A = "/properties/a"


@each_case(
    "before, after, place",
    [
        (with_a({}), with_a({}, required=["a"]), A),
        (OBJECT, with_a({}, required=["a"]), A),
        (with_a({}), {**OBJECT, "additionalProperties": False}, "/additionalProperties"),
        (with_a({}, additionalProperties=False), {**OBJECT, "additionalProperties": False}, A),
        (with_a({"type": "number"}), with_a({"type": "integer"}), f"{A}/type"),
        (with_a({}), with_a({"type": "string"}), f"{A}/type"),
        (with_a({"enum": [1, 2]}), with_a({"enum": [1]}), f"{A}/enum"),
        (with_a({}), with_a({"const": 1}), f"{A}/const"),
        (with_a({"enum": [1, 2]}), with_a({"const": 1}), f"{A}/const"),
        (with_a({"minimum": 1}), with_a({"minimum": 2}), f"{A}/minimum"),
        (with_a({}), with_a({"maxLength": 5}), f"{A}/maxLength"),
        (with_a({"maxItems": 5}), with_a({"maxItems": 4}), f"{A}/maxItems"),
        (with_a({"pattern": "^a"}), with_a({"pattern": "^b"}), f"{A}/pattern"),
        (with_a({}), with_a({"format": "date"}), f"{A}/format"),
        (with_a({"items": {}}), with_a({"items": {"type": "string"}}), f"{A}/items/type"),
        (
            with_a({}),
            with_a({}, additionalProperties={"minimum": 1}),
            "/additionalProperties/minimum",
        ),
        (
            with_a({"$ref": "#/$defs/b"}, **{"$defs": {"b": {"maximum": 2}}}),
            with_a({"$ref": "#/$defs/c"}, **{"$defs": {"c": {"maximum": 1}}}),
            f"{A}/maximum",
        ),
    ],
)
def test_narrower_schema_breaks(before: Any, after: Any, place: str) -> None:
    assert place in broken(before, after)
    assert broken(after, after) == []


@each_case(
    "before, after",
    [
        (with_a({}, required=["a"]), with_a({})),
        (with_a({}), OBJECT),
        (with_a({"type": "integer"}), with_a({"type": "number"})),
        (with_a({"type": "string"}), with_a({"type": ["string", "null"]})),
        (with_a({"const": 1}), with_a({"enum": [1, 2]})),
        (with_a({"minimum": 2, "pattern": "^a"}), with_a({"minimum": 1})),
        (with_a({"$ref": "#/$defs/b"}, **{"$defs": {"b": {"minimum": 1}}}), with_a({"minimum": 1})),
        ({**OBJECT, "additionalProperties": False}, with_a({"type": "string"})),
        (with_a({}, description="x"), with_a({"title": "y"}, examples=[])),
    ],
)
def test_wider_schema_does_not_break(before: Any, after: Any) -> None:
    assert broken(before, after) == []


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
    ],
)
def test_links_and_images(html: str, found: list[str]) -> None:
    given = {"default": {"email_html": html}}
    assert [finding.code for finding in find({"example_data": {"a": "1"}}, given)] == found


def test_failure_to_fill_in_is_no_finding() -> None:
    loop = "{% for a in (1..9999) %}{{ a }}{% endfor %}"
    assert find({"channels": ["push"]}, {"default": {"push": loop}}) == []
