"""Template texts from shipped files and stored versions, looked up by part and language."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from django.conf import settings
from liquid import Environment
from pymongo.errors import DuplicateKeyError

from domain import channels
from domain.channels.spec import Role
from domain.languages import find_nearest, is_right_to_left
from notifyproject import lockstep

from ..catalog import designs
from ..documents.catalog import TEMPLATE_VERSIONS, TemplateVersionDocument
from . import inlining
from .direction import turn_round
from .engine import (
    HTML_ENVIRONMENT,
    LAYOUT_ENVIRONMENT,
    MARKDOWN_ENVIRONMENT,
    TEXT_ENVIRONMENT,
    Template,
    TemplateError,
)

DEFAULT_LANGUAGE = "default"  # Names a template's own language
TEMPLATE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
STORED_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?", re.ASCII)
"""A language code of a stored text: ``pt``, ``pt-BR``, ``zh-Hant-TW``."""
LAYOUT = "_layout"
LAYOUT_WORDS_FILE = "words.json"
SHIPPED_VERSION = 0
MAX_INSERT_ATTEMPTS = 100
"""Attempts to insert under the next number. Each conflict means that another version exists."""
MAX_CACHED_VERSIONS = 512  # Versions cached in a process; a stored version never changes
MAX_CACHED_TEMPLATES = 2_048
"""Parsed parts cached in a process: parsing takes 20 µs, and 220 µs with CSS inlining."""
PARSING_LOCKS = 64
"""Parts that different threads may parse at the same time."""


class Part(StrEnum, metaclass=channels.OpenEnum):
    """One text of a template: the subject, the body, or a part that one channel has of its own."""

    SUBJECT = "subject"
    BODY = "body"
    _ignore_ = "_name"
    for _name in channels.PARTS:
        vars()[_name.upper()] = _name

    @property
    def source(self) -> "Part | None":
        """The part that replaces it where it is missing."""
        own = channels.PARTS.get(self.value)
        if own is None:
            return None
        return Part.SUBJECT if own.role is Role.TITLE else Part.BODY

    @property
    def is_html(self) -> bool:
        """Whether it is HTML. The layout is a template of this part."""
        own = channels.PARTS.get(self.value)
        return own is not None and own.role is Role.HTML

    @property
    def is_markdown(self) -> bool:
        """Whether it is Markdown."""
        own = channels.PARTS.get(self.value)
        return own is not None and own.role is Role.MARKDOWN

    @property
    def environment(self) -> Environment:
        """What its templates are parsed and rendered in."""
        if self.is_html:
            return HTML_ENVIRONMENT
        return MARKDOWN_ENVIRONMENT if self.is_markdown else TEXT_ENVIRONMENT

    @property
    def has_one_line(self) -> bool:
        """Whether it replaces the subject, or is it."""
        return Part.SUBJECT in (self, self.source)

    @property
    def file_name(self) -> str:
        """The name of its file in a shipped template."""
        return f"{self.value.removesuffix('_html')}.html" if self.is_html else f"{self.value}.txt"


(LAYOUT_PART,) = (part for part in Part if part.is_html)
"""The part that the layout is made for."""


def language_chain(locale: str | None, available: Iterable[str]) -> tuple[str, ...]:
    """Return the available languages to search, the nearest first, and the template's own."""
    others = [language for language in available if language != DEFAULT_LANGUAGE]
    return (*find_nearest(locale, others), DEFAULT_LANGUAGE)


@lru_cache(maxsize=4096)
def read_shipped(name: str, part: Part, language: str) -> str | None:
    """Return a part's shipped text in exactly this language, or None."""
    path = _folder(name, language) / part.file_name
    return path.read_text(encoding="utf-8").strip() if path.is_file() else None


def layout_words(locale: str | None) -> Mapping[str, str]:
    """Return the words of the layout itself in the nearest language."""
    found = (
        _read_layout_words(language)
        for language in language_chain(locale, _shipped_languages(LAYOUT))
    )
    return next(words for words in found if words is not None)


def missing_opt_out(text: str, *, locales: Sequence[str | None]) -> str | None:
    """Return the sentence by which a marketing SMS says how to opt out, if it lacks it.

    In one of the languages is enough.
    """
    sentences = [layout_words(locale)["sms_opt_out"] for locale in locales]
    has_one = any(sentence.casefold() in text.casefold() for sentence in sentences)
    return None if has_one else sentences[0]


