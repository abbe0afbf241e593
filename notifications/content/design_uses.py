"""What uses the items of a design: types, and each other."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..catalog.designs import Design, Kind
from ..documents.catalog import NOTIFICATION_TYPES
from . import partials, translations, type_files
from .engine import TemplateError

Key = tuple[Kind, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Uses:
    """The types that use an item by themselves or by their texts, and the items that do."""

    types: tuple[str, ...] = ()
    items: tuple[Key, ...] = ()


def read_uses(design: Design) -> Mapping[Key, Uses]:
    """Return what uses each item of a design. Raises PyMongoError."""
    by_types: dict[Key, list[str]] = {}
    documents = list(NOTIFICATION_TYPES().find().sort("_id", 1))
    for document, content in zip(documents, type_files.read_contents(documents), strict=True):
        texts = [text for by_part in content.parts.values() for text in by_part.values()]
        named = [(Kind.BRAND, document.get("brand")), (Kind.LAYOUT, document.get("layout"))]
        used = [(kind, name) for kind, name in named if name]
        used += [(Kind.PARTIAL, name) for name in all_rendered(texts, design)]
        used += [(Kind.TRANSLATION, name) for name in all_languages(texts, design)]
        for key in used:
            by_types.setdefault(key, []).append(document["_id"])
    return {
        (kind, name): Uses(
            types=tuple(by_types.get((kind, name), ())),
            items=tuple(_items_with(kind, name, design)),
        )
        for kind in Kind
        for name in design.items(kind)
    }


def users_of(kind: Kind, name: str, design: Design) -> list[str]:
    """Return the items of a design that need another one, as words."""
    if kind is Kind.TRANSLATION:
        return []  # Another language takes its place, or the texts themselves are refused.
    return [f"the {by} {user}" for by, user in _items_with(kind, name, design)]


def all_rendered(texts: Iterable[str], design: Design) -> set[str]:
    """Return the partials that texts render, also by other partials."""
    found: set[str] = set()
    waiting = _rendered(texts)
    while waiting:
        found |= waiting
        inner = (text for name in waiting for text in _texts_of(name, design))
        waiting = _rendered(inner) - found
    return found


def all_keys(texts: Iterable[str], design: Design) -> set[str]:
    """Return the keys of the translations in texts, and in the partials that they render."""
    texts = [*texts]
    rendered = all_rendered(texts, design)
    return _keys_in([*texts, *(text for name in rendered for text in _texts_of(name, design))])


def all_languages(texts: Iterable[str], design: Design) -> list[str]:
    """Return the languages whose translations texts show, also by partials."""
    return _languages_with(all_keys(texts, design), design)


def _items_with(kind: Kind, name: str, design: Design) -> Iterator[Key]:
    if kind is Kind.LAYOUT:
        for other in design.brands:
            if design.brand(other).layout == name:
                yield Kind.BRAND, other
    for other in design.partials:
        if (kind, name) in _named_in([*_texts_of(other, design)], design):
            yield Kind.PARTIAL, other
    for other, html in design.layouts.items():
        if (kind, name) in _named_in([html], design):
            yield Kind.LAYOUT, other


def _named_in(texts: Sequence[str], design: Design) -> set[Key]:
    """Return the partials and the translations that texts use by themselves."""
    languages = _languages_with(_keys_in(texts), design)
    return {
        *((Kind.PARTIAL, name) for name in _rendered(texts)),
        *((Kind.TRANSLATION, language) for language in languages),
    }


def _languages_with(keys: Iterable[str], design: Design) -> list[str]:
    """Return the languages with a text of their own for one of the keys."""
    keys = [*keys]
    return [
        language
        for language in design.translations
        if any(design.translation(key, language) is not None for key in keys)
    ]


def _keys_in(texts: Iterable[str]) -> set[str]:
    return {key for text in texts for key in translations.keys_of(text)}


def _texts_of(name: str, design: Design) -> Iterator[str]:
    for by_kind in design.partials.get(name, {}).values():
        yield from by_kind.values()


def _rendered(texts: Iterable[str]) -> set[str]:
    """Return the partials that texts render. One that can't be read renders none."""
    found: set[str] = set()
    for text in texts:
        try:
            found |= partials.rendered_names(text)
        except TemplateError:
            continue  # It is refused where it is given.
    return found
