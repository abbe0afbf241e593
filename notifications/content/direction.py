"""The direction of a mail's text, and its layout turned round for one from right to left. Pure."""

import re
import unicodedata

from domain.languages import is_right_to_left

_SIDE = re.compile(r"\b(left|right)\b")
_FOUR_SIDES = re.compile(
    r"((?:padding|margin):\s*)([^\s;]+) ([^\s;]+) ([^\s;]+) ([^\s;]+)(?=\s*[;}])"
)
_STRONG = {"L": False, "R": True, "AL": True}
"""Unicode's strong directions, and whether they are from right to left."""


def is_text_right_to_left(text: str, *, language: str) -> bool:
    """Return the direction of the first letter that has one, or that of the language."""
    directions = (_STRONG.get(unicodedata.bidirectional(letter)) for letter in text[:1_000])
    return next(
        (direction for direction in directions if direction is not None), is_right_to_left(language)
    )


def turn_round(layout: str) -> str:
    """Return an email layout with its sides exchanged, and its direction named.

    Also on the outermost table, because webmail drops the attributes of ``html``.
    """
    turned = _SIDE.sub(lambda side: "right" if side[0] == "left" else "left", layout)
    turned = _FOUR_SIDES.sub(r"\1\2 \5 \4 \3", turned)
    return turned.replace("<html ", '<html dir="rtl" ', 1).replace(
        'class="page"', 'class="page" dir="rtl"', 1
    )
