"""Fills WhatsApp's approved templates within Meta's limits."""

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from providers.contract import WhatsAppTemplateMessage

from ..catalog.types import WhatsAppTemplate
from .text import clean_line, truncate_words
from .values import written

MAX_BODY_LENGTH = 1_024
"""Characters of a template's body with its values."""
MAX_CODE_LENGTH = 15
"""Characters of the code of an authentication template."""
MIN_CUT_LENGTH = 20
"""No value is cut to fewer characters."""
PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_LINK = re.compile(r"\w://|\bwww\.", re.IGNORECASE)
_BLANK_LETTERS = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
) | frozenset(map(chr, range(0xFE00, 0xFE10)))
"""Letters, symbols, and marks that show nothing."""
_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs"})


class UnfilledTemplateError(ValueError):
    """A template can't be sent with this data. The text is a sentence for people, with no value."""


def fill(template: WhatsAppTemplate, data: Mapping[str, Any]) -> WhatsAppTemplateMessage:
    """Return a template with its values. Raises UnfilledTemplateError.

    A value without a visible character counts as missing, since Meta refuses it. A text is cut with
    an ellipsis if the body would be too long; a link or a code never is.
    """
    button = template.button
    values = {
        name: write(data.get(name))
        for name in (*template.parameters, *([button] if button else ()))
    }
    if missing := [name for name, text in values.items() if not is_visible(text)]:
        raise UnfilledTemplateError(f"No value for {', '.join(missing)}.")
    if button is not None and len(values[button]) > MAX_CODE_LENGTH:
        raise UnfilledTemplateError(f"{button} has more than {MAX_CODE_LENGTH} characters.")
    places = PLACEHOLDER.findall(template.body or "")
    wording = PLACEHOLDER.sub("", template.body or "")
    parameters = _fit(
        [values[name] for name in template.parameters],
        uses=[max(places.count(str(n)), 1) for n in range(1, len(template.parameters) + 1)],
        limit=MAX_BODY_LENGTH - len(wording),
    )
    return WhatsAppTemplateMessage(
        name=template.name,
        language=template.language,
        parameters=parameters,
        button=None if button is None else values[button],
    )


def write(value: Any) -> str:
    """Return a value as one line, as a text template writes it."""
    # Meta accepts no line breaks, tabs, or repeated spaces.
    return clean_line(written(value, is_html=False))


def is_visible(text: str) -> bool:
    """Return whether a text shows anything."""
    return any(
        unicodedata.category(character) not in _INVISIBLE and character not in _BLANK_LETTERS
        for character in text
    )


def _fit(values: Sequence[str], *, uses: Sequence[int], limit: int) -> tuple[str, ...]:
    """Cut texts, the longest first, until all have ``limit`` characters in the body together.

    ``uses`` are the places of each value in the body.
    """
    fitted = list(values)
    excess = sum(len(text) * count for text, count in zip(fitted, uses, strict=True)) - limit
    texts = [index for index, text in enumerate(fitted) if " " in text and not _LINK.search(text)]
    for index in sorted(texts, key=lambda index: -len(fitted[index])):
        if excess <= 0:
            break
        length, count = len(fitted[index]), uses[index]
        wanted = length - math.ceil(excess / count)
        fitted[index] = truncate_words(
            fitted[index], limit=max(wanted, min(length, MIN_CUT_LENGTH))
        )
        excess -= (length - len(fitted[index])) * count
    if excess > 0:
        raise UnfilledTemplateError(
            f"With these values the body has more than {MAX_BODY_LENGTH:,} characters."
        )
    return tuple(fitted)
