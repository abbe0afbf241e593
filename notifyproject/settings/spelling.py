"""How the value of a variable is spelled: what a file, a shell, or a template leaves in it. Pure.

No text that this module returns has the value, which may be a secret.
"""

import re
import unicodedata

_QUOTES = {'"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u2018": "\u2019", "\u201e": "\u201c"}
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|\$\([^)]*\)|\$[A-Z_]{2,}|\{\{.*\}\}|<[^<>@]*>")
_COMMENT = re.compile(r"\s#(\s|\Z)")
_JOINERS = frozenset("\u200c\u200d")
"""Invisible characters that belong to words of Persian and Hindi, and to emoji."""
_LINE_BREAKS = frozenset("\r\n\v\f\x85\u2028\u2029")


def ends_problem(text: str) -> str | None:
    """Return which blank or invisible character a value begins or ends with, or None."""
    if not text.strip():
        return "has only blanks"
    for verb, character in (("begins with", text[0]), ("ends in", text[-1])):
        if _is_blank(character):
            return f"{verb} {_called(character)}"
    return None


def leftover_problem(text: str) -> str | None:
    """Return what is left of a file, a shell, or a template in a value, or None."""
    if problem := ends_problem(text):
        return problem
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1]:
        return "is in quotes, which are a part of the value here"
    if _PLACEHOLDER.fullmatch(text):
        return "is a placeholder that nothing has replaced"
    if _COMMENT.search(text):
        return "has a comment, which is a part of the value here"
    inside = (
        character
        for character in text
        if unicodedata.category(character)[0] == "C" and character not in _JOINERS
    )
    if (found := next(inside, None)) is not None:
        return f"contains {_called(found)}"
    return None


def _is_blank(character: str) -> bool:
    return character.isspace() or unicodedata.category(character)[0] in "CZ"


def _called(character: str) -> str:
    if character in _LINE_BREAKS:
        return "a line break"
    return "a space" if character == " " else f"the invisible character U+{ord(character):04X}"
