"""The schema of a type's data: what it may use of JSON Schema, and where data differs from it.

No text has a value from the data: it may be a secret, and refusals of bulk calls are stored.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import structlog

from domain.schema_changes import as_mapping
from domain.states import SchemaMode
from domain.stored import known_member

from ..validation import MAX_PROBLEMS, FieldProblem, ProblemCollector, pointer_token, suggest

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

log = structlog.get_logger(__name__)
DIALECT = "https://json-schema.org/draft/2020-12/schema"
MAX_TEXT = 32 * 1024  # Characters of a schema
MAX_DEPTH = 20  # Levels of a schema as a JSON text
MAX_DEFINITIONS = 100
"""Entries of ``$defs``, each of which may refer to the next. The library follows them on the stack,
of which 256 KB end between 500 and 2,000."""
MAX_COMPILED = 1_024
"""Compiled schemas in a process: one takes 0.2 ms and about 9 KB."""
MAX_PATTERN_BYTES = 100_000  # Memory of a compiled pattern
MAX_NAMED = 10  # Allowed values that a text names
DEFINITIONS = "#/$defs/"
SENSITIVE = "x-sensitive"
"""Marks a variable, or a part of it, whose value is secret."""
FORMATS = {
    "date-time": "a time with an offset, such as 2026-12-24T18:00:00Z",
    "date": "a date, such as 2026-12-24",
    "uri": "an absolute URI, such as https://example.com/page",
    "email": "an email address",
}
"""The formats, and what a text calls them."""
TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")
_SCHEMA = {"type": "object", "$ref": "#/$defs/schema"}
_SCHEMAS = {"type": "object", "additionalProperties": _SCHEMA}
_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}
_COUNT = {"type": "integer", "minimum": 0, "maximum": 1_000_000}
_KEYWORDS: Mapping[str, Any] = {
    "$ref": {"type": "string", "pattern": "^#/[$]defs/[A-Za-z0-9_]{1,64}$"},
    "title": _TEXT,
    "description": _TEXT,
    "examples": {"type": "array"},
    "default": {},
    SENSITIVE: {"type": "boolean"},
    "type": {
        "anyOf": [
            {"enum": TYPES},
            {"type": "array", "items": {"enum": TYPES}, "minItems": 1},
        ]
    },
    "enum": {"type": "array", "minItems": 1},
    "const": {},
    "properties": _SCHEMAS,
    "required": {"type": "array", "items": _TEXT},
    "additionalProperties": {"type": ["boolean", "object"], "$ref": "#/$defs/schema"},
    "items": _SCHEMA,
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _COUNT),
    "pattern": _TEXT,
    "format": {"enum": list(FORMATS)},
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _NUMBER),
}
SUBSET: Mapping[str, Any] = {
    "$schema": DIALECT,
    "type": "object",
    "required": ["type"],
    "properties": {
        **{name: of for name, of in _KEYWORDS.items() if name != SENSITIVE},
        "$schema": {"const": DIALECT},
        "$defs": {**_SCHEMAS, "maxProperties": MAX_DEFINITIONS},
        "type": {"const": "object"},
    },
    "additionalProperties": False,
    "$defs": {"schema": {"properties": _KEYWORDS, "additionalProperties": False}},
}
"""What a type's schema may be, as a schema. Where it nests, ``$defs`` is not in it."""
_LIMITS = {
    "minimum": "Must be at least {limit}.",
    "maximum": "Must be at most {limit}.",
    "exclusiveMinimum": "Must be more than {limit}.",
    "exclusiveMaximum": "Must be less than {limit}.",
    **dict.fromkeys(("minLength", "minItems"), "Its length must be at least {limit}."),
    "maxProperties": "Must have at most {limit} entries.",  # In the subset alone
    **dict.fromkeys(("maxLength", "maxItems"), "Its length must be at most {limit}."),
}
_Described = tuple[str, str]
"""The code of a problem, and its text."""


@dataclass(frozen=True, slots=True)
class DataSchema:
    """The schema of a type, as a JSON text, and whether a request may differ from it."""

    text: str
    mode: SchemaMode

    def find_mismatches(self, data: Mapping[str, Any]) -> list[FieldProblem]:
        """Return where data differs from the schema, with pointers below ``/data``."""
        # A variable that is missing has the same code, whether schema or template needs it.
        return [
            replace(problem, code="missing_variable") if problem.code == "required" else problem
            for problem in find_mismatches(self.text, data, pointer="/data")
        ]


def data_schema(text: str | None, mode: str | None) -> DataSchema | None:
    """Return the schema of a stored type, None if its data isn't checked."""
    known = schema_mode(mode)
    return None if not text or known is SchemaMode.OFF else DataSchema(text, known)


def schema_mode(stored: str | None) -> SchemaMode:
    """Return a stored mode. One of a newer version refuses nothing, and says what differs."""
    return known_member(stored or SchemaMode.REJECT, otherwise=SchemaMode.WARN)


