"""The subset of JSON Schema that types have, and where data differs from a schema."""

import threading
from typing import Any

import jsonschema
from hypothesis import given, settings
from hypothesis import strategies as st

from notifications.catalog import schemas
from notifications.catalog.definitions import exceeds_depth
from notifications.validation import ProblemCollector
from tests.support.subprocess import python
from tests.support.tables import each_case

OBJECT: dict[str, Any] = {"type": "object"}
ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "order_id": {"type": "integer", "minimum": 1},
        "carrier": {"enum": ["ctt", "dhl"]},
        "paid": {"const": True},
        "ship_on": {"type": "string", "format": "date"},
        "reference": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]+$", "maxLength": 10},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}, "minItems": 1},
    },
    "required": ["order_id"],
    "additionalProperties": False,
    "$defs": {"line": {"type": "object", "required": ["sku"], "properties": {"sku": {}}}},
}


def problems_of_schema(schema: Any) -> dict[str, str]:
    problems = ProblemCollector()
    schemas.check_schema(schema, problems, pointer="/schema")
    return {problem.pointer: problem.code for problem in problems.problems}


def mismatches(schema: dict[str, Any], data: Any) -> dict[str, tuple[str, str]]:
    found = schemas.find_mismatches(schemas.dump(schema), data, pointer="/data")
    return {problem.pointer: (problem.code, problem.detail) for problem in found}


def with_a(part: Any, **more: Any) -> dict[str, Any]:
    return {**OBJECT, "properties": {"a": part}, **more}


@each_case(
    "schema",
    [
        OBJECT,
        ORDER,
        {**OBJECT, "$schema": schemas.DIALECT, "title": "t", "description": "d"},
        with_a({"type": ["string", "null"], "examples": ["x", None], "default": "y"}),
        with_a({"format": "email", "minLength": 3, "exclusiveMaximum": 4.5}),
        with_a(
            {"$ref": "#/$defs/b"}, **{"$defs": {"b": {"items": {"$ref": "#/$defs/c"}}, "c": {}}}
        ),
        {**OBJECT, "additionalProperties": {"type": "number"}},
    ],
)
def test_subset_has(schema: dict[str, Any]) -> None:
    assert problems_of_schema(schema) == {}


@each_case(
    "schema, expected",
    [
        ({}, {"/schema/type": "required"}),
        ({"type": "array"}, {"/schema/type": "unknown_value"}),
        ({**OBJECT, "oneOf": [OBJECT]}, {"/schema/oneOf": "unknown_field"}),
        ({**OBJECT, "$schema": "http://json-schema.org/draft-07/schema#"},
         {"/schema/$schema": "unknown_value"}),
        (with_a({"multipleOf": 2}), {"/schema/properties/a/multipleOf": "unknown_field"}),
        (with_a({"$defs": {}}), {"/schema/properties/a/$defs": "unknown_field"}),
        (with_a({"type": "strng"}), {"/schema/properties/a/type": "unknown_value"}),
        (with_a({"type": []}), {"/schema/properties/a/type": "unknown_value"}),
        (with_a({"format": "ipv4"}), {"/schema/properties/a/format": "unknown_value"}),
        (with_a({"minLength": -1}), {"/schema/properties/a/minLength": "out_of_range"}),
        (with_a({"maxLength": 1.5}), {"/schema/properties/a/maxLength": "wrong_type"}),
        (with_a({"enum": []}), {"/schema/properties/a/enum": "out_of_range"}),
        (with_a(True), {"/schema/properties/a": "wrong_type"}),
        (with_a({}, required="a"), {"/schema/required": "wrong_type"}),
        (with_a({"pattern": "["}), {"/schema/properties/a/pattern": "invalid_pattern"}),
        (with_a({"pattern": "(?=x)y"}), {"/schema/properties/a/pattern": "invalid_pattern"}),
        (with_a({"pattern": r"(x)\1"}), {"/schema/properties/a/pattern": "invalid_pattern"}),
        (with_a({"pattern": "a{99}{99}{99}"}), {"/schema/properties/a/pattern": "invalid_pattern"}),
        (with_a({"$ref": "#/$defs/b"}), {"/schema/properties/a/$ref": "unknown_reference"}),
        (with_a({"$ref": "https://example.com/s"}),
         {"/schema/properties/a/$ref": "invalid_format"}),
        (with_a({"$ref": "#"}), {"/schema/properties/a/$ref": "invalid_format"}),
        ({**OBJECT, "x-sensitive": True}, {"/schema/x-sensitive": "unknown_field"}),
        (with_a({"x-sensitive": "yes"}), {"/schema/properties/a/x-sensitive": "wrong_type"}),
        ({**OBJECT, "$defs": {"b": {"$ref": "#/$defs/b"}}},
         {"/schema/$defs/b": "recursive_reference"}),
        ({**OBJECT, "$defs": {"b": {"items": {"$ref": "#/$defs/c"}},
                              "c": {"additionalProperties": {"$ref": "#/$defs/b"}}}},
         {"/schema/$defs/b": "recursive_reference", "/schema/$defs/c": "recursive_reference"}),
        (with_a({"pattern": "(" * 2_000 + ")" * 2_000}),
         {"/schema/properties/a/pattern": "invalid_pattern"}),
        ({**OBJECT, "$defs": {f"d{number}": {} for number in range(101)}},
         {"/schema/$defs": "out_of_range"}),
        (with_a({"description": "x" * schemas.MAX_TEXT}), {"/schema": "too_long"}),
    ],
)  # fmt: skip
def test_subset_has_not(schema: dict[str, Any], expected: dict[str, str]) -> None:
    assert problems_of_schema(schema) == expected


