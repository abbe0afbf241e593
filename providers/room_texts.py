"""Cuts of texts within the limits of the providers of rooms. Pure."""

from collections.abc import Iterable

ELLIPSIS = "\u2026"
PIECE = 400
"""Characters of a text that are written at once, so that no cut falls within markup."""


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
