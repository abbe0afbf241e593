"""Form of a new template version: a text for each part and language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import QueryDict

from domain.channels import PARTS
from notifications.content.linting import TemplateFault
from notifications.content.templates import DEFAULT_LANGUAGE, Part, Parts
from notifications.models.catalog import NOTE_LENGTH

from .preview import language_name

LANGUAGES = "language"
NEW_LANGUAGE = "new_language"
LABELS: Mapping[Part, tuple[str, str]] = {
    Part.SUBJECT: ("Subject", "For email and in-app, and the default push title."),
    Part.BODY: ("Text", "For in-app and plain-text email, and the default of the parts below."),
    **{Part(name): (part.label, part.help_text) for name, part in PARTS.items()},
}
ROWS: Mapping[Part, int] = {
    Part.SUBJECT: 1,
    **{Part(name): part.rows for name, part in PARTS.items()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageFields:
    """The text fields of one language. The code of a new language is empty."""

    code: str
    name: str
    fields: Sequence[Mapping[str, Any]]
    errors: Sequence[str] = ()

    @property
    def is_open(self) -> bool:
        """Whether the section of the language is expanded."""
        has_errors = bool(self.errors) or any(field["errors"] for field in self.fields)
        return has_errors or self.code == DEFAULT_LANGUAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionForm:
    """The values and errors of the form."""

    parts: Parts
    note: str
    new_language: str
    errors: Sequence[str] = ()
    faults: Sequence[TemplateFault] = ()

    def with_faults(self, faults: Sequence[TemplateFault]) -> "VersionForm":
        """Return a copy of the form that shows template faults."""
        general_errors = [fault.text for fault in faults if fault.language is None]
        return replace(self, faults=faults, errors=[*self.errors, *general_errors])

    @property
    def non_empty_parts(self) -> Parts:
        """The parts with text, by language."""
        non_empty = {
            language: {part: text for part, text in texts.items() if text.strip()}
            for language, texts in self.parts.items()
        }
        return {language: texts for language, texts in non_empty.items() if texts}

    def sections(self) -> list[LanguageFields]:
        """Return the fields of each language."""
        return [self._section(code) for code in dict.fromkeys([DEFAULT_LANGUAGE, *self.parts])]

    def blank_section(self) -> LanguageFields:
        """Return the fields of a new language."""
        return self._section("")

    def _section(self, code: str) -> LanguageFields:
        return LanguageFields(
            code=code,
            name=language_name(code) if code else "New language",
            fields=[
                {
                    "name": field_name(code, part),
                    "label": label,
                    "help_text": help_text,
                    "rows": ROWS.get(part, 5),
                    "text": self.parts.get(code, {}).get(part, ""),
                    "errors": self._errors(code, part),
                }
                for part, (label, help_text) in LABELS.items()
            ],
            errors=self._errors(code, None),
        )

    def _errors(self, code: str, part: Part | None) -> list[str]:
        return [f.text for f in self.faults if f.language == code and f.part is part]


def field_name(code: str, part: Part) -> str:
    """Return the name of a part's form field."""
    return f"{part}:{code}"


def from_post(post: QueryDict) -> VersionForm:
    """Return a form from a POST. Converts the line ends of browsers, CRLF, to LF."""
    codes = list(dict.fromkeys([DEFAULT_LANGUAGE, *post.getlist(LANGUAGES)]))
    parts = {code: _texts(post, code) for code in codes if code}
    new, texts = post.get(NEW_LANGUAGE, "").strip(), _texts(post, "")
    note = post.get("note", "").strip()
    errors: list[str] = []
    if new in parts:
        errors.append(f"The language {new} already exists.")
    elif new:
        parts[new] = texts
    elif any(text.strip() for text in texts.values()):
        errors.append("Enter the code of the new language, such as pt or pt-BR.")
        parts[""] = texts
    if len(note) > NOTE_LENGTH:
        errors.append(f"The note exceeds {NOTE_LENGTH} characters.")
    return VersionForm(parts=parts, note=note, new_language=new, errors=errors)


def _texts(post: QueryDict, code: str) -> dict[str, str]:
    return {
        part.value: post.get(field_name(code, part), "").replace("\r\n", "\n").strip("\n")
        for part in Part
    }
