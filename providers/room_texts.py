"""Parts and cuts of texts, within the limits of the providers of rooms. Pure."""

import re
from collections.abc import Iterable

ELLIPSIS = "\u2026"
PIECE = 400
"""Characters of a text that are written at once, so that no cut falls within markup."""


_ENDS_LINK = re.compile(r"[()\\]")


def trimmed(text: str) -> tuple[str, str, str]:
    """Return the space before a text, the text, and the space after it. Markers enclose no space.

    A text of space alone is the space before an empty one.
    """
    inner = text.strip()
    before = text.partition(inner)[0] if inner else text
    return before, inner, text[len(before) + len(inner) :]


def link_target(address: str) -> str:
    """Return an address as it stands in the brackets of a link in Markdown."""
    return _ENDS_LINK.sub(lambda found: f"%{ord(found[0]):02X}", address)


def shorten(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters. A cut one ends with an ellipsis."""
    return text if len(text) <= most else text[: most - len(ELLIPSIS)].rstrip() + ELLIPSIS


def fit(pieces: Iterable[str], most: int) -> str:
    """Join pieces as far as they fit, and end with an ellipsis if one doesn't."""
    text = ""
    for piece in pieces:
        if len(text) + len(piece) > most - len(ELLIPSIS):
            return text.rstrip() + ELLIPSIS
        text += piece
    return text
