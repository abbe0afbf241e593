"""Which changes of a JSON Schema refuse what was taken before. Pure.

The command ``notify`` has a copy of this module, as of ``type_rules``.
"""

import json
import math
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

MAX_FOUND = 100  # Findings of one schema, and of one text
_MAX_COMPARED = 10_000
"""Pairs of parts of two schemas. Unless they refer in other ways, they have a pair for each part,
of which 32 KB have at most 5,000."""
_ANYTHING: Mapping[str, Any] = {}


def breaking_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], *, confirmed: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield where a schema refuses what another one took: a JSON Pointer, and the reason.

    ``confirmed`` are pointers that are left out.
    """
    found = (change for change in _compare(before, after) if change[0] not in confirmed)
    return islice(found, MAX_FOUND)


class Resolver:
    """Resolves the references of a schema. Each part has one result, which is told by its id."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions = as_mapping(schema.get("$defs"))
        self._resolved: dict[int, Mapping[str, Any]] = {}

    def resolve(self, part: Any) -> Mapping[str, Any]:
        """Return a part together with what it refers to."""
        if "$ref" not in as_mapping(part):
            return as_mapping(part)
        if id(part) not in self._resolved:
            self._resolved[id(part)] = _followed(part, self._definitions)
        return self._resolved[id(part)]


