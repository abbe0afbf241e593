"""Which text stands for a part of a message.

A stored version's before the files', and in each the nearest language first.
"""

from collections.abc import Iterator
from functools import lru_cache

from . import files, inlining, versions
from .engine import HTML, LAYOUT, Template, TemplateProblem
from .parts import DEFAULT_LANGUAGE, MADE_OF, TEMPLATE_NAME, Part, languages
from .versions import SHIPPED, UnknownVersion

PARSED = 2_048
"""Parts a process keeps parsed: 20 µs each to do again, 220 µs with HTML to inline."""


def find(name: str, version: int, part: Part, locale: str | None) -> Template | None:
    """Return the parsed template of a part; None if there is none.

    A part that is made of another where it is missing goes with that other: HTML that was written
    for one body is not looked for behind another body, of a newer version or a nearer language.

    Raises TemplateProblem if it cannot be parsed, or the version is not stored.
    """
    located = _locate(name, version, part, locale)
    return None if located is None else _parsed(located[0], part)


def language_of(name: str, version: int, locale: str | None) -> str | None:
    """Return the language a template's body is found in; None for its own, and for none."""
    try:
        located = _locate(name, version, Part.BODY, locale)
    except TemplateProblem:
        return None
    return None if located is None or located[1] == DEFAULT_LANGUAGE else located[1]


def in_effect(name: str, version: int) -> dict[str, dict[str, str]]:
    """Return every text that a version says to somebody, its own or the files', by language.

    Raises TemplateProblem if the version is not stored.
    """
    texts: dict[str, dict[str, str]] = {}
    for language in _languages_of(name, version):
        locale = None if language == DEFAULT_LANGUAGE else language
        for part in Part:
            located = _locate(name, version, part, locale)
            if located is not None and located[1] == language:
                texts.setdefault(language, {})[part.value] = located[0]
    return texts


def layout(locale: str | None) -> Template:
    """Return what goes around the HTML of every mail; raises TemplateProblem."""
    return _parsed_layout(_layout_source(locale))


def opening_tag(element: str) -> str:
    """Return an element's opening tag in the layout's style."""
    return inlining.opening_tag(element, css=inlining.style_sheet(_layout_source(None)))


def forget() -> None:
    """Read and parse everything anew at the next use."""
    for memory in (_locate, _parsed, _parsed_layout):
        memory.cache_clear()
    files.forget()
    versions.forget()


# Callers choose the locale: it is no key of what is costly to make.
@lru_cache(maxsize=8_192)
def _locate(name: str, version: int, part: Part, locale: str | None) -> tuple[str, str] | None:
    """Return the source of a part and its language."""
    if not TEMPLATE_NAME.fullmatch(name):
        return None
    basis = MADE_OF.get(part)
    for texts, language in _sources(name, version, locale):
        if part in texts:
            return texts[part], language
        if basis is not None and basis in texts:
            return None
    return None


def _languages_of(name: str, version: int) -> list[str]:
    """Return the languages of a version and of the files, the template's own first."""
    stored = versions.get(type_slug=name, number=version)
    both = [stored.parts if stored else {}, files.everything(name)]
    return list(dict.fromkeys([DEFAULT_LANGUAGE, *(code for some in both for code in some)]))


def _sources(name: str, version: int, locale: str | None) -> Iterator[tuple[dict[Part, str], str]]:
    """Yield the texts there are, nearest first, each with its language."""
    chain = languages(locale)
    if version != SHIPPED:
        try:
            stored = versions.parts_of(name, version)
        except UnknownVersion:
            raise TemplateProblem(
                "unknown_version", "This version of the template is not stored any more."
            ) from None
        for language in chain:
            texts = stored.get(language, {})
            yield {part: texts[part] for part in Part if part in texts}, language
    for language in chain:
        found = ((part, files.read(name, part, language)) for part in Part)
        yield {part: text for part, text in found if text is not None}, language


@lru_cache(maxsize=PARSED)
def _parsed(source: str, part: Part) -> Template:
    if part is not Part.EMAIL_HTML:
        return Template(source)
    css = inlining.style_sheet(_layout_source(None))
    return Template(inlining.inline_fragment(source, css=css), environment=HTML)


@lru_cache(maxsize=16)
def _parsed_layout(source: str) -> Template:
    return Template(inlining.inline_layout(source), environment=LAYOUT)


def _layout_source(locale: str | None) -> str:
    for language in languages(locale):
        source = files.read(files.LAYOUT, Part.EMAIL_HTML, language)
        if source is not None:
            return source
    raise TemplateProblem("unknown_template", "The layout of mail is missing.")