@lru_cache(maxsize=256)
def _shipped_languages(name: str) -> tuple[str, ...]:
    """Return the languages in which a template or the layout is shipped, besides its own."""
    folder = _folder(name, DEFAULT_LANGUAGE)
    if not folder.is_dir():
        return ()
    return tuple(sorted(f.name for f in folder.iterdir() if STORED_LANGUAGE.fullmatch(f.name)))


def shipped_texts(name: str) -> dict[str, dict[str, str]]:
    """Return the shipped parts of a template by language. Empty if there is no such template."""
    if not TEMPLATE_NAME.fullmatch(name):
        return {}
    found = {
        language: {
            part.value: text for part in Part if (text := read_shipped(name, part, language))
        }
        for language in (DEFAULT_LANGUAGE, *_shipped_languages(name))
    }
    return {language: parts for language, parts in found.items() if parts}


@lru_cache(maxsize=256)
def _read_layout_words(language: str) -> Mapping[str, str] | None:
    path = _folder(LAYOUT, language) / LAYOUT_WORDS_FILE
    if not path.is_file():
        return None
    found: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _folder(name: str, language: str) -> Path:
    folder = Path(settings.BASE_DIR) / "templates" / "notifications" / name
    return folder if language == DEFAULT_LANGUAGE else folder / language


Parts = Mapping[str, Mapping[str, str]]  # Texts by language and part


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a type's template. The shipped version has neither dates nor an author."""

    type: str
    number: int
    parts: Parts
    note: str = ""
    created_at: datetime | None = None
    created_by: str | None = None
    published_at: datetime | None = None


class UnknownVersionError(LookupError):
    """The type has no such version."""


class VersionConflictError(Exception):
    """Too many versions of one type are created at the same time. The call may be repeated."""


def create_version(
    *, type_slug: str, parts: Parts, note: str, created_by: str, now: datetime
) -> Version:
    """Store linted parts as the next version, unpublished. Raises VersionConflictError."""
    for _ in range(MAX_INSERT_ATTEMPTS):
        newest = list_versions(type_slug=type_slug, limit=1)
        number = newest[0].number + 1 if newest else 1
        document: TemplateVersionDocument = {
            "_id": version_id(type_slug, number),
            "type": type_slug,
            "number": number,
            "parts": {language: dict(texts) for language, texts in parts.items()},
            "note": note,
            "created_at": now,
            "created_by": created_by,
        }
        try:
            TEMPLATE_VERSIONS().insert_one(document)
        except DuplicateKeyError:
            continue
        return _parse_version(document)
    raise VersionConflictError


def get_version(*, type_slug: str, number: int) -> Version | None:
    """Return a version, or None if it doesn't exist."""
    if number == SHIPPED_VERSION:
        parts = shipped_texts(type_slug)
        return Version(type=type_slug, number=SHIPPED_VERSION, parts=parts) if parts else None
    document = TEMPLATE_VERSIONS().find_one({"_id": version_id(type_slug, number)})
    return _parse_version(document) if document else None


def list_versions(
    *, type_slug: str, limit: int, below: int | None = None, above: int | None = None
) -> list[Version]:
    """Return up to ``limit`` versions, below or above a number, newest first."""
    id_range = {
        "$gt": version_id(type_slug, above or SHIPPED_VERSION),
        "$lt": f"{type_slug};" if below is None else version_id(type_slug, below),
    }
    upwards = above is not None
    found = TEMPLATE_VERSIONS().find({"_id": id_range})
    cursor = found.sort("_id", 1 if upwards else -1).limit(limit)
    versions = [_parse_version(document) for document in cursor]
    return versions[::-1] if upwards else versions


def read_versions(numbers: Mapping[str, int]) -> dict[str, Parts]:
    """Return the texts of one version of each type, in one read."""
    ids = [version_id(slug, number) for slug, number in numbers.items()]
    found = TEMPLATE_VERSIONS().find({"_id": {"$in": ids}}) if ids else ()
    return {document["type"]: document["parts"] for document in found}


_tried: ContextVar[Version | None] = ContextVar("tried_version", default=None)


