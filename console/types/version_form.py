"""The form a new version of a template is written in: a text for each part and language."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.http import QueryDict

from notifications.content.linting import TemplateFault
from notifications.content.templates import DEFAULT_LANGUAGE, Part, Parts
from notifications.models.catalog import NOTE_LENGTH

from .preview import language_name

LANGUAGES = "language"
"""The name under which the languages of the form are sent."""
NEW_LANGUAGE = "new_language"
MAX_LANGUAGE_LENGTH = 12
LABELS: Mapping[Part, tuple[str, str]] = {
    Part.SUBJECT: ("Subject", "Of mail and in-app, and the title of a push."),
    Part.BODY: ("Text", "For in-app, for mail as text, and for whatever is left out below."),
    Part.EMAIL_HTML: ("HTML of mail", "Goes into the layout. Left out: made of the text."),
    Part.PUSH_TITLE: ("Push title", "Left out: the subject."),
    Part.PUSH: ("Push", "One or two sentences. Left out: the text."),
    Part.WHATSAPP: ("WhatsApp", "*Stars* make it bold. Left out: the text."),
}
ROWS: Mapping[Part, int] = {
    Part.SUBJECT: 1,
    Part.PUSH_TITLE: 1,
    Part.PUSH: 2,
    Part.EMAIL_HTML: 9,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartField:
    """One text of the form."""

    name: str
    label: str
    help_text: str
    rows: int
    text: str
    errors: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageFields:
    """The texts in one language; one without a code is still to be named."""

    code: str
    name: str
    fields: Sequence[PartField]
    errors: Sequence[str] = ()

    @property
    def is_open(self) -> bool:
        """Whether it is shown unfolded."""
        has_errors = bool(self.errors) or any(field.errors for field in self.fields)
        return has_errors or self.code == DEFAULT_LANGUAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionForm:
    """What is in the form."""

    parts: Parts
    note: str
    new_language: str
    errors: Sequence[str] = ()
    faults: Sequence[TemplateFault] = ()

    def with_faults(self, faults: Sequence[TemplateFault]) -> "VersionForm":
        """Return the form with what is wrong with it."""
        general_errors = [fault.text for fault in faults if fault.language is None]
        return replace(self, faults=faults, errors=[*self.errors, *general_errors])

    @property
    def non_empty_parts(self) -> Parts:
        """The parts that say something, by the languages that have any."""
        non_empty = {
            language: {part: text for part, text in texts.items() if text.strip()}
            for language, texts in self.parts.items()
        }
        return {language: texts for language, texts in non_empty.items() if texts}

    def sections(self) -> list[LanguageFields]:
        """Return the languages and, last, one that is still to be named."""
        codes = dict.fromkeys([DEFAULT_LANGUAGE, *self.parts])
        return [self._section(code) for code in codes]

    def blank_section(self) -> LanguageFields:
        """Return the fields of a language that is not there yet."""
        return self._section("")

    def _section(self, code: str) -> LanguageFields:
        return LanguageFields(
            code=code,
            name=language_name(code) if code else "Another language",
            fields=[self._field(code, part) for part in Part],
            errors=[f.text for f in self.faults if f.language == code and f.part is None],
        )

    def _field(self, code: str, part: Part) -> PartField:
        label, help_text = LABELS[part]
        faults = [f.text for f in self.faults if f.language == code and f.part is part]
        return PartField(
            name=field_name(code, part),
            label=label,
            help_text=help_text,
            rows=ROWS.get(part, 5),
            text=self.parts.get(code, {}).get(part, ""),
            errors=faults,
        )


def field_name(code: str, part: Part) -> str:
    """Return the name under which a part is sent."""
    return f"{part}:{code}"


def from_version(parts: Parts) -> VersionForm:
    """Return a form with the parts of a version in it."""
    return VersionForm(parts=parts, note="", new_language="")


def from_post(post: QueryDict) -> VersionForm:
    """Return a form as it was sent. Browsers end lines with two characters: one is kept."""
    codes = list(dict.fromkeys([DEFAULT_LANGUAGE, *post.getlist(LANGUAGES)]))
    parts = {code: _texts(post, code) for code in codes if code}
    new, texts = post.get(NEW_LANGUAGE, "").strip(), _texts(post, "")
    note = post.get("note", "").strip()
    errors: list[str] = []
    if new in parts:
        errors.append(f"The language {new} is there already.")
    elif new:
        parts[new] = texts
    elif any(text.strip() for text in texts.values()):
        errors.append("Which language is the other one? Write its code, such as pt or pt-BR.")
        parts[""] = texts
    if len(note) > NOTE_LENGTH:
        errors.append(f"The note has over {NOTE_LENGTH} characters.")
    return VersionForm(parts=parts, note=note, new_language=new, errors=errors)


def _texts(post: QueryDict, code: str) -> dict[str, str]:
    return {
        part.value: post.get(field_name(code, part), "").replace("\r\n", "\n").strip("\n")
        for part in Part
    }
