"""The fields of an item of the design, each with a text as its value.

A field's name is the JSON pointer of its value within a change, without the first slash. So a
problem of the API's own check leads to its field, and a new field of brands is one of the form.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from domain.channels import Channel
from domain.stored import struct_from_stored
from notifications.catalog.designs import MAX_ACCOUNTS, BrandRequest, Kind, TextKind
from notifications.content.design_changes import find_faults_of_texts
from notifications.content.templates import DEFAULT_LANGUAGE
from notifications.validation import FieldProblem, ProblemCollector, check_storable
from providers import accounts

from ..texts.labels import CHANNELS, code_label
from ..types.preview import language_name

BRAND, TEXTS, HTML = "brand", "texts", "html"
"""First parts of the names of the fields of each kind."""
MAX_NAMED = 20
"""Faults of translations that are shown at once."""
LAYOUT_FIELD = f"{BRAND}/layout"
ACCOUNTS = f"{BRAND}/accounts"
SENDER = "sender"
LONG_TEXT = 400
"""A text that may be longer gets an input of several lines."""
TEXT_LABELS = {
    TextKind.HTML: ("HTML", "In HTML parts, and in layouts."),
    TextKind.TEXT: ("Text", "In every other part, such as a push."),
}
_LABELS = {
    "from": "From",
    "logo/url": "Address of the image",
    "logo/dark_url": "Address in dark mode",
    "logo/width": "Width",
    "surface": "Card",
    "muted": "Quiet text",
    "on_accent": "On the accent",
}
_NOTES = {
    "name": "What recipients read.",
    "logo/url": "https, as PNG, JPEG, or GIF. Empty: emails begin with the name.",
    "logo/dark_url": "Where the mail program can choose. Empty: the same one.",
    "layout": "The frame of its emails, unless their type has one.",
    "from": "The sender of its emails. Empty: the installation's.",
    "reply_to": "Of messages that have none. Empty: the sender.",
    "background": "Around the card",
    "surface": "Behind the text",
    "text": "Headings and paragraphs",
    "muted": "The name above the card, and the footer",
    "accent": "Links, and behind the label of a button",
    "on_accent": "The label of a button",
}
_REQUIRED = re.compile(r"missing required field `(\w+)`")
_PLACE = re.compile(r" - at `\$(.*)`\Z", re.DOTALL)
"""The place in msgspec's message of what a structure refuses."""
T = TypeVar("T")


class Control(StrEnum):
    """The input of a field."""

    LINE = "line"
    LINES = "lines"
    URL = "url"
    NUMBER = "number"
    COLOUR = "colour"
    LAYOUT = "layout"
    NAMES = "names"
    """Several, separated by commas."""
    SOURCE = "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field, and how it is entered."""

    name: str
    label: str
    note: str = ""
    control: Control = Control.LINE
    expected: str = ""
    """What to enter, if a value of this field has another form."""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Attributes of the input, such as ``maxlength``."""
    default: str = ""

    @property
    def group(self) -> str:
        """What of a brand it belongs to: ``colours/light``; empty: the brand itself."""
        place = self.name.removeprefix(f"{BRAND}/")
        return SENDER if place in ("from", "reply_to") else place.rpartition("/")[0]


@cache
def brand_fields() -> tuple[Field, ...]:
    """Return the fields of a brand, in the order of the API."""
    return (*_leaves(_struct(inspect.type_info(BrandRequest)), ()), *_accounts())


def fields_of(kind: Kind, values: Mapping[str, str]) -> tuple[Field, ...]:
    """Return the fields of an item with these values, which name the languages of a partial."""
    if kind is Kind.BRAND:
        return brand_fields()
    if kind is Kind.LAYOUT:
        return (Field(name=HTML, label="HTML", control=Control.SOURCE),)
    if kind is Kind.TRANSLATION:
        return (Field(name=TEXTS, label="Texts", control=Control.SOURCE),)
    return tuple(
        Field(
            name=text_name(language, text_kind),
            label=label,
            note=note,
            control=Control.SOURCE,
        )
        for language in languages_of(values)
        for text_kind, (label, note) in TEXT_LABELS.items()
    )


def label_of(kind: Kind, name: str, values: Mapping[str, str]) -> str:
    """Return what a field is called outside of its form."""
    label = next((f.label for f in fields_of(kind, values) if f.name == name), code_label(name))
    group = name.split("/")[1:-1]
    if kind is Kind.PARTIAL:
        code = name.split("/")[1]
        language = language_name(code) if code else "New language"
        return f"{label}, {language}" if group else language
    return label if not group else f"{' '.join(group).capitalize()}: {label.lower()}"


def text_name(language: str, text_kind: TextKind) -> str:
    """Return the name of the field of a partial's text."""
    return f"{TEXTS}/{language}/{text_kind}"