def test_schema_of_an_example_takes_data_like_it() -> None:
    example = {
        "parcel": "77",
        "days": 3,
        "is_late": False,
        "note": None,
        "shop": {"city": "Porto"},
        "lines": [{"sku": "a"}, {"sku": "b"}],
        "mixed": [1, "a"],
    }
    schema = schemas.schema_of_example(example)
    assert problems_of_schema(schema) == {}
    assert schema["properties"] == {
        "parcel": {"type": "string"},
        "days": {"type": "number"},
        "is_late": {"type": "boolean"},
        "note": {},
        "shop": {"type": "object", "properties": {"city": {"type": "string"}}},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"sku": {"type": "string"}}},
        },
        "mixed": {"type": "array"},
    }
    assert mismatches(schema, {**example, "days": 2.5, "more": 1}) == {}
    assert [*mismatches(schema, {**example, "days": "2"})] == ["/data/days"]


@each_case("is_list", [False, True])
def test_schema_of_a_deep_example_is_one_of_a_type(is_list: bool) -> None:
    value: Any = "x"
    for _ in range(18):
        value = [value] if is_list else {"a": value}
    schema = schemas.schema_of_example({"a": value})
    assert problems_of_schema(schema) == {}
    assert not exceeds_depth(schema, schemas.MAX_DEPTH)
    assert mismatches(schema, {"a": value}) == {}


SECRET = {"x-sensitive": True}


@each_case(
    "schema, names",
    [
        (with_a({"type": "string"}), []),
        (with_a({"x-sensitive": False}), []),
        (with_a({"type": "string", **SECRET}), ["a"]),
        (with_a({"properties": {"b": {"items": SECRET}}}), ["a"]),
        (with_a({"additionalProperties": SECRET}), ["a"]),
        (with_a({"$ref": "#/$defs/b"}, **{"$defs": {"b": SECRET}}), ["a"]),
        (
            with_a(
                {"items": {"$ref": "#/$defs/c"}},
                **{"$defs": {"b": SECRET, "c": {"properties": {"d": {"$ref": "#/$defs/b"}}}}},
            ),
            ["a"],
        ),
        (
            with_a(
                {}, **{"$ref": "#/$defs/b", "$defs": {"b": {"properties": {"a": SECRET, "c": {}}}}}
            ),
            ["a"],
        ),
        # What is no schema is refused elsewhere.
        ({"properties": [], "$defs": 1, "$ref": []}, []),
        (with_a({"items": [SECRET], "$ref": ["x"], "properties": 1}), []),
    ],
)
def test_variable_is_sensitive_with_a_mark_anywhere_in_it(
    schema: dict[str, Any], names: list[str]
) -> None:
    assert schemas.marked_variables(schema) == names


