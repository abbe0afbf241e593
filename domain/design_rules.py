"""What is worth a second look in partials, layouts, and brands. Pure.

As the rules of types, they are run by the service and, from a copy, by ``notify lint``.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .colours import MIN_CONTRAST, PALETTES, READ_ON, contrast
from .schema_changes import as_mapping
from .type_rules import Finding, Parts, Rule, find_in_source

HTML = "html"
"""The form of a partial's text that stands in HTML."""
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_RENDERED = re.compile(r"\{%-?\s*render\s+(?:'([^']*)'|\"([^\"]*)\")")


def find_in_partial(texts: Parts) -> Iterator[Finding]:
    """Yield what the rules find in a partial, by language and form."""
    for language, forms in texts.items():
        for form, source in forms.items():
            pointer = f"/texts/{language}/{form}"
            yield from find_in_source(source, is_html=form == HTML, pointer=pointer)


def find_in_layout(html: str) -> Iterator[Finding]:
    """Yield what the rules find in a layout."""
    yield from find_in_source(html, is_html=True, pointer="/html")


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