def _followed(schema: Any, definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema together with what it refers to."""
    own: Mapping[str, Any] = _ANYTHING
    for _ in range(len(definitions) + 1):
        if not isinstance(schema, Mapping):
            return own
        reference = schema.get("$ref")
        if reference is None:
            return _joined(schema, own) if own else schema
        beside = {name: value for name, value in schema.items() if name in _COMPARED}
        own = _joined(beside, own)
        schema = definitions.get(str(reference).rpartition("/")[2])
    return own


def _joined(schema: Mapping[str, Any], own: Mapping[str, Any]) -> Mapping[str, Any]:
    joined = {**schema, **own}
    if "properties" in joined:
        both = as_mapping(schema.get("properties")), as_mapping(own.get("properties"))
        joined["properties"] = {**both[0], **both[1]}
    if "required" in joined:
        joined["required"] = [*schema.get("required", ()), *own.get("required", ())]
    return joined


def pointer_token(name: str) -> str:
    """Return a property's name as a token of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else _ANYTHING


_Pair = tuple[Any, Any, str]
"""A part of the old schema, the one in its place, and the place."""


def _compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    # References make a graph of a schema, with more paths than can be walked: each pair of parts
    # is compared at the place that is reached first.
    olds, news = Resolver(before), Resolver(after)
    ahead: deque[_Pair] = deque([(before, after, "")])
    compared = set[tuple[int, int]]()
    while ahead:
        *parts, place = ahead.popleft()
        old, new = olds.resolve(parts[0]), news.resolve(parts[1])
        if not new or (id(old), id(new)) in compared:
            continue
        if len(compared) == _MAX_COMPARED:
            yield place, "There is too much to be compared."
            return
        compared.add((id(old), id(new)))
        values = _values(old)
        types = _types(old) if values is None else frozenset(map(_type_of, values))
        yield from _compare_values(old, new, types, values, place)
        if "object" in types:
            yield from _compare_fields(old, new, place)
        ahead.extend(_inner_pairs(old, new, types, place))


def _inner_pairs(
    old: Mapping[str, Any], new: Mapping[str, Any], types: frozenset[str], place: str
) -> Iterator[_Pair]:
    if "object" in types:
        was, now = as_mapping(old.get("properties")), as_mapping(new.get("properties"))
        other_was, other_now = (each.get("additionalProperties", _ANYTHING) for each in (old, new))
        for name in {**now, **was}:
            pair = was.get(name, other_was), now.get(name, other_now)
            if False not in pair:
                yield (*pair, f"{place}/properties/{pointer_token(name)}")
        if other_was is not False and other_now is not False:
            yield other_was, other_now, f"{place}/additionalProperties"
    if "array" in types:
        yield old.get("items", _ANYTHING), new.get("items"), f"{place}/items"


def _compare_fields(
    old: Mapping[str, Any], new: Mapping[str, Any], place: str
) -> Iterator[tuple[str, str]]:
    required = set(old.get("required", ()))
    for name in dict.fromkeys(new.get("required", ())):
        if name not in required:
            yield f"{place}/properties/{pointer_token(name)}", "It is newly required."
    if new.get("additionalProperties") is False:
        if old.get("additionalProperties") is not False:
            yield f"{place}/additionalProperties", "Other fields are no longer taken."
        for name in as_mapping(old.get("properties")):
            if name not in as_mapping(new.get("properties")):
                yield f"{place}/properties/{pointer_token(name)}", "It is no longer taken."


def _compare_values(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    types: frozenset[str],
    taken: Sequence[Any] | None,
    place: str,
) -> Iterator[tuple[str, str]]:
    if lost := sorted(types - _types(new)):
        yield f"{place}/type", f"{' and '.join(lost)}: no longer taken."
    if (listed := _listed(new)) is not None:
        allowed = set(map(_key, listed))
        if taken is None or any(_key(each) not in allowed for each in taken):
            yield f"{place}/{'const' if 'const' in new else 'enum'}", "Fewer values are taken."
    for limit in _LIMITS:
        if types & limit.types:
            is_whole = limit.is_length or "number" not in types
            was, now = (limit.read(schema, is_whole=is_whole) for schema in (old, new))
            if now[:2] > max(was[:2], limit.of_values(taken)):
                yield f"{place}/{now[2]}", "The limit is stricter."
    for keyword in ("pattern", "format") if "string" in types else ():
        if keyword in new and new[keyword] != old.get(keyword):
            yield f"{place}/{keyword}", "The form of the text is another."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Limit:
    """A lower limit, or an upper one as the lower limit of negative numbers."""

    types: frozenset[str]
    keywords: Sequence[str]
    """The last of two is exclusive."""
    sign: int
    is_length: bool = False

    def read(self, schema: Mapping[str, Any], *, is_whole: bool) -> tuple[float, bool, str]:
        """Return the stricter limit of a schema, whether it is exclusive, and its keyword."""
        least = 0 if self.is_length and self.sign > 0 else -math.inf
        found: tuple[float, bool, str] = (least, False, "")
        for is_exclusive, keyword in enumerate(self.keywords):
            if (given := schema.get(keyword)) is None:
                continue
            limit = self.sign * given
            if is_whole:
                limit = math.floor(limit) + 1 if is_exclusive else math.ceil(limit)
            found = max(found, (limit, bool(is_exclusive) and not is_whole, keyword))
        return found

    def of_values(self, values: Sequence[Any] | None) -> tuple[float, bool]:
        """Return the limit that a list of the only values is."""
        within = [each for each in values or () if _type_of(each) in self.types]
        sizes = [self.sign * (len(each) if self.is_length else each) for each in within]
        return min(sizes, default=-math.inf), False


_TYPES = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))
_NUMBERS, _TEXTS, _LISTS = map(frozenset, (("integer", "number"), ("string",), ("array",)))
_LIMITS = (
    _Limit(types=_NUMBERS, keywords=("minimum", "exclusiveMinimum"), sign=1),
    _Limit(types=_NUMBERS, keywords=("maximum", "exclusiveMaximum"), sign=-1),
    _Limit(types=_TEXTS, keywords=("minLength",), sign=1, is_length=True),
    _Limit(types=_TEXTS, keywords=("maxLength",), sign=-1, is_length=True),
    _Limit(types=_LISTS, keywords=("minItems",), sign=1, is_length=True),
    _Limit(types=_LISTS, keywords=("maxItems",), sign=-1, is_length=True),
)
_COMPARED = frozenset(
    (
        *("type", "enum", "const", "pattern", "format"),
        *("properties", "required", "additionalProperties", "items"),
        *(keyword for limit in _LIMITS for keyword in limit.keywords),
    )
)
"""The keywords that refuse something. Others describe."""


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    named = schema.get("type")
    if named is None:
        return _TYPES
    found = {named} if isinstance(named, str) else set(named)
    return frozenset(found | {"integer"} if "number" in found else found)


def _type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "integer" if value == math.floor(value) else "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case _:
            return "array"


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the only values that a schema takes, None if they are endless."""
    types, listed = _types(schema), _listed(schema)
    if listed is None and types <= {"boolean", "null"}:
        listed = (True, False, None)
    return None if listed is None else [each for each in listed if _type_of(each) in types]


def _listed(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    return (schema["const"],) if "const" in schema else schema.get("enum")


def _key(value: Any) -> str:
    """Return what two values of JSON have in common if they are equal: ``1`` and ``1.0`` are."""
    return json.dumps(_with_integers(value), sort_keys=True)


def _with_integers(value: Any) -> Any:
    if isinstance(value, float):
        return int(value) if value == math.floor(value) else value
    if isinstance(value, list):
        return [_with_integers(each) for each in value]
    if isinstance(value, Mapping):
        return {name: _with_integers(each) for name, each in value.items()}
    return value
