"""What is worth a second look in a type with its texts, though the service takes it. Pure.

The service runs these rules for ``POST /type-files/lint``. The command ``notify lint`` has a copy
of this module, and runs them without a server. ``docs/reference/lint.md`` describes each.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import Any

from liquid import BoundTemplate, Environment
from liquid.exceptions import LiquidError
from liquid.static_analysis import Variable

from .schema_changes import MAX_FOUND, Resolver, as_mapping, breaking_changes
from .sms import encode

OWN_LANGUAGE = "default"
CLIPPED_BYTES = 102 * 1024
"""Gmail shows no more of an email, and hides the link to unsubscribe at its end."""
PUSH_TITLE, PUSH_TEXT = 65, 178
"""Characters that a locked phone shows: a title in one line, and a text in four."""
SUPPLIED = frozenset(
    ("recipient", "brand", "digest", "start_time", "hours_until_start", "minutes_until_start")
)
"""Variables that the service adds to a request's."""
LIQUID_PROPERTIES = frozenset(("size", "first", "last"))
"""What Liquid has for each list and text."""
EXAMPLE_RECIPIENT = {"name": "Ada Lovelace", "locale": "en", "timezone": "UTC"}
"""The recipient's fields that templates may use; documented in docs/guides/templates.md."""
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
_MAX_LOOPS, _MAX_OUTPUT = 1_000, 256 * 1024
Parts = Mapping[str, Mapping[str, str]]
"""Texts by language and part."""


class Rule(StrEnum):
    """The rules, by the code of what they find."""

    SYNTAX = "syntax"
    UNKNOWN_VARIABLE = "unknown_variable"
    UNKNOWN_TRANSLATION = "unknown_translation"
    MISSING_TRANSLATION = "missing_translation"
    MISSING_PLURAL_FORM = "missing_plural_form"
    LONG_PUSH = "long_push"
    LONG_SMS = "long_sms"
    LARGE_HTML = "large_html"
    INSECURE_LINK = "insecure_link"
    IMAGE_WITHOUT_TEXT = "image_without_text"
    OPT_OUT_MISSING = "opt_out_missing"
    BREAKING_SCHEMA = "breaking_schema"
    LOW_CONTRAST = "low_contrast"
    UNUSED = "unused"


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


def find_in_source(source: str, *, is_html: bool, pointer: str) -> list[Finding]:
    """Return what the rules find in a text whose variables aren't known."""
    found = [*_find_links(source), *(_check_html(source) if is_html else ())]
    if isinstance(fault := _parsed(source), str):
        found.append(_finding(Rule.SYNTAX, fault))
    return [replace(finding, pointer=pointer) for finding in found[:MAX_FOUND]]


def find_breaking(
    before: Mapping[str, Any], after: Mapping[str, Any], *, confirmed: Collection[str] = ()
) -> list[Finding]:
    """Return where a definition refuses data that the one before took.

    ``confirmed`` are pointers into the schema that are left out.
    """
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
        for place, reason in breaking_changes(old, new, confirmed=confirmed)
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
    resolver = Resolver(as_mapping(schema))
    for uses in bound.analyze(include_partials=False).globals.values():
        for used in dict.fromkeys(uses):
            first = used.segments[0]
            # The name itself may be the value of a variable, as in {{ [name] }}.
            if not isinstance(first, str) or first in SUPPLIED:
                continue
            is_known = (
                is_in_example(used, example)
                if schema is None
                else _is_in_schema(used, schema, resolver)
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
            return value is not example and segment in LIQUID_PROPERTIES
        value = value[segment]
    return True


def _is_in_schema(used: Variable, schema: Any, resolver: Resolver) -> bool:
    here = schema
    for depth, segment in enumerate(used.segments):
        here = resolver.resolve(here)
        if isinstance(segment, int):
            here = here.get("items", {})
            continue
        others = here.get("additionalProperties")
        properties = as_mapping(here["properties"]) if "properties" in here else None
        if not isinstance(segment, str) or (properties is None and others is not False):
            return True
        if properties is not None and segment in properties:
            here = properties[segment]
        elif isinstance(others, Mapping):
            here = others
        else:
            return depth > 0 and segment in LIQUID_PROPERTIES
    return True


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
