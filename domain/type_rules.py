"""What is worth a second look in a type with its texts, though the service takes it. Pure.

The service runs these rules for ``POST /type-files/lint``. The command ``notify lint`` has a copy
of this module, and runs them without a server. ``docs/reference/lint.md`` describes each.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
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
_HTML = "_html"
_ROOTS = ("subject", "body")
"""Every other part that is missing is made of these, in the same language."""
_LIQUID = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_INSECURE = re.compile(
    r"""(?<!xmlns=["'])(?<!PUBLIC ["'])\bhttp://(?!www\.w3\.org/)[^\s"'<>{})\]]+"""
)
_IMAGE = re.compile(r"<img\b([^<>]*)>", re.IGNORECASE)
_ALT = re.compile(r"""(?:^|[\s"'])alt(?=[\s=/]|$)""", re.IGNORECASE)
_OPT_OUT = re.compile(r"\bSTOP\b", re.IGNORECASE)
_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")
_ANY: Mapping[str, Any] = {"type": "object"}
_MAX_LOOPS, _MAX_OUTPUT = 1_000, 256 * 1024
_MAX_DEPTH = 40  # Levels of two schemas that are compared, through references
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
                for finding in _check_text(definition, texts, part, source)
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
            detail=f"{reason} Requests that were right until now would be refused.",
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
    recipient = {"name": "Ada Lovelace", "locale": "en", "timezone": "UTC"}
    try:
        text = bound.render(**{**definition.get("example_data", {}), "recipient": recipient})
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
            if used.segments[0] in SUPPLIED:
                continue
            is_known = (
                _is_in_example(used, example)
                if schema is None
                else _is_in_schema(used, schema, schema.get("$defs", {}))
            )
            if not is_known:
                line = _line(source, used.span.index)
                yield _finding(Rule.UNKNOWN_VARIABLE, f"The {place} has no '{used}'.", line)


def _is_in_example(used: Variable, example: Any) -> bool:
    value = example
    for segment in used.segments:
        if not isinstance(segment, str) or not isinstance(value, Mapping):
            return True
        if segment not in value:
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
        properties, others = here.get("properties"), here.get("additionalProperties")
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
    """Return a schema in place of a reference to it."""
    for _ in range(len(definitions) + 1):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            break
        schema = definitions.get(str(schema["$ref"]).rpartition("/")[2], {})
    return schema if isinstance(schema, Mapping) else {}


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
    plain = _LIQUID.sub(lambda found: "x" * len(found[0]), source)
    for image in _IMAGE.finditer(plain):
        if not _ALT.search(image[1]):
            reason = 'An image has no alt. If it only decorates, write alt="".'
            yield _finding(Rule.IMAGE_WITHOUT_TEXT, reason, _line(source, image.start()))


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
    definitions = before.get("$defs", {}), after.get("$defs", {})
    yield from _compare(before, after, definitions, "", _MAX_DEPTH)


def _compare(
    before: Any, after: Any, definitions: tuple[Any, Any], place: str, depth: int
) -> Iterator[tuple[str, str]]:
    old, new = (
        _followed(each, own) for each, own in zip((before, after), definitions, strict=True)
    )
    if not depth or old == new:
        return
    yield from _compare_values(old, new, place)
    properties = new.get("properties", {})
    for name in new.get("required", ()):
        if name not in old.get("required", ()):
            yield f"{place}/properties/{name}", "It is newly required."
    if new.get("additionalProperties") is False and old.get("additionalProperties") is not False:
        yield f"{place}/additionalProperties", "Other fields are no longer taken."
    for name, inner in old.get("properties", {}).items():
        if name in properties:
            at = f"{place}/properties/{name}"
            yield from _compare(inner, properties[name], definitions, at, depth - 1)
        elif new.get("additionalProperties") is False:
            yield f"{place}/properties/{name}", "It is no longer taken."
    for keyword in ("items", "additionalProperties"):
        if isinstance(new.get(keyword), Mapping):
            at = f"{place}/{keyword}"
            yield from _compare(old.get(keyword, {}), new[keyword], definitions, at, depth - 1)


def _compare_values(
    old: Mapping[str, Any], new: Mapping[str, Any], place: str
) -> Iterator[tuple[str, str]]:
    if lost := sorted(_types(old) - _types(new)):
        yield f"{place}/type", f"{' and '.join(lost)}: no longer taken."
    allowed, taken = _values(new), _values(old)
    if allowed is not None and (taken is None or any(each not in allowed for each in taken)):
        yield f"{place}/{'enum' if 'enum' in new else 'const'}", "Fewer values are taken."
    for keywords, is_stricter in ((_LOWER, _is_more), (_UPPER, _is_less)):
        for keyword in keywords:
            if is_stricter(new.get(keyword), old.get(keyword)):
                yield f"{place}/{keyword}", "The limit is stricter."
    for keyword in ("pattern", "format"):
        if keyword in new and new[keyword] != old.get(keyword):
            yield f"{place}/{keyword}", "The form of the text is another."


_TYPES = frozenset(("string", "integer", "number", "boolean", "object", "array", "null"))


def _types(schema: Mapping[str, Any]) -> frozenset[str]:
    named = schema.get("type")
    if named is None:
        return _TYPES
    found = {named} if isinstance(named, str) else set(named)
    return frozenset(found | {"integer"} if "number" in found else found)


def _values(schema: Mapping[str, Any]) -> list[Any] | None:
    """Return the values that a schema takes, None if it doesn't list them."""
    if "const" in schema:
        return [schema["const"]]
    return schema.get("enum")


def _is_more(new: float | None, old: float | None) -> bool:
    return new is not None and (old is None or new > old)


def _is_less(new: float | None, old: float | None) -> bool:
    return new is not None and (old is None or new < old)
