"""Translations: messages of a design, put in place of ``{{ 'key' | t }}``. Pure.

As partials, they are put into the source before it is parsed, so that all limits and checks of a
template hold for what it says in each language. A message without a plural or select leaves a
source that the fast path renders. The message is a text, which each part escapes in its own way.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from domain import messages
from domain.messages import Argument, Choice, Message, MessageError, Number

from .engine import Escape, TemplateError, check_source, line_at
from .partials import STRING, Expanded, read_arguments
from .source import MAX_SOURCE, Kind, Piece, after, before

FAULT = "translation"
UNKNOWN = "unknown_translation"
_HAS_CALL = re.compile(r"\|\s*t\b")
_STRINGS = re.compile(STRING)
_CALL = re.compile(rf"\{{\{{-?\s*({STRING})\s*\|\s*t\s*(?::([\s\S]*?))?\s*-?\}}\}}\Z", re.ASCII)
_EXPECTED = "Expected {{ 'order.title' | t }}, or with values {{ 'order.items' | t: count: n }}."


@dataclass(frozen=True, slots=True)
class Translation:
    """A message, and the language in which it was found."""

    text: str
    language: str
    """As CLDR knows it, which decides about its plurals and numbers."""


FindTranslation = Callable[[str], Translation]
"""Returns the message with a key in the nearest language. Raises TemplateError."""


def has_translations(source: str) -> bool:
    """Return whether a source may have a translation."""
    return _HAS_CALL.search(source) is not None


def keys_of(source: str) -> frozenset[str]:
    """Return the keys of all translations that a source may have."""
    return frozenset(key for key, _ in messages.used_keys(source))


def expand(expanded: Expanded, find: FindTranslation, *, escape: Escape | None) -> Expanded:
    """Return a source with its translations. Raises TemplateError with a line of the source."""
    source = expanded.text
    if not has_translations(source):
        return expanded
    written = _Written(expanded)
    writer = _Writer(escape)
    at = 0
    for piece in _calls(source):
        line = line_at(source, piece.start)
        try:
            key, arguments = _read_call(source[piece.start : piece.end])
            shown = writer.write(key, find(key), arguments)
        except TemplateError as problem:
            raise TemplateError(problem.code, str(problem), line=expanded.line_of(line)) from None
        written.add(before(source, at, piece), line=line_at(source, at))
        written.add_message(shown, line=line)
        if written.length > MAX_SOURCE:
            reason = f"With its translations, a part has at most {MAX_SOURCE:,} characters."
            raise TemplateError("too_long", reason, line=expanded.line_of(line))
        at = after(source, piece)
    written.add(source[at:], line=line_at(source, at))
    return written.finish()


def _calls(source: str) -> Iterator[Piece]:
    """Yield the outputs of translations. Raises TemplateError for one anywhere else."""
    for piece in check_source(source):
        inner = source[piece.start : piece.end]
        if piece.kind is Kind.HIDDEN or not has_translations(_STRINGS.sub("''", inner)):
            continue
        if piece.kind is not Kind.OUTPUT:
            line = line_at(source, piece.start)
            raise TemplateError(FAULT, f"A translation is an output. {_EXPECTED}", line=line)
        yield piece


def _read_call(output: str) -> tuple[str, dict[str, str]]:
    """Return the key and the arguments of a translation. Raises TemplateError."""
    called = _CALL.match(output)
    if called is None:
        raise TemplateError(FAULT, f"{_EXPECTED} The key is a text, and no other filter follows.")
    given = (called[2] or "").strip()
    return called[1][1:-1], read_arguments(f", {given}" if given else "", fault=FAULT)


@dataclass(slots=True)
class _Writer:
    """Writes messages as Liquid."""

    escape: Escape | None
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def write(self, key: str, found: Translation, given: Mapping[str, str]) -> str:
        """Return the Liquid of a translation with its arguments. Raises TemplateError."""
        try:
            message = messages.parse(found.text)
        except MessageError as problem:
            raise TemplateError(FAULT, f"{key!r} in {found.language}: {problem}") from None
        if missing := sorted(messages.arguments(message) - given.keys()):
            name = missing[0]
            reason = f"{key!r} in {found.language} needs {name!r}: {{{{ {key!r} | t: {name}: … }}}}"
            raise TemplateError(FAULT, f"{reason}.")
        return self._message(message, found.language, given)

    def _message(self, message: Message, language: str, given: Mapping[str, str]) -> str:
        texts: list[str] = []
        for piece in message:
            match piece:
                case str():
                    texts.append(self._literal(piece))
                case Argument():
                    texts.append(f"{{{{ {given[piece.name]} }}}}")
                case Number():
                    value = given[piece.name]
                    texts.append(f"{{{{ {value} | format_number: '{language}' }}}}")
                case Choice():
                    texts.append(self._choice(piece, language, given))
        return "".join(texts)

    def _literal(self, text: str) -> str:
        # Liquid leaves out a block of blanks, and reads two braces as its own.
        if text.isspace():
            return f"{{{{ '{text}' }}}}"
        escaped = text if self.escape is None else str(self.escape(text))
        return escaped.replace("{", "{{ '{' }}")

    def _choice(self, choice: Choice, language: str, given: Mapping[str, str]) -> str:
        # No partial and, by its end, no variable of a template has such a name by chance.
        name = f"choice_{next(self._numbers)}_of_translation"
        exact = " ".join(selector for selector in choice.options if selector.startswith("="))
        form = f"plural_form: '{language}', '{exact}'" if choice.is_plural else "append: ''"
        whens = "".join(
            f"{{% when '{selector}' %}}{self._message(inner, language, given)}"
            for selector, inner in choice.options.items()
            if selector != messages.OTHER
        )
        other = self._message(choice.options[messages.OTHER], language, given)
        return (
            f"{{% assign {name} = {given[choice.name]} | {form} %}}"
            f"{{% case {name} %}}{whens}{{% else %}}{other}{{% endcase %}}"
        )


class _Written:
    """A text that is put together, with the origin of its lines in the template."""

    def __init__(self, expanded: Expanded) -> None:
        self._from = expanded
        self._texts: list[str] = []
        self._lines: list[int] = [1]
        self.length = 0

    def add(self, text: str, *, line: int) -> None:
        """Add a text of the source, which begins in a line of it."""
        self._texts.append(text)
        self.length += len(text)
        self._lines += range(line + 1, line + 1 + text.count("\n"))

    def add_message(self, text: str, *, line: int) -> None:
        """Add what stands for a line of the source."""
        self._texts.append(text)
        self.length += len(text)
        self._lines += [line] * text.count("\n")

    def finish(self) -> Expanded:
        """Return what was added."""
        return Expanded(
            "".join(self._texts),
            tuple(self._from.line_of(line) or line for line in self._lines),
            tuple(self._from.partial_of(line) for line in self._lines),
        )