def parts_of(type_slug: str, number: int) -> Parts:
    """Return the texts of a stored version, cached. Raises UnknownVersionError."""
    tried = _tried.get()
    if tried is not None and (tried.type, tried.number) == (type_slug, number):
        return tried.parts
    return _read_parts(type_slug, number)


@contextmanager
def trying(type_slug: str, parts: Parts) -> Iterator[int]:
    """Let texts that aren't stored be rendered as stored ones are, within this context.

    They get the number of a version that no stored one has, and that is the same for the same
    texts.
    """
    number = -int(designs.revision_of(parts)[:12], 16) - 1
    token = _tried.set(Version(type=type_slug, number=number, parts=parts))
    try:
        yield number
    finally:
        _tried.reset(token)


@lru_cache(maxsize=MAX_CACHED_VERSIONS)
def _read_parts(type_slug: str, number: int) -> Parts:
    version = get_version(type_slug=type_slug, number=number)
    if version is None:
        raise UnknownVersionError
    return version.parts


def version_id(type_slug: str, number: int) -> str:
    """Return a version's ID. IDs sort by number, and are unique in a sharded collection."""
    return f"{type_slug}:{number:06}"


def _parse_version(document: TemplateVersionDocument) -> Version:
    return Version(
        type=document["type"],
        number=document["number"],
        parts=document["parts"],
        note=document["note"],
        created_at=document["created_at"],
        created_by=document["created_by"],
        published_at=document.get("published_at"),
    )


def find_template(name: str, version: int, part: Part, locale: str | None) -> Template | None:
    """Return a part's parsed template, or None if there is none. Raises TemplateError."""
    # A derived part is only used with its own source part: HTML written for one body isn't used
    # with the body of a newer version or a nearer language.
    located = locate(name, version, part, locale)
    return None if located is None else _find_parsed(located.text, part, located.is_turned)


def language_of(name: str, version: int, locale: str | None) -> str | None:
    """Return the language in which a body is found. None for the template's own, or without one."""
    try:
        located = locate(name, version, Part.BODY, locale)
    except TemplateError:
        return None
    return None if located is None or located.language == DEFAULT_LANGUAGE else located.language


def effective_texts(name: str, version: int) -> dict[str, dict[str, str]]:
    """Return the texts that a version uses, stored or shipped, by language.

    Raises TemplateError.
    """
    stored = get_version(type_slug=name, number=version)
    if stored is None and version != SHIPPED_VERSION:
        raise TemplateError("unknown_version", "The template version isn't stored.")
    return completed_texts(name, stored.parts if stored else {})


def completed_texts(name: str, parts: Parts) -> dict[str, dict[str, str]]:
    """Return the texts that a version with these parts would use, by language."""
    texts: dict[str, dict[str, str]] = {}
    if not TEMPLATE_NAME.fullmatch(name):
        return texts
    for language in dict.fromkeys([DEFAULT_LANGUAGE, *parts, *shipped_texts(name)]):
        locale = None if language == DEFAULT_LANGUAGE else language
        sources = [*_own_texts(parts, locale), *_shipped_texts(name, locale)]
        for part in Part:
            located = _nearest(sources, part)
            if located is not None and located.language == language:
                texts.setdefault(language, {})[part.value] = located.text
    return texts


def get_layout(locale: str | None, *, is_turned: bool = False) -> Template:
    """Return the HTML layout of emails, turned round for a text from right to left.

    Raises TemplateError.
    """
    return _parse_layout(layout_source(locale), is_turned)


def opening_tag(element: str) -> str:
    """Return an element's opening tag with the layout's style for it."""
    return inlining.opening_tag(element, css=inlining.extract_style_sheet(layout_source(None)))


def clear() -> None:
    """Clear all cached texts and templates."""
    caches = (read_shipped, _read_layout_words, _shipped_languages, _read_parts)
    for cached in (*caches, locate, _parse_layout, _find_parsed):
        cached.cache_clear()
    _parsed_parts.clear()


class Located(NamedTuple):
    """A text of a template, and where it was found."""

    text: str
    language: str
    is_turned: bool
    """The text is HTML that is written from right to left."""


_Texts = tuple[dict[Part, str], str]
"""Texts by part, and their language."""


