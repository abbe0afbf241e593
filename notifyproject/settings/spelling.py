"""How the value of a variable is spelled: what a file, a shell, or a template leaves in it. Pure.

No text that this module returns has the value, which may be a secret.
"""

import re
import unicodedata

import msgspec
from msgspec import inspect

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
    for verb, one in (("begins with", text[0]), ("ends in", text[-1])):
        if _is_blank(one):
            return f"{verb} {_called(one)}"
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
    inside = (one for one in text if unicodedata.category(one)[0] == "C" and one not in _JOINERS)
    if (found := next(inside, None)) is not None:
        return f"contains {_called(found)}"
    return None


def expectation(kind: inspect.Type) -> str:
    """Return what the text of a variable of this type must be."""
    description = None
    while isinstance(kind, inspect.Metadata):
        extra = kind.extra_json_schema or {}
        description, kind = description or extra.get("description"), kind.type
    if description is not None:
        return str(description)
    match kind:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType(ge=low, le=high):
            return f"a whole number{_range(low, high)}, without a unit"
        case inspect.FloatType(ge=low, le=high):
            return f"a number{_range(low, high)}, without a unit"
        case inspect.LiteralType(values=words):
            return f"one of {' | '.join(map(str, words))}"
        case inspect.StrType(min_length=low, max_length=high):
            return f"a text{_range(low, high)} characters long"
    raise TypeError(f"no variable has the type {kind}")


def converts(text: str, hint: object) -> bool:
    """Return whether the text is a value of the type."""
    try:
        msgspec.convert(text, hint, strict=False)
    except msgspec.ValidationError:
        return False
    return True


def _range(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low} to {high}"
    return f" of at least {low}" if low is not None else f" of at most {high}" if high else ""


def _is_blank(one: str) -> bool:
    return one.isspace() or unicodedata.category(one)[0] in "CZ"


def _called(one: str) -> str:
    if one in _LINE_BREAKS:
        return "a line break"
    return "a space" if one == " " else f"the invisible character U+{ord(one):04X}"
