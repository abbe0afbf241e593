"""What becomes of rendered text before it is sent: cleaned, cut, made into paragraphs. Pure."""

import re
import unicodedata

_INVISIBLE = dict.fromkeys(
    [
        *range(0x202A, 0x202F),  # bidirectional embeddings and overrides
        *range(0x2066, 0x206A),  # bidirectional isolates
        *(0x200E, 0x200F, 0x061C),  # bidirectional marks
        *(0x200B, 0xFEFF),  # zero-width spaces
        *range(0x2060, 0x2065),  # word joiner, invisible operators
    ]
)
_CONTROL = dict.fromkeys(
    code for code in (*range(0x20), *range(0x7F, 0xA0)) if not chr(code).isspace()
)
_BLANK_LINES = re.compile(r"\n\s*\n")
_JOINER = "\u200d"
_MARKS = ("Mn", "Me", "Mc", "Sk")
"""Categories of characters that belong to the one before them: accents, skin tones."""
ELLIPSIS = "\u2026"


def clean_line(text: str) -> str:
    """Return ``text`` as one line without control, invisible and direction-changing characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join(without_invisible(text).translate(_CONTROL).split())


def without_invisible(text: str) -> str:
    """Return ``text`` without zero-width and direction-changing characters.

    The joiners that emoji and some scripts are written with stay.
    """
    return text.translate(_INVISIBLE)


def without_blank_lines(text: str) -> str:
    """Return ``text`` without blank lines, for where there is little room."""
    return _BLANK_LINES.sub("\n", text.strip())


def truncate_words(text: str, *, limit: int) -> str:
    """Return ``text``, cut to ``limit`` characters with an ellipsis after a whole word.

    One that is longer than the limit is cut between two letters as people see them.
    """
    if len(text) <= limit:
        return text
    end = limit - len(ELLIPSIS)
    while end > 0 and _belongs_together(text[end - 1], text[end]):
        end -= 1
    head = text[:end]
    words = re.match(r"(.*\S)\s", head + text[end], re.DOTALL)
    return (words[1] if words else head.rstrip()) + ELLIPSIS


def paragraphs(text: str) -> list[list[str]]:
    """Return the paragraphs of ``text`` as lists of lines."""
    return [paragraph.split("\n") for paragraph in _BLANK_LINES.split(text)]


def _belongs_together(left: str, right: str) -> bool:
    return _JOINER in (left, right) or unicodedata.category(right) in _MARKS