@each_case(
    "schema, places",
    [
        (with_a(SECRET), []),
        ({**OBJECT, "additionalProperties": {"items": SECRET}}, ["/additionalProperties"]),
        ({**OBJECT, "$ref": "#/$defs/b", "$defs": {"b": SECRET}}, ["/$defs/b/x-sensitive"]),
        # A reference to itself, which is refused elsewhere, is read once.
        (
            {
                **OBJECT,
                "$ref": "#/$defs/b",
                "$defs": {"b": {**SECRET, "$ref": "#/$defs/b"}, "c": {}},
            },
            ["/$defs/b/x-sensitive"],
        ),
        ({**OBJECT, "$defs": {"None": SECRET}}, []),
    ],
)
def test_mark_without_the_name_of_a_variable_is_found(
    schema: dict[str, Any], places: list[str]
) -> None:
    assert schemas.unnamed_marks(schema) == places


def test_marks_of_a_long_chain_are_found_without_recursion() -> None:
    chain = {f"d{n}": {"items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(99)}
    schema = with_a({"$ref": "#/$defs/d0"}, **{"$defs": chain | {"d99": SECRET}})
    assert problems_of_schema(schema) == {}
    assert schemas.marked_variables(schema) == ["a"]


def test_every_wrong_field_is_named_at_once() -> None:
    data = {
        "orderId": 1001,
        "carrier": "ups",
        "paid": False,
        "ship_on": "24.12.2026",
        "reference": "ABC-12345678",
        "lines": [{"sku": "x"}, {}],
    }
    assert mismatches(ORDER, data) == {
        "/data/carrier": ("unknown_value", 'Expected one of "ctt", "dhl".'),
        "/data/lines/1/sku": ("required", "Required."),
        "/data/orderId": ("unknown_field", "Not in the schema. Did you mean `order_id`?"),
        "/data/order_id": ("required", "Required."),
        "/data/paid": ("unknown_value", "Expected true."),
        "/data/reference": ("out_of_range", "Its length must be at most 10."),
        "/data/ship_on": ("invalid_format", "Expected a date, such as 2026-12-24."),
    }


@each_case(
    "part, value, detail",
    [
        ({"type": "integer"}, "1", "Expected integer."),
        ({"type": "integer"}, True, "Expected integer."),
        ({"type": ["string", "null"]}, 1, "Expected null or string."),
        ({"minimum": 1}, 0.5, "Must be at least 1."),
        ({"maximum": 1}, 2, "Must be at most 1."),
        ({"exclusiveMinimum": 1}, 1, "Must be more than 1."),
        ({"exclusiveMaximum": 1}, 1, "Must be less than 1."),
        ({"minLength": 2}, "é", "Its length must be at least 2."),
        ({"minItems": 1}, [], "Its length must be at least 1."),
        ({"maxItems": 1}, [1, 2], "Its length must be at most 1."),
        ({"pattern": "^a$"}, "a\n", "Must match ^a$"),
        ({"format": "date-time"}, "2026-12-24T18:00:00",
         "Expected a time with an offset, such as 2026-12-24T18:00:00Z."),
        ({"format": "date-time"}, "2026-02-30T18:00:00Z",
         "Expected a time with an offset, such as 2026-12-24T18:00:00Z."),
        ({"format": "uri"}, "/orders/1",
         "Expected an absolute URI, such as https://example.com/page."),
        ({"format": "email"}, "ada", "Expected an email address."),
        ({"enum": list(range(12))}, 12, "Expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …."),
    ],
)  # fmt: skip
def test_reasons(part: dict[str, Any], value: Any, detail: str) -> None:
    assert problems_of_schema(with_a(part)) == {}
    ((pointer, (_, found)),) = mismatches(with_a(part), {"a": value}).items()
    assert (pointer, found) == ("/data/a", detail)


@each_case(
    "part, value",
    [
        ({"type": "integer"}, 1.0),
        ({"maxLength": 1}, "😀"),
        ({"format": "date-time"}, "2026-12-24T18:00:00+01:00"),
        ({"format": "email"}, 5),
        ({"minimum": 1}, "text"),
        ({"enum": [None, "é"]}, "é"),
    ],
)
def test_matching_values(part: dict[str, Any], value: Any) -> None:
    assert mismatches(with_a(part), {"a": value}) == {}


@each_case(
    "part, value, reason",
    [
        ({"multipleOf": 2}, 1, "`multipleOf`"),
        ({"oneOf": [{"type": "string"}]}, 1, "`oneOf`"),
        ({"anyOf": [{"type": "string"}]}, 1, "`anyOf`"),
        ({"not": {"type": "integer"}}, 1, "`not`"),
        ({"minProperties": 1}, {}, "`minProperties`"),
        ({"uniqueItems": True}, [1, 1], "`uniqueItems`"),
        ({"format": "ipv4"}, "x", "Expected ipv4."),
    ],
)
def test_keyword_of_a_newer_version_is_checked_and_named(
    part: Any, value: Any, reason: str
) -> None:
    ((_, detail),) = mismatches(with_a(part), {"a": value}).values()
    assert reason in detail


@each_case("part", [{"type": "colour"}, {"$ref": "https://example.com/x"}, {"pattern": "(?<=a)b"}])
def test_schema_that_only_a_newer_version_can_check_refuses_nothing(part: Any) -> None:
    assert mismatches(with_a(part), {"a": 1}) == {}


def test_chain_of_all_definitions_fits_a_small_stack() -> None:
    """An overflow of the stack ends the process, so it's another one that tries."""
    last = schemas.MAX_DEFINITIONS - 1
    chain: dict[str, Any] = {
        f"d{number}": {"items": {"$ref": f"#/$defs/d{number + 1}"}} for number in range(last)
    }
    schema = with_a({"$ref": "#/$defs/d0"}, **{"$defs": {**chain, f"d{last}": {"type": "string"}}})
    assert problems_of_schema(schema) == {}
    program = f"""
import threading
from notifications.catalog import schemas
def check():
    value = 1
    for _ in range(18):
        value = [value]
    print(schemas.find_mismatches({schemas.dump(schema)!r}, {{"a": value}}, pointer="/data"))
threading.stack_size(128 * 1024)
thread = threading.Thread(target=check)
thread.start()
thread.join()
"""
    assert python("-c", program).strip() == "[]"


@each_case("pattern", ["^(a+)+$", "^(a|aa)*$", "^(a|a?)*$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_pattern_backtracks(pattern: str) -> None:
    """Each of these takes Python's ``re`` longer than the life of the universe."""
    assert mismatches(with_a({"pattern": pattern}), {"a": "a" * 50_000 + "!"}) != {}


def test_keys_of_data_are_pointers() -> None:
    schema = {**OBJECT, "additionalProperties": {"type": "string"}}
    assert list(mismatches(schema, {"a/b": 1, "~": 2})) == ["/data/a~1b", "/data/~0"]


def test_compiled_schema_serves_threads_at_once() -> None:
    wrong: list[Any] = []

    def check() -> None:
        for number in range(500):
            expected = {} if number else {"/data/order_id": ("out_of_range", "Must be at least 1.")}
            if mismatches(ORDER, {"order_id": number}) != expected:
                wrong.append(number)

    threads = [threading.Thread(target=check) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


NAMES = st.sampled_from(["a", "b", "c"])
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(-5, 5), st.text("ab", max_size=3)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
TYPE_NAMES = st.sampled_from(schemas.TYPES)
LEAVES = st.fixed_dictionaries(
    {},
    optional={
        "type": TYPE_NAMES | st.lists(TYPE_NAMES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(SCALARS, min_size=1, max_size=3),
        "const": SCALARS,
        "minimum": st.integers(-5, 5),
        "exclusiveMaximum": st.floats(-5, 5),
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "pattern": st.sampled_from(["^a", "b$", "^(a|b)+$"]),
    },
)
PARTS = st.recursive(
    LEAVES,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(NAMES, inner, max_size=3),
            "required": st.lists(NAMES, max_size=2, unique=True),
            "additionalProperties": st.booleans() | inner,
            "items": inner,
        },
    ),
    max_leaves=6,
)
SCHEMAS = PARTS.map(lambda part: {**part, "type": "object"})


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_verdicts_are_those_of_the_reference_implementation(
    schema: dict[str, Any], data: dict[str, Any]
) -> None:
    assert problems_of_schema(schema) == {}
    reference = jsonschema.Draft202012Validator(schema).is_valid(data)
    assert (mismatches(schema, data) == {}) == reference


def with_secrets(value: Any) -> Any:
    """Return a value whose texts and numbers are secret. Its keys aren't."""
    match value:
        case dict():
            return {name: with_secrets(inner) for name, inner in value.items()}
        case list():
            return [with_secrets(inner) for inner in value]
        case bool() | None:
            return value
    return f"s3cret {value}"


@settings(max_examples=150, deadline=None)
@given(SCHEMAS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_no_text_has_a_value_of_the_data(schema: dict[str, Any], data: dict[str, Any]) -> None:
    details = [detail for _, detail in mismatches(schema, with_secrets(data)).values()]
    assert not [detail for detail in details if "s3cret" in detail]
