"""Which changes of a schema in an OpenAPI document break a program. Pure.

What a client writes must be taken as before: :mod:`domain.schema_changes` says so of single values.
What the service writes must have what it had.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from domain.schema_changes import as_mapping, breaking_changes, pointer_token

Schema = Mapping[str, Any]
_UNIONS = ("anyOf", "oneOf")
_LEAVES = frozenset(
    (
        *("type", "enum", "const", "pattern", "format", "minimum", "exclusiveMinimum", "maximum"),
        *("exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems"),
    )
)
_INNER = frozenset((*_UNIONS, "$ref", "properties", "required", "additionalProperties", "items"))
_SIZES = {"minProperties": 1, "maxProperties": -1}
_DESCRIPTIVE = frozenset(("title", "description", "default", "example", "examples", "deprecated"))
_KNOWN = _LEAVES | _INNER | _SIZES.keys() | _DESCRIPTIVE
_TYPES = ("string", "integer", "number", "boolean", "object", "array", "null")


class Writer(StrEnum):
    """Who writes what a schema describes."""

    CLIENT = "request"
    SERVICE = "answer"


@dataclass(frozen=True, slots=True, order=True)
class Change:
    """A change, and whether it breaks a program."""

    where: str
    why: str
    breaks: bool = True

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


class Schemas:
    """Compares schemas of two documents. A shared one is reported at its name, once."""

    def __init__(self, before: Schema, after: Schema) -> None:
        self._documents = before, after
        self._shared: dict[tuple[int, int, Writer], list[Change]] = {}

    def old(self, part: Any) -> Schema:
        """Return what a part of the old document refers to, or the part."""
        return _resolved(part, self._documents[0])

    def new(self, part: Any) -> Schema:
        """Return what a part of the new document refers to, or the part."""
        return _resolved(part, self._documents[1])

    def compare(self, old: Any, new: Any, *, where: str, writer: Writer) -> list[Change]:
        """Return the changes from an old schema to a new one. Booleans are schemas, too."""
        if old is False:
            return []
        if new is False:
            return [Change(where, "Nothing is allowed any more.")]
        reference = as_mapping(old).get("$ref")
        old, new = self.old(old), self.new(new)
        if not old:
            is_narrowed = new and writer is Writer.CLIENT
            return [Change(where, "Anything was taken.")] if is_narrowed else []
        if reference is None:
            return self._compare(old, new, where=where, writer=writer)
        key = id(old), id(new), writer
        if key not in self._shared:
            self._shared[key] = []  # A schema that contains itself adds nothing by that.
            name = f"{str(reference).rpartition('/')[2]} ({writer})"
            self._shared[key] = self._compare(old, new, where=name, writer=writer)
        return self._shared[key]

    def _compare(self, old: Schema, new: Schema, *, where: str, writer: Writer) -> list[Change]:
        olds, news = list(_alternatives(old, self.old)), list(_alternatives(new, self.new))
        if len(olds) == len(news) == 1:
            old, new = self.old(olds[0]), self.new(news[0])
            return list(self._plain(old, new, where=where, writer=writer))
        # A value that was taken fits one alternative, and one that is answered fitted one.
        found = []
        is_request = writer is Writer.CLIENT
        for each in olds if is_request else news:
            pairs = [(each, new) for new in news] if is_request else [(old, each) for old in olds]
            tried = [
                (
                    not _types(self.old(one)) & _types(self.new(other)),
                    self.compare(one, other, where=where, writer=writer),
                )
                for one, other in pairs
            ]
            found += min(tried, key=lambda trial: (trial[0], len(trial[1])))[1]
        return found

    def _plain(self, old: Schema, new: Schema, *, where: str, writer: Writer) -> Iterator[Change]:
        for name in sorted((old.keys() | new.keys()) - _KNOWN):
            if not name.startswith("x-") and _key(old.get(name)) != _key(new.get(name)):
                yield Change(where, f"{name} is another, which nothing compares: look yourself.")
        yield from (_taken if writer is Writer.CLIENT else _answered)(old, new, where)
        types = _types(old) & _types(new)
        if "object" in types:
            was, now = as_mapping(old.get("properties")), as_mapping(new.get("properties"))
            inner = [
                (f"/{pointer_token(name)}", was[name], now[name]) for name in was if name in now
            ]
            others = (each.get("additionalProperties", True) for each in (old, new))
            for place, one, other in (*inner, ("/*", *others)):
                yield from self.compare(one, other, where=f"{where}{place}", writer=writer)
        if "array" in types:
            items = (each.get("items", True) for each in (old, new))
            yield from self.compare(*items, where=f"{where}[]", writer=writer)


def _taken(old: Schema, new: Schema, where: str) -> Iterator[Change]:
    leaves = ({name: each[name] for name in each.keys() & _LEAVES} for each in (old, new))
    for pointer, reason in breaking_changes(*leaves):
        yield Change(where, f"{pointer.rpartition('/')[2]}: {reason}")
    for name, sign in _SIZES.items():
        if name in new and (name not in old or sign * new[name] > sign * old[name]):
            yield Change(where, f"{name}: The limit is stricter.")
    was, now = as_mapping(old.get("properties")), as_mapping(new.get("properties"))
    for name in was:
        if name not in now:
            yield Change(f"{where}/{pointer_token(name)}", "It is no longer taken.")
    for name in new.get("required", ()):
        if name not in old.get("required", ()):
            yield Change(f"{where}/{pointer_token(name)}", "It is newly required.")


def _answered(old: Schema, new: Schema, where: str) -> Iterator[Change]:
    if more := _types(new) - _types(old):
        yield Change(where, f"It may be {' or '.join(sorted(more))}.")
    if old.get("format") not in (None, new.get("format")):
        yield Change(where, "format: The form of the text is another.")
    had, has = _listed(old), _listed(new)
    if had is not None and has is not None:
        if lost := had.keys() - has.keys():
            yield Change(where, f"It is never {_named(lost)}.")
        if more_values := has.keys() - had.keys():
            yield Change(where, f"It may be {_named(more_values)}.", breaks=False)
    elif had is not None:
        yield Change(where, "It may be a value that isn't listed.", breaks=False)
    was, now = as_mapping(old.get("properties")), as_mapping(new.get("properties"))
    for name in was:
        if name not in now:
            yield Change(f"{where}/{pointer_token(name)}", "It is no longer answered.")
        elif name in old.get("required", ()) and name not in new.get("required", ()):
            yield Change(f"{where}/{pointer_token(name)}", "It may be missing.")


def _alternatives(schema: Any, resolved: Callable[[Any], Schema]) -> Iterator[Any]:
    unions = [each for name in _UNIONS for each in resolved(schema).get(name, ())]
    if not unions:
        yield schema
    for each in unions:
        yield from _alternatives(each, resolved)


def _resolved(part: Any, document: Schema) -> Schema:
    found = as_mapping(part)
    while "$ref" in found:
        target: Any = document
        for token in str(found["$ref"]).removeprefix("#/").split("/"):
            target = target[token.replace("~1", "/").replace("~0", "~")]
        found = as_mapping(target)
    return found


def _types(schema: Schema) -> frozenset[str]:
    named = schema.get("type")
    if named is None:
        values = _listed(schema)
        return frozenset(_TYPES if values is None else map(_type_of, values.values()))
    found = {named} if isinstance(named, str) else set(named)
    return frozenset(found | {"integer"} if "number" in found else found)


def _type_of(value: Any) -> str:
    return next(
        name for name in _TYPES if not list(breaking_changes({"const": value}, {"type": name}))
    )


def _listed(schema: Schema) -> dict[str, Any] | None:
    values: Sequence[Any] | None = (schema["const"],) if "const" in schema else schema.get("enum")
    return None if values is None else {_key(value): value for value in values}


def _named(keys: Iterable[str]) -> str:
    return " or ".join(sorted(keys))


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