def languages_of(values: Mapping[str, str]) -> list[str]:
    """Return the languages of a partial's values, the default first."""
    found = (name.split("/")[1] for name in values if name.startswith(f"{TEXTS}/"))
    return [*dict.fromkeys([DEFAULT_LANGUAGE, *found])]


def normal(text: str) -> str:
    """Return a text as a browser returns it."""
    return text.replace("\r\n", "\n").strip("\n")


def values_of(kind: Kind, content: Any) -> dict[str, str]:
    """Return the texts of an item's fields. ``content`` None: of a new one."""
    return {name: normal(text) for name, text in _raw_values(kind, content).items()}


def content_of(
    kind: Kind, values: Mapping[str, str], *, before: Any
) -> tuple[Any, list[FieldProblem]]:
    """Return the item with these values, and what has not the form that its fields need.

    What is as ``before`` keeps its exact text, and what the form doesn't know of a brand is kept.
    """
    raw = _raw_values(kind, before)
    given = {
        **raw,
        **{
            name: raw[name] if name in raw and normal(raw[name]) == text else text
            for name, text in values.items()
        },
    }
    if kind is Kind.LAYOUT:
        return given[HTML], []
    if kind is Kind.TRANSLATION:
        return _translations_of(given[TEXTS], before)
    if kind is Kind.PARTIAL:
        texts: dict[str, dict[str, str]] = {}
        for name, text in given.items():
            _, language, text_kind = name.split("/")
            if text.strip():
                texts.setdefault(language, {})[text_kind] = text
        return texts, []
    return _brand_of(given)


def field_for(pointer: str, fields: Sequence[Field]) -> str | None:
    """Return the name of the field that a problem is about, None if it is about none."""
    place = pointer.removeprefix("/")
    known = (f.name for f in fields if place == f.name or place.startswith(f"{f.name}/"))
    return max(known, key=len, default=None)


def detail_of(kind: Kind, problem: FieldProblem) -> str:
    """Return what a problem says, with the key if its field has many texts."""
    place = problem.pointer.removeprefix(f"/{TEXTS}/")
    if kind is not Kind.TRANSLATION or place == problem.pointer:
        return problem.detail
    return f"{place.replace('/', '.')}: {problem.detail}"


def _raw_values(kind: Kind, content: Any) -> dict[str, str]:
    if kind is Kind.LAYOUT:
        return {HTML: content or ""}
    if kind is Kind.TRANSLATION:
        return {TEXTS: json.dumps(content or {}, indent=2, ensure_ascii=False)}
    if kind is Kind.PARTIAL:
        stored = content or {}
        return {
            text_name(language, text_kind): stored.get(language, {}).get(text_kind, "")
            for language in dict.fromkeys([DEFAULT_LANGUAGE, *stored])
            for text_kind in TextKind
        }
    complete = struct_from_stored(BrandRequest, content or {"name": "-"})
    known = dict(_flat(msgspec.to_builtins(complete), BRAND))
    if content is None:
        known[f"{BRAND}/name"] = ""
    return {f.name: f.default for f in brand_fields()} | known