def find_mismatches(schema: str, value: Any, *, pointer: str) -> list[FieldProblem]:
    """Return where a value differs from a schema that was checked, by pointer."""
    validator = _compiled(schema)
    if validator is None or validator.is_valid(value):
        return []
    found = [
        problem
        for error in validator.iter_errors(value)
        for problem in _problems_of(error, pointer=pointer, schema=schema)
    ]
    return sorted(found, key=lambda problem: problem.pointer)[:MAX_PROBLEMS]


def check_schema(schema: Mapping[str, Any], problems: ProblemCollector, *, pointer: str) -> None:
    """Add a problem for each part of a schema that isn't in the subset, or means nothing."""
    text = dump(schema)
    if len(text) > MAX_TEXT:
        problems.add(pointer, "too_long", f"A schema has at most {MAX_TEXT:,} characters.")
        return
    found = find_mismatches(_SUBSET_TEXT, schema, pointer=pointer)
    for problem in found or _find_wrong_references(schema, pointer):
        problems.add(problem.pointer, problem.code, problem.detail)
    if problems.problems:
        return
    from jsonschema_rs import ValidationError

    try:
        _compile(text)
    except ValidationError as error:
        reason = "Not a pattern, or too large, or with lookaround or a back reference."
        problems.add(pointer + _pointer(error.instance_path), "invalid_pattern", reason)


def marked_variables(schema: Mapping[str, Any]) -> list[str]:
    """Return the variables that are sensitive: marked, or with a part that is.

    The schema may have any structure. One with more definitions than allowed is refused elsewhere,
    and would take long here.
    """
    definitions = as_mapping(schema.get("$defs"))
    if len(definitions) > MAX_DEFINITIONS:
        return []
    marked = _marked_definitions(definitions)
    found = [
        name
        for _, root in _roots(schema, definitions)
        for name, part in as_mapping(root.get("properties")).items()
        if _is_marked(part, marked)
    ]
    return list(dict.fromkeys(found))


def unnamed_marks(schema: Mapping[str, Any]) -> list[str]:
    """Return the places of marks that concern variables which the schema doesn't name."""
    definitions = as_mapping(schema.get("$defs"))
    marked = _marked_definitions(definitions)
    found = []
    for place, root in _roots(schema, definitions):
        if root.get(SENSITIVE) is True:
            found.append(f"{place}/{SENSITIVE}")
        if _is_marked(root.get("additionalProperties"), marked):
            found.append(f"{place}/additionalProperties")
    return found


