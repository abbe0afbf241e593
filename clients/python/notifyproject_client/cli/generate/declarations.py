"""The types of a programming language that the schemas of notification types need.

The service says what is wrong with a schema, and checks what languages have no types for, such as
patterns and limits. Here, what has no meaning is a value of any type.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..files import Content

Literal = str | int | bool | None
SIMPLE = ("string", "integer", "number", "boolean", "null")
ANY = "any"
_REFERENCE = "#/$defs/"
_WORD = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Simple:
    """One of JSON's types, by its name in JSON Schema; ``any`` for every value."""

    name: str


@dataclass(frozen=True, slots=True)
class OneOf:
    """The values that a schema lists."""

    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """An array."""

    item: "Shape"


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with any names."""

    value: "Shape"


@dataclass(frozen=True, slots=True)
class Either:
    """A value of one of several shapes."""

    shapes: tuple["Shape", ...]


@dataclass(frozen=True, slots=True)
class Named:
    """An object that has a declaration of its own."""

    name: str


Shape = Simple | OneOf | ListOf | MapOf | Either | Named


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """How a language writes shapes. The texts have ``{}`` for what is inside."""

    names: Mapping[str, str]
    value: Callable[[Literal], str]
    one_of: str
    between_values: str
    list_of: str
    map_of: str

    def write(self, shape: Shape) -> str:
        """Return a shape in the language."""
        match shape:
            case Simple(name):
                text = self.names[name]
            case OneOf(values):
                text = self.one_of.format(self.between_values.join(map(self.value, values)))
            case ListOf(item):
                text = self.list_of.format(self.write(item))
            case MapOf(value):
                text = self.map_of.format(self.write(value))
            case Either(shapes):
                text = " | ".join(map(self.write, shapes))
            case Named(name):
                text = name
        return text


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of an object."""

    name: str
    shape: Shape
    is_required: bool
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """An object with known fields."""

    name: str
    fields: tuple[Field, ...]
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeData:
    """What the data of a notification type may be."""

    slug: str
    shape: Shape
    is_required: bool


@dataclass(slots=True)
class Module:
    """The declarations of one generated file, each before the first that names it."""

    types: list[TypeData] = field(default_factory=list)
    declarations: list[Declaration] = field(default_factory=list)
    _names: set[str] = field(default_factory=set)

    def add(self, slug: str, files: Content) -> None:
        """Add a notification type."""
        schema = files.definition.get("schema")
        if not isinstance(schema, Mapping):
            self.types.append(TypeData(slug=slug, shape=MapOf(Simple(ANY)), is_required=False))
            return
        reader = _Reader(self, f"{_camel(slug)}Data", schema)
        shape = reader.shape(schema, reader.prefix, note=str(files.definition.get("name", "")))
        self.types.append(
            TypeData(slug=slug, shape=shape, is_required=bool(schema.get("required")))
        )

    def declare(self, name: str, fields: tuple[Field, ...], note: str) -> Named:
        """Add a declaration. Its name gets a number if another one has it."""
        unique, count = name, 1
        while unique in self._names:
            count += 1
            unique = f"{name}{count}"
        self._names.add(unique)
        self.declarations.append(Declaration(name=unique, fields=fields, note=note))
        return Named(unique)


class _Reader:
    """Reads one schema."""

    def __init__(self, module: Module, prefix: str, schema: Mapping[str, Any]) -> None:
        self.prefix = prefix
        self._module = module
        self._definitions = _object(schema.get("$defs"))
        self._defined: dict[str, Shape] = {}

    def shape(self, schema: Any, name: str, *, note: str = "") -> Shape:
        """Return the shape of a schema, whose declaration has this name if it needs one."""
        if not isinstance(schema, Mapping):
            return Simple(ANY)
        if "$ref" in schema:
            return self._reference(str(schema["$ref"]).removeprefix(_REFERENCE))
        values = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
        if values and all(value is None or isinstance(value, str | int) for value in values):
            return OneOf(tuple(_distinct(values)))
        kinds = schema.get("type")
        named = [kinds] if isinstance(kinds, str) else _texts(kinds)
        shapes = [self._of_kind(kind, schema, name, note) for kind in dict.fromkeys(named)]
        if not shapes:
            return Simple(ANY)
        return shapes[0] if len(shapes) == 1 else Either(tuple(shapes))

    def _of_kind(self, kind: str, schema: Mapping[str, Any], name: str, note: str) -> Shape:
        if kind == "array":
            return ListOf(self.shape(schema.get("items"), f"{name}Item"))
        if kind != "object":
            return Simple(kind if kind in SIMPLE else ANY)
        if not (fields := tuple(self._fields(schema, name))):
            return MapOf(self.shape(schema.get("additionalProperties"), f"{name}Value"))
        return self._module.declare(name, fields, str(schema.get("description") or note))

    def _fields(self, schema: Mapping[str, Any], name: str) -> Iterator[Field]:
        required = _texts(schema.get("required"))
        properties = _object(schema.get("properties"))
        for each in dict.fromkeys([*properties, *required]):
            inner = properties.get(each)
            yield Field(
                name=each,
                shape=self.shape(inner, name + _camel(each)),
                is_required=each in required,
                note=str(inner.get("description", "")) if isinstance(inner, Mapping) else "",
            )

    def _reference(self, name: str) -> Shape:
        if name not in self._defined:
            if name not in self._definitions:
                return Simple(ANY)
            inner = self._definitions[name]
            self._defined[name] = Simple(ANY)  # The service refuses what refers to itself
            self._defined[name] = self.shape(inner, self.prefix + _camel(name))
        return self._defined[name]


def comment(text: str) -> str:
    """Return a text that a comment of one line can have."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> list[str]:
    return [each for each in _list(value) if isinstance(each, str)]


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _distinct(values: list[Any]) -> Iterator[Literal]:
    """Yield values once. ``1`` isn't ``true``, and ``1.0``, which equals 1, isn't here."""
    seen: set[tuple[type, Literal]] = set()
    for value in values:
        if (type(value), value) not in seen:
            seen.add((type(value), value))
            yield value


def _camel(text: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in _WORD.findall(text))
