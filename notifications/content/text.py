"""Cleans, truncates, and splits text. Pure."""

import re
import unicodedata

_INVISIBLE = dict.fromkeys(
    [
        *range(0x202A, 0x202F),  # bidirectional embeddings and overrides
        *range(0x2066, 0x206A),  # bidirectional isolates
        0x200E,
        0x200F,
        0x061C,  # bidirectional marks
        0x200B,
        0xFEFF,  # zero-width spaces
        *range(0x2060, 0x2065),  # word joiner, invisible operators
    ]
)
_CONTROL = dict.fromkeys(
    code for code in (*range(0x20), *range(0x7F, 0xA0)) if not chr(code).isspace()
)
_BLANK_LINES = re.compile(r"\n\s*\n")
_JOINER = "\u200d"
_MARKS = ("Mn", "Me", "Mc", "Sk")
"""Unicode categories of characters that modify the preceding one: accents, skin tones."""
_FLAG_LETTERS = re.compile("[\U0001f1e6-\U0001f1ff]+\\Z")
"""Letters of flags, two of which are one flag."""
_TAGS = re.compile("[\U000e0020-\U000e007f]")
"""Invisible characters that make one flag of another, such as Scotland's."""
ELLIPSIS = "\u2026"
_BLANKS = re.compile(r"^ |  +", re.MULTILINE)
TAB_WIDTH = 4
_NO_BREAK_SPACE = "\u00a0"


def clean_line(text: str) -> str:
    """Return the text as one line without control, invisible, and direction-changing characters."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    return " ".join(without_invisible(text).translate(_CONTROL).split())


def without_invisible(text: str) -> str:
    """Remove zero-width and direction-changing characters, except joiners, which emoji need."""
    return text.translate(_INVISIBLE)


def without_blank_lines(text: str) -> str:
    """Return a text without blank lines."""
    return _BLANK_LINES.sub("\n", text.strip())


def truncate_words(text: str, *, limit: int) -> str:
    """Truncate a text to ``limit`` characters, with an ellipsis, after a whole word if possible."""
    if len(text) <= limit:
        return text
    end = limit - len(ELLIPSIS)
    while end > 0 and _is_within_character(text, end):
        end -= 1
    head = text[:end]
    words = re.match(r"(.*\S)\s", head + text[end], re.DOTALL)
    return (words[1] if words else head.rstrip()) + ELLIPSIS


def _is_within_character(text: str, at: int) -> bool:
    """Return whether a cut before ``at`` would separate what is shown as one character."""
    following = text[at]
    if _FLAG_LETTERS.match(following) and (letters := _FLAG_LETTERS.search(text[:at])):
        return len(letters[0]) % 2 == 1
    is_joined = _JOINER in text[at - 1 : at + 1] or _TAGS.match(following) is not None
    return is_joined or unicodedata.category(following) in _MARKS


def paragraphs(text: str) -> list[list[str]]:
    """Return the paragraphs of a text as lists of lines."""
    return [paragraph.split("\n") for paragraph in _BLANK_LINES.split(text)]


def show_blanks(line: str) -> str:
    """Return a line whose leading and repeated blanks and tabs HTML shows.

    The last blank of several stays one, so that the line can still be broken there.
    """
    if "\t" in line:
        line = line.expandtabs(TAB_WIDTH)
    if not line.startswith(" ") and "  " not in line:
        return line
    return _BLANKS.sub(_blanks_to_show, line)


def _blanks_to_show(run: re.Match[str]) -> str:
    count = len(run[0])
    return _NO_BREAK_SPACE if count == 1 else _NO_BREAK_SPACE * (count - 1) + " "
