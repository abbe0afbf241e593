"""What is worth a second look in a type with its texts, though the service takes it. Pure.

The service runs these rules for ``POST /type-files/lint``. The command ``notify lint`` has a copy
of this module, and runs them without a server. ``docs/reference/lint.md`` describes each.
"""

import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any

from liquid import BoundTemplate, Environment
from liquid.exceptions import LiquidError
from liquid.static_analysis import Variable

from .sms import encode

OWN_LANGUAGE = "default"
CLIPPED_BYTES = 102 * 1024
"""Gmail shows no more of an email, and hides the link to unsubscribe at its end."""
PUSH_TITLE, PUSH_TEXT = 65, 178
"""Characters that a locked phone shows: a title in one line, and a text in four."""
SUPPLIED = frozenset(
    ("recipient", "digest", "start_time", "hours_until_start", "minutes_until_start")
)
"""Variables that the service adds to a request's."""
PROPERTIES = frozenset(("size", "first", "last"))
"""What Liquid has for each list and text."""
EXAMPLE_RECIPIENT = {"name": "Ada Lovelace", "locale": "en", "timezone": "UTC"}
"""The recipient's fields that templates may use; documented in docs/guides/templates.md."""
MAX_FOUND = 100  # Findings of one text, and of one schema
_HTML = "_html"
_ROOTS = ("subject", "body")
"""Every other part that is missing is made of these, in the same language."""
_OPENING = re.compile(r"\{(?=([{%]))")
_CLOSING = {"{": "}}", "%": "%}"}
_INSECURE = re.compile(
    r"""(?<!xmlns=["'])(?<!PUBLIC ["'])\bhttp://(?!www\.w3\.org/)[^\s"'<>{})\]]+"""
)
_IMAGE = re.compile(r"<img\b([^<>]*)>", re.IGNORECASE)
_ALT = re.compile(r"""(?:^|[\s"'])alt(?=[\s=/]|$)""", re.IGNORECASE)
_OPT_OUT = re.compile(r"\bSTOP\b", re.IGNORECASE)
_ANY: Mapping[str, Any] = {"type": "object"}
_ANYTHING: Mapping[str, Any] = {}
_MAX_LOOPS, _MAX_OUTPUT = 1_000, 256 * 1024
_MAX_COMPARED = 10_000
"""Pairs of parts of two schemas. Unless they refer in other ways, they have a pair for each part,
of which 32 KB have at most 5,000."""
Parts = Mapping[str, Mapping[str, str]]
"""Texts by language and part."""


class Rule(StrEnum):
    """The rules, by the code of what they find."""

    SYNTAX = "syntax"
    UNKNOWN_VARIABLE = "unknown_variable"
    MISSING_TRANSLATION = "missing_translation"
    LONG_PUSH = "long_push"
    LONG_SMS = "long_sms"
    LARGE_HTML = "large_html"
    INSECURE_LINK = "insecure_link"
    IMAGE_WITHOUT_TEXT = "image_without_text"
    OPT_OUT_MISSING = "opt_out_missing"
    BREAKING_SCHEMA = "breaking_schema"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a rule found. ``pointer`` is the place in the type as ``/type-files`` has it."""

    code: str
    pointer: str
    detail: str
    line: int | None = None

    @property
    def text(self) -> str:
        """The detail, after the line if known."""
        return self.detail if self.line is None else f"Line {self.line}: {self.detail}"


class _Environment(Environment):
    loop_iteration_limit = _MAX_LOOPS
    output_stream_limit = _MAX_OUTPUT


_ENVIRONMENT = _Environment(strict_filters=False)
"""It knows no filter of the service's own, and leaves what one would change as it is."""


def find(
    definition: Mapping[str, Any], parts: Parts, *, published: Mapping[str, Any] | None = None
) -> list[Finding]:
    """Return what the rules find in a type.

    ``definition`` and ``parts`` are those of ``/type-files``. ``published`` is the definition that
    the service has now, None if the type is new or it isn't known.
    """
    found: list[Finding] = []
    for language, texts in parts.items():
        for part, source in texts.items():
            pointer = f"/parts/{language}/{part}"
            found += [
                replace(finding, pointer=pointer)
                for finding in islice(_check_text(definition, texts, part, source), MAX_FOUND)
            ]
    found += _find_untranslated(parts)
    return found if published is None else [*found, *find_breaking(published, definition)]


