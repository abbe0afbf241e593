"""The form of an item of the design, and what of it two people have changed.

The form knows the design that it was made from. If an item has changed since, the fields that only
the other one changed show the new values, and those that both changed show both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.http import QueryDict

from notifications.catalog import designs
from notifications.catalog.designs import Design, Kind, TextKind, UnknownDesignError
from notifications.content.design_changes import Change
from notifications.content.templates import DEFAULT_LANGUAGE
from notifications.validation import FieldProblem

from ..types import diff
from ..types.preview import language_name
from ..types.version_form import LANGUAGES, NEW_LANGUAGE, LanguageFields
from . import fields
from .fields import TEXT_LABELS, Field, fields_of, label_of, normal, text_name, values_of

NAME, BASE = "name", "base"
"""Inputs of a new item's name, and of the number of the design that the form was made from."""
ROWS = 12
MAX_DIGITS = 9
NO_LANGUAGE = "Enter the code of the new language, such as pt or pt-BR."
KNOWN_LANGUAGE = "The language {} already exists."


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundField:
    """A field with its value, and what is wrong with it."""

    field: Field
    value: str
    errors: Sequence[str]
    theirs: str | None = None
    """What somebody else has made of it meanwhile."""

    @property
    def id(self) -> str:
        """The ID of its input."""
        return self.field.name.replace("/", "-")

    @property
    def described_by(self) -> str:
        """The IDs of the elements that explain it."""
        parts = [("note", self.field.note), ("error", self.errors)]
        return " ".join(f"{self.id}-{name}" for name, value in parts if value)


