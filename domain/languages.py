"""Language tags: their usual form, their direction, and the nearest of several to a reader's. Pure.

The lookup is that of RFC 4647 with the data of CLDR: aliases (``iw`` is ``he``), likely scripts
(``zh-TW`` is ``zh-Hant``), and parents (``es-MX`` is read as ``es-419`` before ``es``).
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from babel.core import get_global

_LANGUAGE = re.compile(r"[a-z]{2,8}", re.ASCII)
_EXTENDED = re.compile(r"[a-z]{3}", re.ASCII)
_SCRIPT = re.compile(r"[a-z]{4}", re.ASCII)
_REGION = re.compile(r"[a-z]{2}|\d{3}", re.ASCII)
_VARIANT = re.compile(r"[a-z0-9]{5,8}|\d[a-z0-9]{3}", re.ASCII)
_POSIX_SUFFIX = re.compile(r"[.@].*", re.DOTALL)
_ALIASES = {"no": "nb"}
"""Codes that mean the same for a reader, beside CLDR's."""
_ALSO_READ = {"nn": "nb", "yue": "zh-Hant"}
"""A written language that the readers of another one read too."""
_RIGHT_TO_LEFT = frozenset(
    ["Adlm", "Arab", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"]
)
_NEAR_REGION, _LIKELY_REGION, _OTHER_REGION, _OTHER_SCRIPT = 100, 101, 102, 200
"""Ranks behind the tag and its parents: ``es-AR`` for ``es-MX``, ``en-US`` for ``en-ZA``."""


class _Tag(NamedTuple):
    language: str
    script: str  # The likely one if the tag names none; empty if unknown
    region: str = ""
    variants: tuple[str, ...] = ()


def normalize_language(text: str) -> str:
    """Return a language tag as its standard writes it, such as ``pt-BR`` for ``pt_br``.

    Extensions are cut, and withdrawn codes are replaced. A text of another form is unchanged.
    """
    return _read(text)[1] or text


def is_right_to_left(text: str) -> bool:
    """Return whether a language is written from right to left."""
    tag, _ = _read(text)
    return tag is not None and tag.script in _RIGHT_TO_LEFT


def find_nearest(locale: str | None, available: Iterable[str]) -> list[str]:
    """Return the tags that a reader of ``locale`` reads, the nearest first. Empty without any.

    A tag of another region counts, after the language itself; one of another script doesn't.
    """
    return [*_find_nearest(locale, tuple(available))] if locale else []


@lru_cache(maxsize=4_096)
def _find_nearest(locale: str, available: tuple[str, ...]) -> tuple[str, ...]:
    wanted, _ = _read(locale)
    if wanted is None:
        return ()
    ranked = [(rank, name) for name in available if (rank := _rank(wanted, name)) is not None]
    return tuple(name for _, name in sorted(ranked, key=lambda one: one[0]))


def _rank(wanted: _Tag, name: str) -> int | None:
    found, _ = _read(name)
    if found is None:
        return None
    chain = [*_chain(wanted)]
    if found in chain:
        return chain.index(found)
    for one in {(tag.language, tag.script) for tag in chain}:
        if (found.language, found.script) == one:
            if any(parent.region and parent in chain for parent in _chain(found)):
                return _NEAR_REGION
            is_likely = found.region == _likely(found.language, found.script).region
            return _LIKELY_REGION if is_likely else _OTHER_REGION
    is_plain = "-" not in normalize_language(name)
    return _OTHER_SCRIPT if is_plain and found.language == wanted.language else None


def _chain(tag: _Tag) -> Iterator[_Tag]:
    """Yield a tag and its parents, without those of no language."""
    for count in range(len(tag.variants), -1, -1):
        yield tag._replace(variants=tag.variants[:count])
    current = tag._replace(variants=())
    while current.region:
        current = _parent(current)
        yield current
    if (other := _ALSO_READ.get(tag.language)) and (also := _read(other)[0]):
        yield from _chain(also._replace(region=tag.region))


def _parent(tag: _Tag) -> _Tag:
    parents = get_global("parent_exceptions")
    for name in (f"{tag.language}_{tag.region}", f"{tag.language}_{tag.script}_{tag.region}"):
        parent = _read(str(parents.get(name, "")))[0]
        if parent is not None and parent.language == tag.language:
            return parent
    return tag._replace(region="")


@lru_cache(maxsize=4_096)
def _read(text: str) -> tuple[_Tag | None, str]:
    """Return a tag's parts and its usual form, or None and an empty text."""
    first, *words = _POSIX_SUFFIX.sub("", text).lower().replace("_", "-").split("-")
    if not _LANGUAGE.fullmatch(first) or first == "root":
        return None, ""
    if words and _EXTENDED.fullmatch(words[0]):
        # zh-yue is yue: an extended subtag is a language of its own.
        first = words.pop(0)
    alias = _ALIASES.get(first) or str(get_global("language_aliases").get(first, first))
    language, _, given = alias.partition("_")
    script = given if _SCRIPT.fullmatch(given.lower()) else ""
    region, variants = "", []
    if words and _SCRIPT.fullmatch(words[0]):
        script = words.pop(0).title()
    if words and _REGION.fullmatch(words[0]):
        region = _current_region(words.pop(0).upper())
    for word in words:
        if not _VARIANT.fullmatch(word):
            break
        variants.append(word)
    full = _likely(language, script, region)
    tag = _Tag(language, script or full.script, region, tuple(variants))
    return tag, "-".join(part for part in (language, script, region, *variants) if part)


def _current_region(code: str) -> str:
    successors = get_global("territory_aliases").get(code, ())
    return str(successors[0]) if len(successors) == 1 else code


def _likely(language: str, script: str = "", region: str = "") -> _Tag:
    known = get_global("likely_subtags")
    names = (f"{language}_{script}_{region}", f"{language}_{region}", f"{language}_{script}")
    for name in (*names, language):
        if found := known.get(name):
            _, likely_script, likely_region, *_ = [*str(found).split("_"), ""]
            return _Tag(language, likely_script, likely_region)
    return _Tag(language, script, region)
