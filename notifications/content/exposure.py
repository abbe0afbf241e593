"""Finds sensitive variables in URLs and HTML attributes. Pure.

Mail scanners, proxies, and browser histories record URLs, and a request for one reveals its value
to a server. Text is only shown to the recipient.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from liquid.static_analysis import TemplateAnalysis

from ..catalog.types import MASK
from . import inlining, markup
from .source import Piece

CODE = "sensitive_in_url"
REASON = (
    "{name} is sensitive, and URLs and HTML attributes are recorded in many places. "
    "Put it into the text."
)
_CONDITIONS = frozenset({"if", "elsif", "unless", "case", "when"})
_WORD = re.compile(r"[^\s<>\"]+")
_URL = re.compile(r"://|\bwww\.|[a-z0-9]\.[a-z]{2,24}/|\b(?:mailto|tel|sms):", re.IGNORECASE)


def find_in_source(
    source: str,
    pieces: Sequence[Piece],
    analysis: TemplateAnalysis,
    *,
    sensitive: frozenset[str],
    is_html: bool,
) -> Iterator[tuple[str, int]]:
    """Yield the name and index of each sensitive variable that a template puts into a URL."""
    uses = [
        (name, used.span.index)
        for name in sensitive & analysis.globals.keys()
        for used in analysis.globals[name]
    ]
    if not uses:
        return
    # The same length, so that positions stay, and without blanks, which would end a URL.
    plain = inlining.replace_liquid(source, pieces, lambda piece: "x" * (piece.end - piece.start))
    places = _Places(plain, is_html=is_html)
    for name, index in sorted(uses, key=lambda use: use[1]):
        position = bisect_right(pieces, index, key=lambda piece: piece.start) - 1
        piece = pieces[position] if position >= 0 else None
        if piece is None or piece.name in _CONDITIONS:
            continue
        if places.is_exposed(piece.start):
            yield name, index


def is_mask_exposed(text: str, *, is_html: bool) -> bool:
    """Return whether a rendered text has a mask in a URL, also one composed of variables."""
    positions = [found.start() for found in _MASK.finditer(text)]
    places = _Places(text, is_html=is_html) if positions else None
    return places is not None and any(places.is_exposed(position) for position in positions)


_MASK = re.compile(f"{re.escape(MASK)}|{re.escape(quote(MASK))}")


class _Places:
    """The URLs and HTML tags of a text, found in one pass."""

    def __init__(self, text: str, *, is_html: bool) -> None:
        # The content of style and script elements counts as their tag.
        spans = [
            (token.start, token.end if token.name in ("style", "script") else token.tag_end)
            for token in (markup.tokenize(text) if is_html else ())
            if token.name
        ]
        spans += [
            (word.start() + url.end(), word.end())
            for word in _WORD.finditer(text)
            if (url := _URL.search(word[0]))
        ]
        self._starts, self._ends = _merge(spans)

    def is_exposed(self, index: int) -> bool:
        """Return whether the character at ``index`` is part of a URL or in a tag."""
        position = bisect_right(self._starts, index) - 1
        return position >= 0 and index < self._ends[position]


def _merge(spans: Iterable[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Return the starts and the ends of the union of spans, in order."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted(spans):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends
