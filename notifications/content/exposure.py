"""Finds sensitive variables in URLs and HTML attributes. Pure.

Mail scanners, proxies, and browser histories record URLs, and a request for one reveals its value
to a server. Text is only shown to the recipient.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from urllib.parse import quote

from liquid.static_analysis import TemplateAnalysis

from ..catalog.types import MASK
from . import markup
from .inlining import LIQUID

CODE = "sensitive_in_url"
REASON = (
    "{name} is sensitive, and URLs and HTML attributes are recorded in many places. "
    "Put it into the text."
)
MAX_URL = 2_048
"""Characters before a value in which the beginning of its URL is searched."""
_CONDITION = re.compile(r"\{%-?\s*(?:if|elsif|unless|case|when)\b")
_SEPARATOR = re.compile(r"[\s<>\"]")
_URL = re.compile(r"://|\bwww\.|[a-z0-9]\.[a-z]{2,24}/|\b(?:mailto|tel|sms):", re.IGNORECASE)


def find_in_source(
    source: str, analysis: TemplateAnalysis, *, sensitive: frozenset[str], is_html: bool
) -> Iterator[tuple[str, int]]:
    """Yield the name and index of each sensitive variable that a template puts into a URL."""
    uses = [
        (name, used.span.index)
        for name in sensitive & analysis.globals.keys()
        for used in analysis.globals[name]
    ]
    if not uses:
        return
    liquid = [*LIQUID.finditer(source)]
    # The same length, so that positions stay, and without blanks, which would end a URL.
    plain = LIQUID.sub(lambda match: "x" * len(match[0]), source)
    places = _Places(plain, is_html=is_html)
    for name, index in sorted(uses, key=lambda use: use[1]):
        position = bisect_right(liquid, index, key=lambda match: match.start()) - 1
        piece = liquid[position] if position >= 0 else None
        if piece is None or _CONDITION.match(piece[0]):
            continue
        if places.is_exposed(piece.start()):
            yield name, index


def is_mask_exposed(text: str, *, is_html: bool) -> bool:
    """Return whether a rendered text has a mask in a URL, also one composed of variables."""
    positions = [found.start() for found in _MASK.finditer(text)]
    places = _Places(text, is_html=is_html) if positions else None
    return places is not None and any(places.is_exposed(position) for position in positions)


_MASK = re.compile(f"{re.escape(MASK)}|{re.escape(quote(MASK))}")


class _Places:
    """The URLs and HTML tags of a text."""

    def __init__(self, text: str, *, is_html: bool) -> None:
        self._text = text
        # The content of style and script elements counts as their tag.
        tags = [token for token in markup.tokenize(text) if token.name] if is_html else []
        self._starts = [token.start for token in tags]
        self._ends = [
            token.end if token.name in ("style", "script") else token.tag_end for token in tags
        ]

    def is_exposed(self, index: int) -> bool:
        """Return whether the character at ``index`` is part of a URL or in a tag."""
        position = bisect_right(self._starts, index) - 1
        if position >= 0 and index < self._ends[position]:
            return True
        *_, word = _SEPARATOR.split(self._text[max(0, index - MAX_URL) : index])
        return _URL.search(word) is not None