def find_breaking(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Finding]:
    """Return where a definition refuses data that the one before took."""
    old, new = before.get("schema") or _ANY, after.get("schema") or _ANY
    if after.get("schema_mode", "reject") != "reject":
        return []
    if before.get("schema_mode", "reject") != "reject":
        old = _ANY  # It refused nothing
    return [
        Finding(
            code=Rule.BREAKING_SCHEMA,
            pointer=f"/definition/schema{place}",
            detail=f"{reason} Requests that were right until now may be refused.",
        )
        for place, reason in breaking_changes(old, new)
    ]


def _check_text(
    definition: Mapping[str, Any], texts: Mapping[str, str], part: str, source: str
) -> Iterator[Finding]:
    yield from _find_links(source)
    if part.endswith(_HTML):
        yield from _check_html(source)
    bound = _parsed(source)
    if isinstance(bound, str):
        yield _finding(Rule.SYNTAX, bound)
        return
    yield from _find_unknown(definition, bound, source)
    check = _LENGTHS.get(part)
    if part == "body" and "push" in definition.get("channels", ()) and "push" not in texts:
        check = _check_push_text
    elif part == "subject" and "push" in definition.get("channels", ()):
        check = None if "push_title" in texts else _check_push_title
    if check is not None and (text := _filled(bound, definition)) is not None:
        yield from check(definition, text)


def _finding(code: Rule, detail: str, line: int | None = None) -> Finding:
    return Finding(code=code, pointer="", detail=detail, line=line)


@lru_cache(maxsize=2_048)
def _parsed(source: str) -> BoundTemplate | str:
    """Return a parsed text, or why it can't be parsed."""
    try:
        return _ENVIRONMENT.from_string(source)
    except (LiquidError, RecursionError) as error:
        return f"{str(getattr(error, 'message', error)).strip().capitalize()}."


def _filled(bound: BoundTemplate, definition: Mapping[str, Any]) -> str | None:
    """Return a text with the example data, None if that fails."""
    try:
        text = bound.render(
            **{**definition.get("example_data", {}), "recipient": EXAMPLE_RECIPIENT}
        )
    except (LiquidError, ArithmeticError, TypeError, ValueError, RecursionError):
        return None
    return text.strip()


def _line(source: str, index: int) -> int:
    return source.count("\n", 0, index) + 1


def _find_unknown(
    definition: Mapping[str, Any], bound: BoundTemplate, source: str
) -> Iterator[Finding]:
    schema, example = definition.get("schema"), definition.get("example_data", {})
    place = "example data" if schema is None else "schema"
    for uses in bound.analyze(include_partials=False).globals.values():
        for used in dict.fromkeys(uses):
            first = used.segments[0]
            # The name itself may be the value of a variable, as in {{ [name] }}.
            if not isinstance(first, str) or first in SUPPLIED:
                continue
            is_known = (
                is_in_example(used, example)
                if schema is None
                else _is_in_schema(used, schema, _mapping(schema.get("$defs")))
            )
            if not is_known:
                line = _line(source, used.span.index)
                yield _finding(Rule.UNKNOWN_VARIABLE, f"The {place} has no '{used}'.", line)


def is_in_example(used: Variable, example: Any) -> bool:
    """Return whether example data has a variable. Items of lists aren't checked."""
    value = example
    for segment in used.segments:
        if not isinstance(segment, str) or not isinstance(value, Mapping):
            return True
        if segment not in value:
            # Liquid's own properties of an object.
            return value is not example and segment in PROPERTIES
        value = value[segment]
    return True


def _is_in_schema(used: Variable, schema: Any, definitions: Mapping[str, Any]) -> bool:
    here = schema
    for depth, segment in enumerate(used.segments):
        here = _followed(here, definitions)
        if isinstance(segment, int):
            here = here.get("items", {})
            continue
        others = here.get("additionalProperties")
        properties = _mapping(here["properties"]) if "properties" in here else None
        if not isinstance(segment, str) or (properties is None and others is not False):
            return True
        if properties is not None and segment in properties:
            here = properties[segment]
        elif isinstance(others, Mapping):
            here = others
        else:
            return depth > 0 and segment in PROPERTIES
    return True


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
        both = _mapping(schema.get("properties")), _mapping(own.get("properties"))
        joined["properties"] = {**both[0], **both[1]}
    if "required" in joined:
        joined["required"] = [*schema.get("required", ()), *own.get("required", ())]
    return joined


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else _ANYTHING


def _find_untranslated(parts: Parts) -> Iterator[Finding]:
    own = parts.get(OWN_LANGUAGE, {})
    for language in parts:
        wider = parts.get(language.partition("-")[0], {})
        for part in own if language != OWN_LANGUAGE else ():
            if part not in parts[language] and part not in wider:
                shown = "that of the default language" if part in _ROOTS else "one made of the body"
                yield Finding(
                    code=Rule.MISSING_TRANSLATION,
                    pointer=f"/parts/{language}/{part}",
                    detail=f"{language} has no such text: {shown} is used.",
                )


