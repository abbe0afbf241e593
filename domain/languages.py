"""Language tags: their usual form, their direction, and the nearest of several to a reader's. Pure.

The lookup is that of RFC 4647 with the data of CLDR: aliases (``iw`` is ``he``), likely scripts
(``zh-TW`` is ``zh-Hant``), and parents (``es-MX`` is read as ``es-419`` before ``es``).

Operating systems and frameworks write tags in forms of their own, which are read, too:
``sr_RS@latin`` (POSIX), ``b+sr+Latn`` (Android), ``sr_RS_#Latn`` and ``iw`` (Java), ``zh-CHT`` and
``az-AZ-Cyrl`` (Windows), ``es-MEX`` (ISO 3166).
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from babel.core import get_global

_LANGUAGE = re.compile(r"[a-z]{2,3}", re.ASCII)
_SCRIPT = re.compile(r"[a-z]{4}", re.ASCII)
_REGION = re.compile(r"[a-z]{2}|\d{3}", re.ASCII)
_VARIANT = re.compile(r"[a-z0-9]{5,8}|\d[a-z0-9]{3}", re.ASCII)
_WITHOUT_VALUE = frozenset(["mis", "mul", "posix", "root", "und", "zxx"])
"""Codes of no language, and the variant of a programming language's own texts."""
_NO_LANGUAGE = _WITHOUT_VALUE | {"c"}
"""First words of what systems write for a reader whose language they don't know."""
_MODIFIERS = {"arabic": "Arab", "cyrillic": "Cyrl", "devanagari": "Deva", "latin": "Latn"}
"""What follows ``@`` in the locales of POSIX, as scripts."""
_EXTENDED_PREFIXES = frozenset(["ar", "kok", "lv", "ms", "sgn", "sw", "uz", "zh"])
"""Languages with extended subtags, by RFC 5646: ``zh-yue`` is ``yue``."""
_WHOLE = {
    "zh-chs": "zh-Hans",
    "zh-cht": "zh-Hant",
    "no-no-ny": "nn-NO",
    "art-lojban": "jbo",
    "en-gb-oed": "en-GB-oxendict",
    **{f"i-{name}": name for name in ("ami", "bnn", "pwn", "tao", "tay", "tsu")},
    **{f"i-{name}": "und" for name in ("default", "enochian", "mingo")},
    "i-klingon": "tlh",
    "i-hak": "hak",
    "i-lux": "lb",
    "i-navajo": "nv",
    "no-bok": "nb",
    "no-nyn": "nn",
    "zh-guoyu": "zh",
    "zh-hakka": "hak",
    "zh-min-nan": "nan",
    "zh-xiang": "hsn",
    "sr-sp-latn": "sr-Latn-RS",
    "sr-sp-cyrl": "sr-Cyrl-RS",
}
"""Tags that mean something else than their parts: Windows', Java's, and grandfathered ones."""
_ALIASES = {"no": "nb"}
"""Codes that mean the same for a reader, beside CLDR's."""
_ALSO_READ: Mapping[str, Sequence[str]] = {
    "nb": ("nn", "da"),
    "nn": ("nb", "da"),
    "da": ("nb",),
    "bs": ("hr",),
    "hr": ("bs",),
    "gsw": ("de",),
    "lb": ("de",),
    "id": ("ms",),
    "ltg": ("lv",),
    "vro": ("et",),
    **dict.fromkeys(
        ["cdo", "cjy", "gan", "hak", "hsn", "lzh", "mnp", "nan", "wuu", "yue"], ("zh",)
    ),
    **dict.fromkeys(
        ["acm", "aeb", "afb", "apc", "arq", "ars", "ary", "arz", "ayl", "ayn"], ("ar",)
    ),
}
"""Languages that readers of another one read as well, in the same script: of CLDR's data for
matching languages, those next to each other, without languages that people had to learn."""
_RIGHT_TO_LEFT = frozenset(
    ["Adlm", "Arab", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"]
)
_NEAR_REGION, _LIKELY_REGION, _OTHER_REGION, _OTHER_SCRIPT = 100, 101, 102, 200
_OTHER_LANGUAGE = 1_000
"""Ranks behind the tag and its parents: ``es-AR`` for ``es-MX``, ``en-US`` for ``en-ZA``."""
_SHORTEST_WORD = 2
"""Characters of a word. A single one begins an extension."""


class _Tag(NamedTuple):
    language: str
    script: str  # The likely one if the tag names none; empty if unknown
    region: str = ""
    variants: tuple[str, ...] = ()


def normalize_language(text: str) -> str:
    """Return a language tag as its standard writes it, such as ``pt-BR`` for ``pt_br``.

    Extensions are cut, and withdrawn codes are replaced. A text of another form is unchanged.
    """
    return find_tag(text) or text


def find_tag(text: str) -> str | None:
    """Return the tag of a text in its usual form, or None if it names no language, as ``C``."""
    return _read(text)[1] or None


def is_known(text: str) -> bool:
    """Return whether a tag begins with a language, or says that the language isn't known.

    Two letters are a language of ISO 639-1, which is closed. Three letters aren't looked up:
    CLDR doesn't have all of ISO 639-3, which grows each year. Longer words are no language.
    """
    words, _ = _words_of(text)
    first = words[0]
    if first in _NO_LANGUAGE:
        return first != "c" or len(words) == 1
    if len(first) == _SHORTEST_WORD:
        return first in _short_codes()
    return _LANGUAGE.fullmatch(first) is not None


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
    return tuple(name for _, name in sorted(ranked, key=lambda pair: pair[0]))


def _rank(wanted: _Tag, name: str) -> int | None:
    found, _ = _read(name)
    if found is None:
        return None
    also = _ALSO_READ.get(wanted.language, ())
    for number, candidate in enumerate(
        [wanted, *(wanted._replace(language=other) for other in also)]
    ):
        if (rank := _rank_within(candidate, found, name)) is not None:
            return number * _OTHER_LANGUAGE + rank
    return None


def _rank_within(wanted: _Tag, found: _Tag, name: str) -> int | None:
    """Return the rank of a tag of the same language, or None for another one."""
    chain = [*_chain(wanted)]
    if found in chain:
        return chain.index(found)
    if found[:2] == wanted[:2]:
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
    words, modifier = _words_of(text)
    first = words.pop(0)
    if not _LANGUAGE.fullmatch(first) or first in _WITHOUT_VALUE:
        return None, ""
    if words and _is_extended(first, words[0]):
        first = words.pop(0)
    alias = _ALIASES.get(first) or str(get_global("language_aliases").get(first, first))
    language, script, region = _parts_of_alias(alias)
    variants: list[str] = []
    is_placed = False
    for word in [*words, *modifier]:
        if word.title() in _scripts() and not variants:
            # Windows and Java write it behind the region.
            script = word.title()
        elif not is_placed and (code := _region_of(word, language)):
            region, is_placed = code, True
        elif _VARIANT.fullmatch(word):
            variants += [] if word in _WITHOUT_VALUE else [word]
        elif len(word) < _SHORTEST_WORD:
            break
    full = _likely(language, script, region)
    tag = _Tag(language, script or full.script, region, tuple(variants))
    return tag, "-".join(part for part in (language, script, region, *variants) if part)


@cache
def _short_codes() -> frozenset[str]:
    """Return the languages of two letters, withdrawn ones included."""
    names = {*get_global("likely_subtags"), *get_global("language_aliases")}
    return frozenset(name for name in names if len(name) == _SHORTEST_WORD)


@cache
def _scripts() -> frozenset[str]:
    """Return the scripts of CLDR's likely subtags."""
    words = {word for tag in get_global("likely_subtags").values() for word in tag.split("_")}
    return frozenset(word for word in words if _SCRIPT.fullmatch(word.lower()))


def _words_of(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a tag in small letters, and what its modifier means."""
    plain = text.lower().removeprefix("b+").replace("+", "-") if text[:2] == "b+" else text.lower()
    name, _, modifier = plain.partition("@")
    tag = name.partition(".")[0].replace("_", "-")
    words = (_WHOLE.get(tag) or tag).lower().split("-")
    script = _MODIFIERS.get(modifier)
    variant = [modifier] if modifier == "valencia" else []
    words = [word.removeprefix("#") for word in words]
    return [words[0], *filter(None, words[1:])], [script.lower()] if script else variant


def _is_extended(language: str, word: str) -> bool:
    """Return whether a word is a language within a language, and no region of three letters."""
    return (
        language in _EXTENDED_PREFIXES
        and re.fullmatch(r"[a-z]{3}", word) is not None
        and word.upper() not in get_global("territory_aliases")
    )


def _parts_of_alias(alias: str) -> tuple[str, str, str]:
    language, *rest = alias.split("_")
    script = next((part for part in rest if _SCRIPT.fullmatch(part.lower())), "")
    region = next((part for part in rest if _REGION.fullmatch(part.lower())), "")
    return language, script, region


def _region_of(word: str, language: str) -> str:
    """Return the code in use of a region, also of one in three letters. Empty for no region."""
    code = word.upper()
    successors = get_global("territory_aliases").get(code, ())
    if not successors:
        return code if _REGION.fullmatch(word) else ""
    likely = _likely(language).region
    return likely if likely in successors else str(successors[0])


def _likely(language: str, script: str = "", region: str = "") -> _Tag:
    known = get_global("likely_subtags")
    names = (f"{language}_{script}_{region}", f"{language}_{region}", f"{language}_{script}")
    for name in (*names, language):
        if found := known.get(name):
            _, likely_script, likely_region, *_ = [*str(found).split("_"), ""]
            return _Tag(language, likely_script, likely_region)
    return _Tag(language, script, region)