# Clients choose the locale, so it isn't a key of the caches that are costly to fill.
@lru_cache(maxsize=8_192)
def locate(name: str, version: int, part: Part, locale: str | None) -> Located | None:
    """Return the text of a part in the nearest language, or None. Raises TemplateError."""
    if not TEMPLATE_NAME.fullmatch(name):
        return None
    return _nearest(_sources(name, version, locale), part)


def _nearest(sources: Iterable[_Texts], part: Part) -> Located | None:
    """Return the text of a part in the first of these texts that has it, or its source part."""
    source_part = part.source
    for texts, language in sources:
        if part in texts:
            is_turned = part.is_html and is_right_to_left(language)
            return Located(texts[part], language, is_turned)
        if source_part is not None and source_part in texts:
            return None
    return None


def _sources(name: str, version: int, locale: str | None) -> Iterator[_Texts]:
    """Yield the available texts with their language, the nearest language first."""
    if version != SHIPPED_VERSION:
        try:
            stored = parts_of(name, version)
        except UnknownVersionError:
            raise TemplateError("unknown_version", "The template version isn't stored.") from None
        yield from _own_texts(stored, locale)
    yield from _shipped_texts(name, locale)


def _own_texts(parts: Parts, locale: str | None) -> Iterator[_Texts]:
    for language in language_chain(locale, parts):
        texts = parts.get(language, {})
        yield {part: texts[part] for part in Part if part in texts}, language


def _shipped_texts(name: str, locale: str | None) -> Iterator[_Texts]:
    for language in language_chain(locale, _shipped_languages(name)):
        found = ((part, read_shipped(name, part, language)) for part in Part)
        yield {part: text for part, text in found if text is not None}, language


class _ParsedParts:
    """Parsed parts by source. Of several threads that need the same one, only one parses it."""

    def __init__(self) -> None:
        self._parsed: dict[tuple[Part, str, bool], Template | TemplateError] = {}
        self._parsing = [Lock() for _ in range(PARSING_LOCKS)]

    def get(self, source: str, part: Part, *, is_turned: bool) -> Template:
        """Return the parsed source. Raises TemplateError, also from memory."""
        key = (part, source, is_turned and part.is_html)
        found = self._parsed.get(key)
        if found is None:
            lockstep.rest()
            with self._parsing[hash(key) % PARSING_LOCKS]:
                found = self._parsed.get(key)
                if found is None:
                    found = self._add(key)
        if isinstance(found, TemplateError):
            raise TemplateError(found.code, str(found), line=found.line)
        return found

    def clear(self) -> None:
        """Forget all parts."""
        self._parsed.clear()

    def _add(self, key: tuple[Part, str, bool]) -> Template | TemplateError:
        part, source, is_turned = key
        try:
            parsed: Template | TemplateError = _parse(source, part, is_turned=is_turned)
        except TemplateError as error:
            parsed = error.with_traceback(None)
        if len(self._parsed) >= MAX_CACHED_TEMPLATES:
            # Another thread may remove the same one.
            self._parsed.pop(next(iter([*self._parsed])), None)
        self._parsed[key] = parsed
        return parsed


@lru_cache(maxsize=MAX_CACHED_TEMPLATES)
def _find_parsed(source: str, part: Part, is_turned: bool) -> Template:
    return _parsed_parts.get(source, part, is_turned=is_turned)


_parsed_parts = _ParsedParts()


def _parse(source: str, part: Part, *, is_turned: bool) -> Template:
    if not part.is_html:
        return Template(source, environment=part.environment)
    layout = layout_source(None)
    css = inlining.extract_style_sheet(turn_round(layout) if is_turned else layout)
    return Template(inlining.inline_fragment(source, css=css), environment=HTML_ENVIRONMENT)


@lru_cache(maxsize=16)
def _parse_layout(source: str, is_turned: bool) -> Template:
    layout = turn_round(source) if is_turned else source
    return Template(inlining.inline_layout(layout), environment=LAYOUT_ENVIRONMENT)


def layout_source(locale: str | None) -> str:
    """Return the built-in layout. Raises TemplateError if it is missing."""
    for language in language_chain(locale, _shipped_languages(LAYOUT)):
        source = read_shipped(LAYOUT, LAYOUT_PART, language)
        if source is not None:
            return source
    raise TemplateError("unknown_template", "The email layout is missing.")
