"""The types of a folder, as ``notify pull`` writes it, and what a type refuses."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator
from liquid import Environment, FalsyStrictUndefined
from liquid.exceptions import LiquidError, UndefinedError

from ..cli import files
from .rules.channels import Channel
from .rules.languages import find_nearest
from .rules.validation import FieldProblem, pointer_token

_ROOTS = ("subject", "body")
_MAX_MISSING = 20
_ENVIRONMENT = Environment(undefined=FalsyStrictUndefined, strict_filters=False)
_CODES = {
    "type": "wrong_type",
    "enum": "unknown_value",
    "const": "unknown_value",
    "pattern": "invalid_format",
    "format": "invalid_format",
    "falseSchema": "unknown_field",
}
_RANGES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength")
_SIZES = ("minItems", "maxItems")


@dataclass(frozen=True, kw_only=True)
class MemoryType:
    """A type. Without a folder, every type exists, with the defaults of a definition."""

    slug: str
    definition: Mapping[str, Any] = field(default_factory=dict)
    parts: files.Parts | None = None
    """The texts; None: they aren't known."""

    def find_mismatches(self, data: Mapping[str, Any]) -> list[FieldProblem]:
        """Return where data differs from the schema, with pointers below ``/data``."""
        if self._validator is None:
            return []
        found = [
            problem
            for error in self._validator.iter_errors(data)
            for problem in _problems_of(error)
        ]
        return sorted(found, key=lambda problem: problem.pointer)

    def find_missing(
        self,
        variables: Mapping[str, Any],
        channels: Sequence[Channel],
        *,
        supplied: Collection[str],
        locale: str | None,
    ) -> Iterator[FieldProblem]:
        """Yield the variables that the texts of these channels need and that are missing.

        The service adds those that are ``supplied`` to the ``variables``, with values of its own.
        """
        for source in self._texts(channels, locale=locale):
            yield from _missing_in(source, variables, supplied)

    @property
    def is_checked(self) -> bool:
        """Whether data that differs from the schema is refused."""
        return self.definition.get("schema_mode", "reject") == "reject"

    @cached_property
    def _validator(self) -> Draft202012Validator | None:
        schema = self.definition.get("schema")
        if not schema or self.definition.get("schema_mode") == "off":
            return None
        return Draft202012Validator(schema, validate_formats=True, offline=True)

    def _texts(self, channels: Sequence[Channel], *, locale: str | None) -> Iterator[str]:
        parts = self.parts or {}
        others = [language for language in parts if language != files.OWN_LANGUAGE]
        own = parts.get(files.OWN_LANGUAGE, {})
        translated = parts.get(next(iter(find_nearest(locale, others)), ""), {})
        names = [*_ROOTS, *(part.name for one in channels for part in one.spec.parts)]
        for name in names:
            if (source := translated.get(name, own.get(name))) is not None:
                yield source


class Types:
    """The types that a service in memory has."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read ``types/`` of a folder, or the folder itself. Raises FileError."""
        self._known: dict[str, MemoryType] | None = None
        if folder is not None:
            place = folder / "types" if (folder / "types").is_dir() else folder
            if not (contents := files.read_types(place)):
                raise files.FileError(place, "It has no folder with a type.yaml.")
            self._known = {
                slug: MemoryType(slug=slug, definition=one.definition, parts=one.parts)
                for slug, one in contents.items()
            }

    def find(self, slug: str) -> MemoryType | None:
        """Return a type by its slug; None if it isn't one, or is disabled."""
        if self._known is None:
            return MemoryType(slug=slug)
        found = self._known.get(slug)
        return found if found and found.definition.get("is_active", True) else None


def _problems_of(error: Any) -> Iterator[FieldProblem]:
    kind = error.kind
    place = "/data" + "".join(f"/{pointer_token(str(token))}" for token in error.instance_path)
    if kind.name == "required":
        # A variable that is missing has the same code, whether schema or template needs it.
        name = pointer_token(kind.property)
        yield FieldProblem(f"{place}/{name}", "missing_variable", "Required.")
    elif kind.name == "additionalProperties":
        for name in kind.unexpected:
            yield FieldProblem(
                f"{place}/{pointer_token(name)}", "unknown_field", "Not in the schema."
            )
    elif kind.name in (*_RANGES, *_SIZES):
        yield FieldProblem(place, "out_of_range", error.message)
    else:
        yield FieldProblem(place, _CODES.get(kind.name, "invalid"), error.message)


def _missing_in(
    source: str, variables: Mapping[str, Any], supplied: Collection[str]
) -> Iterator[FieldProblem]:
    """Yield each variable without a value: it gets one, so that rendering finds the next."""
    filled = json.loads(json.dumps({**{name: {} for name in supplied}, **variables}))
    for _ in range(_MAX_MISSING):
        try:
            _ENVIRONMENT.from_string(source).render(**filled)
        except UndefinedError as error:
            path = str(error.args[0]).partition(" is undefined")[0].strip("'").split(".")
            if path[0] not in supplied:
                pointer = "".join(f"/{pointer_token(name)}" for name in path)
                within = "" if path[0] == "recipient" else "/data"
                reason = f"The template needs the variable {'.'.join(path)!r}."
                yield FieldProblem(within + pointer, "missing_variable", reason)
            if not _fill(filled, path):
                return
        except LiquidError:
            # Partials and filters of the service are its own: it says what they refuse.
            return
        else:
            return


def _fill(data: dict[str, Any], path: list[str]) -> bool:
    *parents, last = path
    for name in parents:
        data = data.setdefault(name, {})
        if not isinstance(data, dict):
            return False
    if last in data:
        return False
    data[last] = "x"
    return True
