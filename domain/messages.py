"""Translated messages: a part of ICU MessageFormat, read with limits. Pure.

``Hello {name}``, ``{count, plural, =0 {nothing} one {# item} other {# items}}``, and
``{role, select, admin {you} other {somebody}}``. What the service doesn't do is refused, not
ignored. The command ``notify lint`` has a copy of this module.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

MAX_TEXT = 4_000
MAX_CHOICES = 3
"""Choices inside of each other."""
MAX_OPTIONS = 20
MAX_LEVELS = 8
MAX_TEXTS = 5_000
OTHER = "other"
CATEGORIES = ("zero", "one", "two", "few", "many", OTHER)
KEY = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_LITERAL = re.compile(r"[^'{}#]+")
_ARGUMENT = re.compile(r"\{\s*([A-Za-z_][A-Za-z0-9_]{0,63})\s*([},])", re.ASCII)
_KIND = re.compile(r"\s*([A-Za-z]+)\s*(,?)", re.ASCII)
_SELECTOR = re.compile(r"\s*([^\s{}',#]{1,64})\s*\{")
_END = re.compile(r"\s*\}")
_EXACT = re.compile(r"=(?:0|[1-9][0-9]{0,8})", re.ASCII)
_LIKE_ARGUMENT = re.compile(r"\{\s*[A-Za-z_]\w*\s*[,}]")


_USE = re.compile(r"""\{\{-?\s*('[^']*'|"[^"]*")\s*\|\s*t\b""")


class MessageError(ValueError):
    """A text that can't be read as a message."""


@dataclass(frozen=True, slots=True)
class Argument:
    """A value, as it is: ``{name}``."""

    name: str


@dataclass(frozen=True, slots=True)
class Number:
    """The number of the plural around it: ``#``."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Messages of which one is shown, by a number or by a text."""

    name: str
    is_plural: bool
    options: Mapping[str, "Message"]


Message = tuple[str | Argument | Number | Choice, ...]


@lru_cache(maxsize=4_096)
def parse(text: str) -> Message:
    """Return a text as a message. Raises MessageError."""
    if len(text) > MAX_TEXT:
        raise MessageError(f"At most {MAX_TEXT:,} characters.")
    return _Parser(text).parse()


def arguments(message: Message) -> frozenset[str]:
    """Return the names of the values that a message needs."""
    return frozenset(
        piece.name for piece in _pieces(message) if isinstance(piece, Argument | Choice)
    )


def plurals(message: Message) -> Iterator[Choice]:
    """Yield the choices by a number, also inside of others."""
    for piece in _pieces(message):
        if isinstance(piece, Choice) and piece.is_plural:
            yield piece


def flat(texts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each text of nested ones with its key, such as ``order.title``."""
    for name, inner in texts.items():
        key = f"{above}{name}"
        if isinstance(inner, Mapping):
            yield from flat(inner, f"{key}.")
        else:
            yield key, inner


def used_keys(source: str) -> Iterator[tuple[str, int]]:
    """Yield the key of each message that a template shows, and its place in the source."""
    for found in _USE.finditer(source):
        yield found[1][1:-1], found.start()


def unknown_reason(key: str, texts: Mapping[str, Any]) -> str:
    """Return why a key has no message, which isn't in these texts of the default language."""
    near = get_close_matches(key, [known for known, _ in flat(texts)], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"The default language has no translation {key!r}.{hint}"


def _pieces(message: Message) -> Iterator[str | Argument | Number | Choice]:
    for piece in message:
        yield piece
        if isinstance(piece, Choice):
            for inner in piece.options.values():
                yield from _pieces(inner)


class _Parser:
    """Reads a text once, from the beginning to its end."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._counted: list[str | None] = [None]
        """The argument of the nearest plural, for each message that is being read."""

    def parse(self) -> Message:
        """Return the whole text."""
        found = self._message()
        if self._at < len(self._text):
            raise MessageError("A '}' without its '{'. As a text, it is written in apostrophes.")
        return found

    def _message(self) -> Message:
        pieces: list[str | Argument | Number | Choice] = []
        literals: list[str] = []
        while self._at < len(self._text) and self._text[self._at] != "}":
            sign = self._text[self._at]
            if sign == "'":
                literals.append(self._quoted())
                continue
            if sign == "#" and (counted := self._number()) is not None:
                piece: Argument | Number | Choice = Number(counted)
                self._at += 1
            elif sign == "{":
                piece = self._argument()
            else:
                found = _LITERAL.match(self._text, self._at)
                literals.append(found[0] if found else sign)
                self._at += len(literals[-1])
                continue
            if literals:
                pieces.append("".join(literals))
                literals.clear()
            pieces.append(piece)
        if literals:
            pieces.append("".join(literals))
        return tuple(pieces)

    def _number(self) -> str | None:
        """Return what ``#`` stands for here, None if it is a text."""
        if self._counted[-1] == "":
            raise MessageError(
                "A '#' in a select inside of a plural is a text in ICU. Name the number, or put "
                "the plural into the select."
            )
        return self._counted[-1]

    def _quoted(self) -> str:
        """Read an apostrophe, and the text after it that it quotes."""
        text, at = self._text, self._at
        following = text[at + 1 : at + 2]
        if following == "'":
            self._at += 2
            return "'"
        if following not in ("{", "}") and not (following == "#" and self._counted[-1]):
            self._at += 1
            return "'"
        end = at + 1
        while (end := text.find("'", end)) >= 0 and text[end + 1 : end + 2] == "'":
            end += 2
        if end < 0:
            raise MessageError(
                f"The apostrophe before {following!r} begins a quotation that doesn't end. As a "
                "text, an apostrophe there is written twice: ''."
            )
        quoted = text[at + 1 : end].replace("''", "'")
        if _LIKE_ARGUMENT.search(quoted):
            raise MessageError(
                f"Between apostrophes, {quoted!r} is a text and no value. As a text, an apostrophe "
                "beside a brace is written twice: ''."
            )
        self._at = end + 1
        return quoted

    def _argument(self) -> Argument | Choice:
        found = _ARGUMENT.match(self._text, self._at)
        if found is None:
            raise MessageError(
                "After '{', a name is expected. As a text, it is written in apostrophes."
            )
        self._at = found.end()
        return self._choice(found[1]) if found[2] == "," else Argument(found[1])

    def _choice(self, name: str) -> Choice:
        kind = _KIND.match(self._text, self._at)
        if kind is None or kind[1] not in ("plural", "select") or not kind[2]:
            raise MessageError(
                f"{{{name}, …}} is neither a plural nor a select. Write dates and numbers by a "
                "filter of the template, and pass the text."
            )
        is_plural = kind[1] == "plural"
        if len(self._counted) > MAX_CHOICES:
            raise MessageError(f"At most {MAX_CHOICES} choices inside of each other.")
        self._counted.append(name if is_plural else ("" if self._counted[-1] is not None else None))
        self._at = kind.end()
        options: dict[str, Message] = {}
        while not (end := _END.match(self._text, self._at)):
            selector = self._selector(name, is_plural=is_plural)
            if selector in options:
                raise MessageError(f"{{{name}, …}} has {selector!r} twice.")
            options[selector] = self._message()
            if self._text[self._at : self._at + 1] != "}":
                raise MessageError(f"{{{name}, …}} doesn't end.")
            self._at += 1
        self._at = end.end()
        self._counted.pop()
        if OTHER not in options:
            raise MessageError(f"{{{name}, …}} needs {OTHER!r}.")
        if len(options) > MAX_OPTIONS:
            raise MessageError(f"{{{name}, …}} has more than {MAX_OPTIONS} options.")
        return Choice(name, is_plural, options)

    def _selector(self, name: str, *, is_plural: bool) -> str:
        found = _SELECTOR.match(self._text, self._at)
        if found is None:
            raise MessageError(f"{{{name}, …}} has an option without its text, or doesn't end.")
        selector = found[1]
        if is_plural and selector not in CATEGORIES and not _EXACT.fullmatch(selector):
            known = ", ".join(CATEGORIES)
            raise MessageError(
                f"{selector!r} is no option of a plural: these are =0, =1, …, {known}."
            )
        self._at = found.end()
        return selector
