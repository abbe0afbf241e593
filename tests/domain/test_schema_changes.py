"""Which changes of a schema refuse what was taken."""

from typing import Any

from domain.schema_changes import MAX_FOUND, breaking_changes
from tests.support.tables import each_case

OBJECT: dict[str, Any] = {"type": "object"}


def with_a(part: Any, **more: Any) -> dict[str, Any]:
    return {**OBJECT, "properties": {"a": part}, **more}


def broken(before: Any, after: Any) -> list[str]:
    return [place for place, _ in breaking_changes(before, after)]


A = "/properties/a"
TEXT = {"type": "string"}
B = {"$defs": {"b": {"type": "string"}}}
SHORT_B = {"$ref": "#/$defs/b", "maxLength": 5}


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
        (OBJECT, with_a({"type": "string"}), f"{A}/type"),
        (with_a({}, additionalProperties=TEXT), with_a({"type": "integer"}), f"{A}/type"),
        (with_a({"type": "integer"}), {**OBJECT, "additionalProperties": TEXT}, f"{A}/type"),
        (with_a({}), with_a({"enum": [True, False]}), f"{A}/enum"),
        (with_a({"enum": [1]}), with_a({"enum": [True]}), f"{A}/enum"),
        (with_a({"minimum": 1}), with_a({"exclusiveMinimum": 1}), f"{A}/exclusiveMinimum"),
        (with_a({"enum": ["ab"]}), with_a({"maxLength": 1}), f"{A}/maxLength"),
        (with_a({"$ref": "#/$defs/b"}, **B), with_a(SHORT_B, **B), f"{A}/maxLength"),
        (OBJECT, {**OBJECT, "required": ["a/b~c"]}, "/properties/a~1b~0c"),
        (OBJECT, {**OBJECT, "properties": {"a/b": TEXT}}, "/properties/a~1b/type"),
        (
            {**OBJECT, "properties": {"a/b": TEXT}},
            {**OBJECT, "additionalProperties": False},
            "/properties/a~1b",
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
        (OBJECT, with_a({})),
        ({**OBJECT, "additionalProperties": TEXT}, with_a(TEXT)),
        ({**OBJECT, "additionalProperties": False}, {**OBJECT, "additionalProperties": TEXT}),
        (with_a({"type": "boolean"}), with_a({"enum": [True, False]})),
        (with_a({"type": ["boolean", "null"]}), with_a({"enum": [None, False, True]})),
        (with_a({"type": "integer", "minimum": 1}), with_a({"exclusiveMinimum": 0})),
        (with_a({"type": "integer", "exclusiveMaximum": 2.5}), with_a({"maximum": 2})),
        (with_a({"minimum": 1}), with_a({"minimum": 1, "exclusiveMinimum": 0})),
        (with_a(TEXT), with_a({**TEXT, "minLength": 0})),
        (with_a({"enum": [1, 2.0]}), with_a({"type": "integer", "enum": [1.0, 2], "maximum": 2})),
        (with_a({"enum": ["a", "b"]}), with_a({**TEXT, "maxLength": 1, "minimum": 5})),
        (with_a(TEXT), with_a({"type": ["string", "object"], "required": ["b"]})),
    ],
)
def test_wider_schema_does_not_break(before: Any, after: Any) -> None:
    assert broken(before, after) == []


def test_change_behind_two_references_breaks() -> None:
    definitions = {"a": with_a({"$ref": "#/$defs/b"}), "b": TEXT}
    before = with_a({"$ref": "#/$defs/a"}, **{"$defs": definitions})
    after = {**before, "$defs": {**definitions, "b": {"type": "integer"}}}
    assert broken(before, after) == [f"{A}{A}/type"]


def test_each_pair_of_definitions_is_compared_once() -> None:
    def chain(text: str, last: str) -> dict[str, Any]:
        more = {
            f"d{n}": {
                **with_a({"$ref": f"#/$defs/d{n + 1}", "description": text}),
                "additionalProperties": {"$ref": f"#/$defs/d{n + 1}"},
            }
            for n in range(99)
        }
        return with_a({"$ref": "#/$defs/d0"}, **{"$defs": {**more, "d99": {"type": last}}})

    places = broken(chain("x", "string"), chain("y", "integer"))
    assert 0 < len(places) < 10
    assert all(place.endswith("/type") for place in places)


def test_findings_of_a_schema_have_a_limit() -> None:
    names = [f"a{n}" for n in range(1_000)]
    before = {**OBJECT, "properties": {name: {} for name in names}}
    assert len(broken(before, {**before, "required": names})) == MAX_FOUND


def test_schemas_that_refer_in_other_ways_are_compared_up_to_a_limit() -> None:
    def graph(*steps: int) -> dict[str, Any]:
        definitions = {
            f"d{n}": {
                "properties": {
                    f"p{at}": {"$ref": f"#/$defs/d{n + step}"}
                    for at, step in enumerate(steps)
                    if n + step < 300
                }
            }
            for n in range(300)
        }
        return {**OBJECT, **definitions["d0"], "$defs": definitions}

    assert broken(graph(1, 1, 2), graph(1, 2, 1)) != []
    assert broken(graph(1, 1, 2), graph(1, 1, 2)) == []