def _find_links(source: str) -> Iterator[Finding]:
    for found in _INSECURE.finditer(source):
        detail = f"{found[0]} isn't https: it can be read and changed on its way."
        yield _finding(Rule.INSECURE_LINK, detail, _line(source, found.start()))


def _check_html(source: str) -> Iterator[Finding]:
    if (size := len(source.encode())) > CLIPPED_BYTES:
        reason = f"It has {size // 1024} KB. Gmail cuts an email at 102 KB, with its last links."
        yield _finding(Rule.LARGE_HTML, reason)
    for image in _IMAGE.finditer(_without_liquid(source)):
        if not _ALT.search(image[1]):
            reason = 'An image has no alt. If it only decorates, write alt="".'
            yield _finding(Rule.IMAGE_WITHOUT_TEXT, reason, _line(source, image.start()))


def _without_liquid(source: str) -> str:
    """Return a source with its outputs and tags masked, in one pass."""
    pieces: list[str] = []
    unclosed = set[str]()
    at = 0
    for opening in _OPENING.finditer(source):
        start, closing = opening.start(), _CLOSING[opening[1]]
        if start < at or closing in unclosed:
            continue
        end = source.find(closing, start + 2)
        if end < 0:
            unclosed.add(closing)
            continue
        pieces += [source[at:start], "x" * (end + 2 - start)]
        at = end + 2
    return "".join((*pieces, source[at:]))


def _check_push_title(_definition: Mapping[str, Any], text: str) -> Iterator[Finding]:
    yield from _check_push(text, PUSH_TITLE, "title")


def _check_push_text(_definition: Mapping[str, Any], text: str) -> Iterator[Finding]:
    yield from _check_push(text, PUSH_TEXT, "text")


def _check_push(text: str, limit: int, what: str) -> Iterator[Finding]:
    if len(text) > limit:
        reason = f"{len(text)} characters with the example data: phones show {limit} of a {what}."
        yield _finding(Rule.LONG_PUSH, reason)


def _check_sms(definition: Mapping[str, Any], text: str) -> Iterator[Finding]:
    encoded = encode(text)
    if encoded.units > 1:
        reason = f"{encoded.units} parts with the example data, each of which is paid for."
        yield _finding(Rule.LONG_SMS, reason)
    if definition.get("category") == "marketing" and not _OPT_OUT.search(text):
        reason = "A marketing SMS says how to opt out, such as: Reply STOP to opt out."
        yield _finding(Rule.OPT_OUT_MISSING, reason)


_LENGTHS: Mapping[str, Callable[[Mapping[str, Any], str], Iterator[Finding]]] = {
    "push_title": _check_push_title,
    "push": _check_push_text,
    "sms": _check_sms,
}


def breaking_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield where a schema refuses what another one took: a JSON Pointer, and the reason."""
    return islice(_compare(before, after), MAX_FOUND)


class _Resolver:
    """Resolves the references of a schema. Each part has one result, which is told by its id."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._definitions = _mapping(schema.get("$defs"))
        self._resolved: dict[int, Mapping[str, Any]] = {}

    def resolve(self, part: Any) -> Mapping[str, Any]:
        if "$ref" not in _mapping(part):
            return _mapping(part)
        if id(part) not in self._resolved:
            self._resolved[id(part)] = _followed(part, self._definitions)
        return self._resolved[id(part)]


_Pair = tuple[Any, Any, str]
"""A part of the old schema, the one in its place, and the place."""


def _compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    # References make a graph of a schema, with more paths than can be walked: each pair of parts
    # is compared at the place that is reached first.
    olds, news = _Resolver(before), _Resolver(after)
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
        was, now = _mapping(old.get("properties")), _mapping(new.get("properties"))
        other_was, other_now = (each.get("additionalProperties", _ANYTHING) for each in (old, new))
        for name in {**now, **was}:
            pair = was.get(name, other_was), now.get(name, other_now)
            if False not in pair:
                yield (*pair, f"{place}/properties/{name}")
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
            yield f"{place}/properties/{name}", "It is newly required."
    if new.get("additionalProperties") is False:
        if old.get("additionalProperties") is not False:
            yield f"{place}/additionalProperties", "Other fields are no longer taken."
        for name in _mapping(old.get("properties")):
            if name not in _mapping(new.get("properties")):
                yield f"{place}/properties/{name}", "It is no longer taken."


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
