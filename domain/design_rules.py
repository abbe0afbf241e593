"""What is worth a second look in partials, layouts, brands, and translations. Pure.

As the rules of types, they are run by the service and, from a copy, by ``notify lint``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from . import messages, plurals
from .colours import MIN_CONTRAST, PALETTES, READ_ON, contrast
from .messages import MessageError
from .schema_changes import MAX_FOUND, as_mapping, pointer_token
from .type_rules import OWN_LANGUAGE, Finding, Parts, Rule, find_in_source

HTML = "html"
"""The form of a partial's text that stands in HTML."""
_HIDDEN = re.compile(r"\{%-?\s*(comment|raw)\s*-?%\}.*?\{%-?\s*end\1\s*-?%\}", re.DOTALL)
_CHARACTER = re.compile(r"[^\n]")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_OPT_OUT = re.compile(r"\{(?:\{|%-?\s*render\b)[^{}]*\bunsubscribe_url\b")
"""Its output, or its place among the arguments of a partial."""
_RENDERED = re.compile(r"\{%-?\s*render\s+(?:'([^']*)'|\"([^\"]*)\")")


def find_in_partial(texts: Parts) -> Iterator[Finding]:
    """Yield what the rules find in a partial, by language and form."""
    for language, forms in texts.items():
        for form, source in forms.items():
            pointer = f"/texts/{language}/{form}"
            yield from find_in_source(source, is_html=form == HTML, pointer=pointer)


def find_in_layout(html: str, partials: Mapping[str, Parts]) -> Iterator[Finding]:
    """Yield what the rules find in a layout, given partials: those that it renders, or some."""
    found = find_in_source(html, is_html=True, pointer="/html")
    yield from found
    if all(each.code != Rule.SYNTAX for each in found) and not _may_opt_out(html, partials):
        reason = "A layout shows {{ unsubscribe_url }}, which marketing emails have."
        yield Finding(code=Rule.OPT_OUT_MISSING, pointer="/html", detail=reason)


def _may_opt_out(html: str, partials: Mapping[str, Parts]) -> bool:
    """Return whether a layout or its partials show the link to unsubscribe, as far as is known."""
    visible = _HIDDEN.sub(_blank, html)
    used = used_partials([visible], partials)
    inner = (
        text
        for name in used
        for forms in partials.get(name, {}).values()
        for text in forms.values()
    )
    is_shown = any(_OPT_OUT.search(text) for text in (visible, *inner))
    return is_shown or not used <= partials.keys()


def find_in_brand(brand: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what the rules find in a brand, whose colours may be left out."""
    given = as_mapping(brand.get("colours"))
    for mode, defaults in PALETTES.items():
        palette = {**defaults, **as_mapping(given.get(mode))}
        for text, ground in READ_ON:
            colours = palette[text], palette[ground]
            if not all(isinstance(each, str) and _COLOUR.fullmatch(each) for each in colours):
                continue  # The service says what is wrong with it.
            found = contrast(*colours)
            if found < MIN_CONTRAST:
                # Not rounded up to what would be enough.
                shown = int(found * 100) / 100
                yield Finding(
                    code=Rule.LOW_CONTRAST,
                    pointer=f"/brand/colours/{mode}/{text}",
                    detail=f"{text} on {ground} has a contrast of {shown}:1 in {mode} mode. "
                    f"Text needs {MIN_CONTRAST}:1.",
                )


def find_in_translations(language: str, all_texts: Mapping[str, Any]) -> list[Finding]:
    """Return what the rules find in the texts of a language, given those of all languages."""
    own = dict(messages.flat(as_mapping(all_texts.get(language))))
    found = (*_find_untranslated(language, own, all_texts), *_find_plurals(language, own))
    return [*islice(found, MAX_FOUND)]


def find_unknown_keys(texts: Parts, all_texts: Mapping[str, Any]) -> list[Finding]:
    """Return the translations that texts show, and that no language of their readers has.

    ``texts`` are by language and part, and so are the pointers. Without any translations, none is
    unknown: they may be elsewhere.
    """
    found = (
        replace(finding, pointer=f"/{language}/{part}")
        for language, by_part in (texts.items() if all_texts else ())
        for part, source in by_part.items()
        for finding in _find_unknown_keys(source, language, all_texts)
    )
    return [*islice(found, MAX_FOUND)]


def _find_unknown_keys(
    source: str, language: str, all_texts: Mapping[str, Any]
) -> Iterator[Finding]:
    used = [*messages.used_keys(_HIDDEN.sub(_blank, source))]
    # A text of another region is shown rather than none.
    near = [
        name
        for name in (all_texts if used else ())
        if name == OWN_LANGUAGE or name.partition("-")[0] == language.partition("-")[0]
    ]
    known = {key for name in near for key, _ in messages.flat(as_mapping(all_texts[name]))}
    for key, index in used:
        if key not in known:
            yield Finding(
                code=Rule.UNKNOWN_TRANSLATION,
                pointer="",
                line=source.count("\n", 0, index) + 1,
                detail=messages.unknown_reason(key, as_mapping(all_texts.get(OWN_LANGUAGE))),
            )


def _blank(found: re.Match[str]) -> str:
    return _CHARACTER.sub(" ", found[0])


def _find_untranslated(
    language: str, own: Mapping[str, Any], all_texts: Mapping[str, Any]
) -> Iterator[Finding]:
    if language == OWN_LANGUAGE:
        return
    wider = dict(messages.flat(as_mapping(all_texts.get(language.partition("-")[0]))))
    for key, _ in messages.flat(as_mapping(all_texts.get(OWN_LANGUAGE))):
        if key not in own and key not in wider:
            yield Finding(
                code=Rule.MISSING_TRANSLATION,
                pointer=_pointer_of(key),
                detail=f"{language} has no {key!r}: the text of the default language is used.",
            )


def _find_plurals(language: str, own: Mapping[str, Any]) -> Iterator[Finding]:
    for key, text in own.items():
        try:
            message = messages.parse(str(text))
        except MessageError as problem:
            yield Finding(code=Rule.SYNTAX, pointer=_pointer_of(key), detail=str(problem))
            continue
        for choice in messages.plurals(message):
            shown_in = plurals.FALLBACK if language == OWN_LANGUAGE else language
            if missing := plurals.missing_forms(choice.options.keys(), shown_in):
                yield Finding(
                    code=Rule.MISSING_PLURAL_FORM,
                    pointer=_pointer_of(key),
                    detail=f"{{{choice.name}, plural, …}} has no {' and no '.join(missing)}: "
                    f"'other' is shown, which is another form in {shown_in}.",
                )


def _pointer_of(key: str) -> str:
    return "/".join(("/texts", *map(pointer_token, key.split("."))))


def unused_finding() -> Finding:
    """Return what is found in a partial or a layout that nothing uses."""
    detail = "Nothing uses it: no type, and no other partial, layout, or brand."
    return Finding(code=Rule.UNUSED, pointer="", detail=detail)


def used_partials(texts: Iterable[str], partials: Mapping[str, Parts]) -> frozenset[str]:
    """Return the partials that texts of types and layouts render, also by other partials."""
    found: set[str] = set()
    waiting = _rendered(texts)
    while waiting:
        found |= waiting
        inner = (
            source
            for name in waiting
            for forms in partials.get(name, {}).values()
            for source in forms.values()
        )
        waiting = _rendered(inner) - found
    return frozenset(found)


def _rendered(texts: Iterable[str]) -> set[str]:
    return {found[1] or found[2] for text in texts for found in _RENDERED.finditer(text)}