@dataclass(slots=True, kw_only=True)
class ItemForm:
    """The values of an item's fields, and what is wrong with them."""

    kind: Kind
    name: str
    values: dict[str, str]
    base: Design
    """The design that the values were made from."""
    is_new: bool = False
    new_language: str = ""
    errors: dict[str, list[str]] = field(default_factory=dict)
    theirs: Mapping[str, str] = field(default_factory=dict)

    @property
    def stored(self) -> Any:
        """The item that the values were made from, None for a new one."""
        return self.base.items(self.kind).get(self.name)

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of this kind, and of the languages of these values."""
        return fields_of(self.kind, self.values)

    @property
    def general_errors(self) -> list[str]:
        """What is wrong with more than one field."""
        return self.errors.get("", [])

    @property
    def name_errors(self) -> list[str]:
        """What is wrong with the name of a new item."""
        return self.errors.get(NAME, [])

    def change(self) -> tuple[Change, list[FieldProblem]]:
        """Return the change that the form asks for, and what of it has a wrong form."""
        content, problems = fields.content_of(self.kind, self.values, before=self.stored)
        replaces = None if self.stored is None else designs.revision_of(self.stored)
        change = Change(
            kind=self.kind, name=self.name, content=content, replaces=replaces, pointer=""
        )
        return change, problems

    def show(self, problems: Sequence[FieldProblem]) -> None:
        """Add problems to their fields."""
        known = self.fields
        for problem in problems:
            name = fields.field_for(problem.pointer, known)
            if name is None:
                name = NAME if problem.pointer == f"/{NAME}" else ""
            self.errors.setdefault(name, []).append(fields.detail_of(self.kind, problem))

    def bound(self, name: str) -> BoundField:
        """Return a field with its value."""
        (found,) = [each for each in self.fields if each.name == name]
        return BoundField(
            field=found,
            value=self.values.get(name, ""),
            errors=self.errors.get(name, ()),
            theirs=self.theirs.get(name),
        )

    def groups(self) -> Iterator[tuple[str, list[BoundField]]]:
        """Yield what belongs together of a brand, but its colours."""
        groups: dict[str, list[BoundField]] = {}
        for each in self.fields:
            if each.control is not fields.Control.COLOUR:
                groups.setdefault(each.group, []).append(self.bound(each.name))
        yield from groups.items()

    def colours(self) -> list[tuple[BoundField, BoundField]]:
        """Return each colour of a brand, light and dark."""
        light = [f.name for f in self.fields if f.group == "colours/light"]
        return [(self.bound(name), self.bound(name.replace("/light/", "/dark/"))) for name in light]

    def source(self) -> BoundField:
        """Return the only field of a layout, or of translations."""
        (only,) = self.fields
        return self.bound(only.name)

    def sections(self) -> list[LanguageFields]:
        """Return the texts of a partial by language, and a new language at the end."""
        codes = dict.fromkeys([*fields.languages_of(self.values), ""])
        return [self._section(code) for code in codes]

    def _section(self, code: str) -> LanguageFields:
        return LanguageFields(
            code=code,
            name=language_name(code) if code else "New language",
            fields=[
                {
                    "name": text_name(code, text_kind),
                    "label": label,
                    "help_text": note,
                    "rows": ROWS if text_kind is TextKind.HTML else ROWS // 2,
                    "text": self.values.get(text_name(code, text_kind), ""),
                    "errors": self.errors.get(text_name(code, text_kind), ()),
                }
                for text_kind, (label, note) in TEXT_LABELS.items()
            ],
            errors=self.errors.get(f"{fields.TEXTS}/{code}", ()),
        )

    def rebase(self, present: Design) -> None:
        """Go on from the design that somebody else has stored meanwhile, and lose nothing."""
        before = values_of(self.kind, self.stored)
        theirs = values_of(self.kind, present.items(self.kind).get(self.name))
        if self.name not in present.items(self.kind):
            # What they removed is stored again as it is here.
            theirs = before
        changed = {name for name in {*before, *theirs} if before.get(name) != theirs.get(name)}
        own = {name for name, text in self.values.items() if before.get(name, "") != text}
        self.values |= {name: theirs.get(name, "") for name in changed - own}
        self.theirs = {
            name: theirs.get(name, "")
            for name in changed & own
            if theirs.get(name, "") != self.values[name]
        }
        self.base = present


def from_item(kind: Kind, name: str, design: Design) -> ItemForm:
    """Return the form of an item of a design."""
    values = values_of(kind, design.items(kind).get(name))
    return ItemForm(kind=kind, name=name, values=values, base=design)


def from_post(kind: Kind, name: str, post: QueryDict, *, is_new: bool) -> ItemForm:
    """Return the form that a browser has sent. Raises PyMongoError."""
    base = _base(post.get(BASE, ""))
    errors: dict[str, list[str]] = {}
    if kind is Kind.PARTIAL:
        values, errors = _texts(post)
    else:
        values = {each.name: normal(post.get(each.name, "")) for each in fields_of(kind, {})}
    if kind is Kind.BRAND:
        colours = {f.name for f in fields_of(kind, {}) if f.control is fields.Control.COLOUR}
        values = {
            key: text.strip().lower() if key in colours else text.strip()
            for key, text in values.items()
        }
    return ItemForm(
        kind=kind,
        name=post.get(NAME, "").strip() if is_new else name,
        values=values,
        base=Design(number=base.number) if is_new else base,
        is_new=is_new,
        new_language=post.get(NEW_LANGUAGE, "").strip(),
        errors=errors,
    )


def changes_between(kind: Kind, before: Any, after: Any) -> list[diff.Change]:
    """Return the difference of two contents of an item, by field. None is no content."""
    old = values_of(kind, before) if before is not None else {}
    new = values_of(kind, after) if after is not None else {}
    return changed_values(kind, old, new)


def changed_values(kind: Kind, old: Mapping[str, str], new: Mapping[str, str]) -> list[diff.Change]:
    """Return the difference of two forms' values, by field."""
    return [
        diff.Change(
            language="",
            label=label_of(kind, name, {**old, **new}),
            lines=diff.lines_between(old.get(name, ""), new.get(name, "")),
        )
        for name in dict.fromkeys([*new, *old])
        if old.get(name, "") != new.get(name, "")
    ]


def number_of(text: str) -> int | None:
    """Return the number of a design, None for a text that is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
    return int(text) if is_number else None


def _base(text: str) -> Design:
    """Return the design that a form was made from; without one, that of a new installation."""
    try:
        return designs.numbered(number_of(text) or 0)
    except UnknownDesignError:
        return Design()


def _texts(post: QueryDict) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the texts of a partial, and what is wrong with the code of a new language."""
    given = dict.fromkeys([DEFAULT_LANGUAGE, *post.getlist(LANGUAGES)])
    codes = [code for code in given if code and "/" not in code]
    values = {
        text_name(code, text_kind): normal(post.get(text_name(code, text_kind), ""))
        for code in codes
        for text_kind in TextKind
    }
    added = {text_kind: normal(post.get(text_name("", text_kind), "")) for text_kind in TextKind}
    code = post.get(NEW_LANGUAGE, "").strip()
    if code and code not in codes and "/" not in code:
        return values | {text_name(code, kind): text for kind, text in added.items()}, {}
    if not any(text.strip() for text in added.values()):
        return values, {}
    problem = KNOWN_LANGUAGE.format(code) if code in codes else NO_LANGUAGE
    kept = {text_name("", kind): text for kind, text in added.items()}
    return values | kept, {f"{fields.TEXTS}/": [problem]}