def schema_of_example(example: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema that takes data like this, and any variables besides."""
    return {"$schema": DIALECT, **_part_of_example(example, depth=0)}


def dump(schema: Mapping[str, Any]) -> str:
    """Return the text of a schema, which is how it is stored: keys may begin with ``$``."""
    return json.dumps(schema, ensure_ascii=False)


def _compile(schema: str) -> "Draft202012Validator":
    # The library has 8 MB. A process loads it for the first type with a schema.
    from jsonschema_rs import Draft202012Validator, RegexOptions

    return Draft202012Validator(
        json.loads(schema),
        validate_formats=True,
        offline=True,
        pattern_options=RegexOptions(size_limit=MAX_PATTERN_BYTES),
    )


@lru_cache(maxsize=MAX_COMPILED)
def _compiled(schema: str) -> "Draft202012Validator | None":
    # A newer version may have checked what this one can't: its requests aren't refused.
    try:
        return _compile(schema)
    except ValueError:
        log.warning("schema_not_checked")
        return None


def _problems_of(error: "ValidationError", *, pointer: str, schema: str) -> Iterator[FieldProblem]:
    """Yield the problems of an error. Properties that are missing or not known have their own."""
    kind: Any = error.kind  # Its class, whose attributes these are, follows from its name
    place = pointer + _pointer(error.instance_path)
    if kind.name == "required":
        name = kind.property
        yield FieldProblem(f"{place}/{pointer_token(name)}", "required", "Required.")
    elif kind.name == "additionalProperties":
        known = json.loads(schema).get("properties", {}) if place == pointer else {}
        for name in kind.unexpected:
            reason = f"Not in the schema.{suggest(name, *known)}"
            yield FieldProblem(f"{place}/{pointer_token(name)}", "unknown_field", reason)
    elif kind.name == "anyOf" and schema == _SUBSET_TEXT:
        expected = f"Expected one of {', '.join(TYPES)}, or a list of them."
        yield FieldProblem(place, "unknown_value", expected)
    else:
        yield FieldProblem(place, *_DESCRIBED.get(kind.name, _describe_other)(kind))


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{pointer_token(str(token))}" for token in path)


def _describe_other(kind: Any) -> _Described:
    if (text := _LIMITS.get(kind.name)) is not None:
        return "out_of_range", text.format(limit=kind.limit)
    # Of a newer version, whose subset has more.
    return "invalid", f"Differs from `{kind.name}` of the schema."


def _describe_type(kind: Any) -> _Described:
    return "wrong_type", f"Expected {' or '.join(kind.types)}."


def _describe_enum(kind: Any) -> _Described:
    named = [json.dumps(option, ensure_ascii=False) for option in kind.options[:MAX_NAMED]]
    more = ", …" if len(kind.options) > MAX_NAMED else ""
    return "unknown_value", f"Expected one of {', '.join(named)}{more}."


def _describe_const(kind: Any) -> _Described:
    return "unknown_value", f"Expected {json.dumps(kind.expected_value, ensure_ascii=False)}."


def _describe_pattern(kind: Any) -> _Described:
    return "invalid_format", f"Must match {kind.pattern}"


def _describe_format(kind: Any) -> _Described:
    return "invalid_format", f"Expected {FORMATS.get(kind.format, kind.format)}."


def _describe_false(_kind: Any) -> _Described:
    return "unknown_field", "Not in the schema."


_DESCRIBED: Mapping[str, Callable[[Any], _Described]] = {
    "type": _describe_type,
    "enum": _describe_enum,
    "const": _describe_const,
    "pattern": _describe_pattern,
    "format": _describe_format,
    "falseSchema": _describe_false,  # Of ``additionalProperties``, without ``properties``
}
_SUBSET_TEXT = dump(SUBSET)


def _find_wrong_references(schema: Mapping[str, Any], pointer: str) -> list[FieldProblem]:
    """Return the references to nothing, and the definitions that refer to themselves."""
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    named: dict[str, set[str]] = {}
    found: list[FieldProblem] = []
    parts = {"": {k: v for k, v in schema.items() if k != "$defs"}}
    parts |= {f"/$defs/{pointer_token(name)}": inner for name, inner in definitions.items()}
    for place, part in parts.items():
        for inner_place, reference in _references(part, place):
            name = reference.removeprefix(DEFINITIONS)
            named.setdefault(place, set()).add(f"/$defs/{name}")
            if name not in definitions:
                reason = "Not in `$defs`."
                found.append(FieldProblem(f"{pointer}{inner_place}", "unknown_reference", reason))
    for place in parts:
        reached, ahead = set[str](), set(named.get(place, ()))
        while ahead:
            reached |= ahead
            ahead = {further for name in ahead for further in named.get(name, ())} - reached
        if place in reached:
            reason = "Refers to itself."
            found.append(FieldProblem(f"{pointer}{place}", "recursive_reference", reason))
    return found


def _references(schema: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield the references in a schema, and where they are."""
    for inner_place, part in _parts(schema, place):
        if "$ref" in part:
            yield f"{inner_place}/$ref", part["$ref"]


def _parts(schema: Any, place: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a schema and each one within it, but for definitions, with their places."""
    ahead = [(place, schema)]
    while ahead:
        at, part = ahead.pop()
        if not isinstance(part, Mapping):
            continue
        yield at, part
        ahead += [(f"{at}/{name}", part.get(name)) for name in ("additionalProperties", "items")]
        named = as_mapping(part.get("properties"))
        ahead += [
            (f"{at}/properties/{pointer_token(name)}", inner) for name, inner in named.items()
        ]


def _part_of_example(value: Any, *, depth: int) -> dict[str, Any]:
    match value:
        case bool():
            return {"type": "boolean"}
        case int() | float():
            return {"type": "number"}  # The next one may have a fraction
        case str():
            return {"type": "string"}
        case Mapping() if depth < MAX_DEPTH // 2 - 1:  # Each level takes two of the schema's
            named = {name: _part_of_example(v, depth=depth + 1) for name, v in value.items()}
            return {"type": "object", "properties": named}
        case list() if depth < MAX_DEPTH // 2 - 1:
            kinds = [_part_of_example(item, depth=depth + 1) for item in value]
            is_alike = bool(kinds) and kinds.count(kinds[0]) == len(kinds)
            return {"type": "array", **({"items": kinds[0]} if is_alike else {})}
        case _:
            return {}


def _roots(
    schema: Mapping[str, Any], definitions: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield a schema and what it refers to at its own level, with their places."""
    yield "", schema
    part, seen = schema, set[str]()
    while isinstance(reference := part.get("$ref"), str):
        name = reference.removeprefix(DEFINITIONS)
        if name in seen:
            return
        seen.add(name)
        part = as_mapping(definitions.get(name))
        yield f"/$defs/{pointer_token(name)}", part


def _is_marked(part: Any, marked: Collection[str]) -> bool:
    return any(
        inner.get(SENSITIVE) is True or str(inner.get("$ref")) in marked
        for _, inner in _parts(part)
    )


def _marked_definitions(definitions: Mapping[str, Any]) -> set[str]:
    """Return the references to definitions that are marked, or refer to one that is."""
    named = {
        f"{DEFINITIONS}{name}": {str(inner.get("$ref")) for _, inner in _parts(part)}
        for name, part in definitions.items()
    }
    marked = {f"{DEFINITIONS}{name}" for name, part in definitions.items() if _is_marked(part, ())}
    ahead = marked
    while ahead:
        ahead = {own for own, others in named.items() if others & ahead} - marked
        marked = marked | ahead
    return marked