def _flat(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flat(inner, f"{place}/{name}")
    elif isinstance(value, list):
        yield place, ", ".join(map(str, value))
    elif value is not None:
        yield place, str(value)


def _brand_of(given: Mapping[str, str]) -> tuple[Any, list[FieldProblem]]:
    """Return a brand, with each value of a wrong form left out and named."""
    fields, problems = brand_fields(), list[FieldProblem]()
    by_name = {f.name: f for f in fields}
    left = {name: text for name, text in given.items() if text.strip()}
    if not any(left.get(f"{BRAND}/logo/{name}") for name in ("url", "dark_url")):
        left = {name: text for name, text in left.items() if not name.startswith(f"{BRAND}/logo/")}
    for _ in range(len(fields) + 1):
        try:
            brand = msgspec.convert(_nested(left)[BRAND], BrandRequest, strict=False)
        except msgspec.ValidationError as refused:
            place = _place_of(str(refused))
            name = field_for(place, fields)
            # msgspec doesn't say by which key of a dictionary a value is.
            refused_names = [name] if name else [n for n in left if n.startswith(f"{ACCOUNTS}/")]
            for each in refused_names:
                left.pop(each, None)
                if _REQUIRED.search(str(refused)):
                    left[each] = "-"
                expected = by_name[each].expected if each in by_name else str(refused)
                problems.append(FieldProblem(f"/{each}", "wrong_type", expected))
        else:
            return msgspec.to_builtins(brand), problems
    raise AssertionError("each refused field was left out")


def _translations_of(text: str, before: Any) -> tuple[Any, list[FieldProblem]]:
    """Return texts by name, or those before and what is wrong with the ones that are given."""
    pointer = f"/{TEXTS}"
    try:
        texts = json.loads(text, object_pairs_hook=_unique)
        problems = [*islice(find_faults_of_texts(texts, pointer=pointer), MAX_NAMED)]
    except json.JSONDecodeError as error:
        reason = f"Line {error.lineno}, column {error.colno}: this is no JSON."
        problems = [FieldProblem(pointer, "malformed", reason)]
    except ValueError as error:
        problems = [FieldProblem(pointer, "duplicate", str(error))]
    except RecursionError:
        problems = [FieldProblem(pointer, "too_deep", "It is nested too deeply.")]
    if not problems:
        found = ProblemCollector()
        check_storable(texts, pointer, found, in_data=False)
        problems = found.problems[:MAX_NAMED]
    return (before or {}, problems) if problems else (texts, [])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is named twice.")
    return found


def _place_of(message: str) -> str:
    found, required = _PLACE.search(message), _REQUIRED.search(message)
    path = re.sub(r"\[(\d+)\]", r".\1", found[1]) if found else ""
    names = [BRAND, *filter(None, path.split(".")), *([required[1]] if required else [])]
    return "/".join(names)


def _nested(values: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {BRAND: {}}
    for name, text in values.items():
        *path, last = name.split("/")
        inner = found
        for part in path:
            inner = inner.setdefault(part, {})
        is_list = name.startswith(f"{ACCOUNTS}/")
        inner[last] = [*filter(None, map(str.strip, text.split(",")))] if is_list else text
    return found


def _struct(info: inspect.Type) -> inspect.StructType:
    found = _found(info, inspect.StructType)
    if found is None:
        raise AssertionError("a brand is a structure")
    return found


def _found(info: inspect.Type, wanted: type[T]) -> T | None:
    """Return the type of this kind in an annotated or optional one."""
    if isinstance(info, wanted):
        return info
    if isinstance(info, inspect.Metadata):
        return _found(info.type, wanted)
    if isinstance(info, inspect.UnionType):
        return next((f for each in info.types if (f := _found(each, wanted))), None)
    return None


def _leaves(struct: inspect.StructType, path: tuple[str, ...]) -> Iterator[Field]:
    for each in struct.fields:
        place = (*path, each.encode_name)
        inner = _found(each.type, inspect.StructType)
        if inner is not None:
            yield from _leaves(inner, place)
        elif (leaf := _leaf(each, "/".join(place))) is not None:
            yield leaf


def _accounts() -> Iterator[Field]:
    """Yield a field for the accounts of each channel that has an order of them."""
    for channel in filter(accounts.has_order, Channel):
        yield Field(
            name=f"{ACCOUNTS}/{channel}",
            label=CHANNELS[channel],
            note="Names in the order of failover, with commas. Empty: those of the installation.",
            control=Control.NAMES,
            expected=f"Enter up to {MAX_ACCOUNTS} names of accounts, with commas.",
        )


def _leaf(info: inspect.Field, place: str) -> Field | None:
    last = place.rpartition("/")[2]
    described = info.type.extra_json_schema if isinstance(info.type, inspect.Metadata) else None
    label = _LABELS.get(place) or _LABELS.get(last) or code_label(last)
    note = _NOTES.get(place) or _NOTES.get(last) or (described or {}).get("description", "")
    shared: dict[str, Any] = {"name": f"{BRAND}/{place}", "label": label, "note": note}
    number, text = _found(info.type, inspect.IntType), _found(info.type, inspect.StrType)
    if number is not None:
        limits = {"min": number.ge, "max": number.le}
        expected = f"Enter a number from {number.ge} to {number.le}."
        return Field(
            **shared,
            control=Control.NUMBER,
            limits=limits,
            expected=expected,
            default=str(info.default),
        )
    if text is None:
        return None
    limits = {"maxlength": text.max_length} if text.max_length else {}
    if text.pattern is not None:
        expected = "Enter # and six digits, such as #4f46e5."
        return Field(**shared, control=Control.COLOUR, expected=expected)
    expected = f"Enter 1 to {text.max_length} characters."
    control = Control.LINE
    if f"{BRAND}/{place}" == LAYOUT_FIELD:
        control = Control.LAYOUT
    elif last.endswith("url"):
        control = Control.URL
    elif (text.max_length or 0) > LONG_TEXT:
        control = Control.LINES
    return Field(**shared, control=control, limits=limits, expected=expected)
