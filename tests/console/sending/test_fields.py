"""Inputs for the data of a type, made from its schema or its example data."""

import json
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.forms import Textarea

from console.sending.fields import OMITTED, fields_of
from tests.support.tables import each_case


def fields(**document: Any) -> dict[str, Any]:
    defaults: Any = {"example_data": {}, "sensitive_variables": [], "schema": ""}
    return {name.removeprefix("data:"): field for name, field in fields_of(defaults | document)}


def field_of(**schema: Any) -> Any:
    return fields(schema=json.dumps({"type": "object", "properties": {"x": schema}}))["x"]


@each_case(
    "schema, entered, value",
    [
        ({"type": "string"}, " Ada ", "Ada"),
        ({"type": "string", "maxLength": 500}, "a\r\nb", "a\nb"),
        ({"type": ["string", "integer"]}, "007", "007"),
        ({"type": "string", "format": "date-time"}, "2026-12-24T18:00", "2026-12-24T18:00:00Z"),
        ({"type": "string", "format": "date-time"}, "2026-12-24T18:00:30", "2026-12-24T18:00:30Z"),
        (
            {"type": "string", "format": "date-time"},
            "2026-12-24T18:00:00+01:00",
            "2026-12-24T18:00:00+01:00",
        ),
        ({"type": "string", "format": "date"}, "2026-12-24", "2026-12-24"),
        ({"type": "string", "format": "email"}, "ada@example.com", "ada@example.com"),
        ({"type": "string", "format": "uri"}, "https://example.com", "https://example.com"),
        ({"type": "integer"}, "-12", -12),
        ({"type": ["integer", "null"]}, "12", 12),
        ({"type": "number"}, "12.5", 12.5),
        ({"type": "number"}, "12", 12),
        ({"type": "boolean"}, "false", False),
        ({"enum": ["a", 1, None]}, '"a"', "a"),
        ({"enum": ["a", 1, None]}, "1", 1),
        ({"const": 7}, "7", 7),
        ({"type": "array"}, '[1, {"a": null}]', [1, {"a": None}]),
        ({"type": "object"}, '{"a": []}', {"a": []}),
        ({}, '"text"', "text"),
        ({"type": "object"}, "", OMITTED),
        ({"type": "string"}, "  ", OMITTED),
        ({"type": "boolean"}, "", OMITTED),
        ({"type": "integer"}, "", OMITTED),
    ],
)
def test_an_input_gives_the_value_of_its_schema(
    schema: dict[str, Any], entered: str, value: Any
) -> None:
    assert field_of(**schema).clean(entered) == value


@each_case(
    "schema, entered, words",
    [
        ({"type": "integer"}, "1.5", "whole number"),
        ({"type": "integer"}, "1" * 20, "whole number"),
        ({"type": "number"}, "1,5", "such as 12.5"),
        ({"type": "number"}, "1e999", "such as 12.5"),
        ({"type": "number"}, "nan", "such as 12.5"),
        ({"type": "boolean"}, "maybe", "not one of the available choices"),
        ({"type": "array"}, "[1,", "line 1, character 4"),
        ({"type": "array"}, "[NaN]", "NaN is not JSON"),
        ({"type": "array"}, "[" * 21 + "]" * 21, "Nesting exceeds"),
        ({"type": "array"}, "[" * 9_000, "Nesting exceeds"),
        ({"type": "array"}, "[" + "1" * 5_000 + "]", "too many digits"),
        ({"type": "object"}, '{"a": 1, "a": 2}', "same key twice"),
        ({"type": "string"}, "x" * 20_001, "at most 20000"),
    ],
)
def test_a_wrong_text_is_refused_with_its_reason(
    schema: dict[str, Any], entered: str, words: str
) -> None:
    with pytest.raises(ValidationError, match=words):
        field_of(**schema).clean(entered)


def test_an_input_shows_what_the_schema_says() -> None:
    given = field_of(
        type="string",
        format="uri",
        title="Page",
        description="Where it is.",
        examples=["https://x"],
    )
    assert (given.label, given.help_text) == ("Page", "Where it is. Optional.")
    assert given.widget.input_type == "url"
    assert given.widget.attrs["placeholder"] == "https://x"
    assert field_of(type="boolean", default=True).initial == "true"


@each_case(
    "schema, shown",
    [
        ({"type": "string", "default": "Ada"}, "Ada"),
        ({"type": "string", "default": ""}, ""),
        ({"type": ["string", "null"], "default": None}, None),
        ({"type": ["integer", "null"], "default": None}, None),
        ({"type": "integer", "default": 0}, "0"),
        ({"default": None}, None),
        ({"type": "array", "default": [1]}, "[1]"),
        ({"enum": ["a", None], "default": None}, "null"),
        ({"enum": [1, "1"], "default": "1"}, '"1"'),
        ({"type": "boolean", "default": False}, "false"),
    ],
)
def test_a_default_is_shown(schema: dict[str, Any], shown: str | None) -> None:
    assert field_of(**schema).initial == shown


@each_case(
    "default, shown",
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00"),
        ("2026-01-01T00:30:00+01:00", "2025-12-31T23:30:00"),
        ("2026-01-01T00:00:00.123456Z", "2026-01-01T00:00:00.123"),
        ("2026-01-01T00:00", "2026-01-01T00:00:00"),
        ("tomorrow", None),
        (7, None),
    ],
)
def test_a_default_time_is_shown_as_a_browser_takes_it(default: Any, shown: str | None) -> None:
    assert field_of(type="string", format="date-time", default=default).initial == shown


@each_case(
    "schema, has_lines",
    [
        ({"default": "Ada"}, False),
        ({"default": "Ada\nLovelace"}, True),
        ({"default": "Ada\r\nLovelace"}, True),
        ({"default": "Ada\nLovelace", "format": "uuid"}, True),
        ({"examples": ["Ada\nLovelace"]}, True),
        ({"maxLength": 500}, True),
        ({"maxLength": 500, "format": "uri"}, False),
    ],
)
def test_a_text_of_several_lines_has_an_area(schema: dict[str, Any], has_lines: bool) -> None:
    assert isinstance(field_of(type="string", **schema).widget, Textarea) is has_lines


def test_references_are_followed() -> None:
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a", "title": "Own"}},
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer", "title": "B"}},
    }
    field = fields(schema=json.dumps(schema))["x"]
    assert (field.label, field.clean("5")) == ("Own", 5)


def test_without_a_schema_the_examples_say_what_there_is() -> None:
    examples = {"name": "Ada", "count": 3, "is_new": True, "items": [1], "digest": {}}
    found = fields(example_data=examples, sensitive_variables=["name"])
    assert list(found) == ["name", "count", "is_new", "items"], "without the digest's own"
    assert found["count"].clean("4") == 4
    assert found["is_new"].clean("true") is True
    assert found["items"].clean("[2]") == [2]
    assert "masked" in found["name"].help_text


def test_a_closed_schema_has_no_other_inputs() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    others = {"a": "1", "b": "2"}
    assert list(fields(schema=json.dumps(schema), example_data=others)) == ["a", "b"]
    closed = {**schema, "additionalProperties": False}
    assert list(fields(schema=json.dumps(closed), example_data=others)) == ["a"]
