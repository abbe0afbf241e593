"""Partials: texts that templates and layouts share, put in place of ``{% render 'name' %}``. Pure.

They are put into the source before it is parsed, so that every limit and every check of a template
holds for what it renders: length, outputs and tags, nesting, work, unknown variables, secrets in
URLs, and where HTML is closed. A partial sees the variables of the request and its arguments, and
what it assigns is its own: its names are changed on the way.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from .engine import TemplateError, check_source, line_at
from .source import MAX_SOURCE, Kind, Piece, after, before

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
MAX_RENDERED = 100
"""Partials that a template renders, each time counted."""
MAX_NESTED = 8
"""Partials that render each other."""
FAULT = "partial"
STRING = r"'[^']*'|\"[^\"]*\""
_PATH = r"[A-Za-z_][\w-]*(?:\.[\w-]+|\[(?:\d+|'[^']*'|\"[^\"]*\")\])*"
_VALUE = rf"{STRING}|-?\d+(?:\.\d+)?|{_PATH}"
_ARGUMENT = re.compile(rf"\s*,\s*([A-Za-z_]\w*)\s*:\s*({_VALUE})\s*", re.ASCII)
_CALL = re.compile(rf"\{{%-?\s*render\s+({STRING})\s*((?:,[\s\S]*)?)\Z", re.ASCII)
_HAS_CALL = re.compile(r"\{%-?\s*render\b")
_WORD = re.compile(rf"{STRING}|((?<!\.)\.\s*)?([A-Za-z_][\w-]*)(\s*:)?", re.ASCII)
_TAG_NAME = re.compile(r"\{%-?\s*\w+")
_DEFINING = re.compile(r"\{%-?\s*(?:assign|capture|for|tablerow)\s+([A-Za-z_][\w-]*)", re.ASCII)
_OPERATORS = ["and", "by", "contains", "else", "for", "if", "in", "not", "or", "unless", "with"]
_LITERALS = ["blank", "empty", "false", "nil", "null", "true"]
_OF_LOOPS = ["cols", "forloop", "limit", "offset", "reversed", "tablerowloop"]
_WORDS = frozenset([*_OPERATORS, *_LITERALS, *_OF_LOOPS, "as"])
"""Words of expressions that are no variables."""
_TOO_LONG = f"With its partials, a part has at most {MAX_SOURCE:,} characters."
_REFUSED_TAGS = frozenset(["liquid", "increment", "decrement"])

FindPartial = Callable[[str], str | None]
"""Returns the text of a partial in the language and kind of the template, None if unknown."""


@dataclass(frozen=True, slots=True)
class Expanded:
    """A source with its partials in place, and the line that each of its lines comes from."""

    text: str
    lines: tuple[int, ...] = ()
    partials: tuple[str | None, ...] = ()
    """The partial that the template renders there, for each line."""

    def line_of(self, line: int | None) -> int | None:
        """Return the line of the template itself."""
        return self.lines[line - 1] if line is not None and line <= len(self.lines) else line

    def partial_of(self, line: int | None) -> str | None:
        """Return the partial that the template renders in a line, None without one."""
        return self.partials[line - 1] if line is not None and line <= len(self.partials) else None


def has_partials(source: str) -> bool:
    """Return whether a source may render a partial."""
    return _HAS_CALL.search(source) is not None


def rendered_names(source: str) -> frozenset[str]:
    """Return the partials that a source renders itself. Raises TemplateError."""
    if not has_partials(source):
        return frozenset()
    return frozenset(
        _read_call(source[piece.start : piece.end])[0]
        for piece in check_source(source)
        if piece.name == "render"
    )


def expand(source: str, find: FindPartial) -> Expanded:
    """Return a source with its partials. Raises TemplateError with a line of the source."""
    if not has_partials(source):
        return Expanded(source)
    return _Expansion(find).expand(source)


@dataclass(slots=True)
class _Expansion:
    find: FindPartial
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _own: frozenset[str] = frozenset()
    """The variables that the template makes."""

    def expand(self, source: str) -> Expanded:
        pieces = check_source(source)
        self._own = _defined(source, pieces)
        written, at = _Written(), 0
        for piece in pieces:
            if piece.name != "render":
                continue
            line = line_at(source, piece.start)
            try:
                name, arguments = _read_call(source[piece.start : piece.end])
                shown = self._render(name, arguments, ())
            except TemplateError as problem:
                raise TemplateError(problem.code, str(problem), line=line) from None
            written.add(before(source, at, piece), line=line_at(source, at))
            written.add_partial(shown, line=line, name=name)
            if written.length > MAX_SOURCE:
                raise TemplateError("too_long", _TOO_LONG, line=line)
            at = after(source, piece)
        written.add(source[at:], line=line_at(source, at))
        return written.finish()

    def _render(self, name: str, arguments: Mapping[str, str], around: tuple[str, ...]) -> str:
        if name in around:
            path = " → ".join([*around[around.index(name) :], name])
            raise TemplateError(FAULT, f"A partial can't render itself: {path}.")
        if len(around) >= MAX_NESTED:
            raise TemplateError(FAULT, f"At most {MAX_NESTED} partials render each other.")
        number = next(self._numbers)
        if number > MAX_RENDERED:
            raise TemplateError(FAULT, f"At most {MAX_RENDERED} partials are rendered.")
        source = self.find(name)
        if source is None:
            raise TemplateError("unknown_partial", f"Unknown partial {name!r}.")
        try:
            pieces = check_source(source)
            own = _defined(source, pieces)
            self._check(source, pieces, own, arguments)
        except TemplateError as problem:
            raise TemplateError(problem.code, f"In the partial {name!r}: {problem}") from None
        assigned = {key: f"{key}__{number}" for key in own}
        names = {**arguments, **assigned}
        # An argument that the partial assigns again is its own variable from the start.
        shown = "".join(
            f"{{% assign {assigned[key]} = {value} %}}"
            for key, value in arguments.items()
            if key in own
        )
        at = 0
        for piece in pieces:
            written = _rename(source[piece.start : piece.end], piece.kind, names)
            if piece.name == "render":
                shown += before(source, at, piece)
                written = self._render(*_read_call(written), (*around, name))
                at = after(source, piece)
            else:
                shown += source[at : piece.start]
                at = piece.end
            shown += written
            if len(shown) > MAX_SOURCE:
                raise TemplateError("too_long", _TOO_LONG)
        return shown + source[at:]

    def _check(
        self,
        source: str,
        pieces: list[Piece],
        own: frozenset[str],
        arguments: Mapping[str, str],
    ) -> None:
        """Refuse what a partial would share with its template other than by arguments."""
        for piece in pieces:
            if piece.name in _REFUSED_TAGS:
                raise TemplateError(FAULT, f"{piece.name!r} isn't a tag of partials.")
            inner = source[piece.start : piece.end]
            for name in _variables(inner, piece.kind):
                if name in self._own and name not in own and name not in arguments:
                    reason = f"{name!r} is a variable of the template. Pass it: {name}: {name}."
                    raise TemplateError(FAULT, reason)


class _Written:
    """A text that is put together, with the origin of its lines."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._lines = [1]
        self._partials: list[str | None] = [None]
        self.length = 0

    def add(self, text: str, *, line: int) -> None:
        """Add a text of the template, which begins in a line of it."""
        self._texts.append(text)
        self.length += len(text)
        for number in range(1, text.count("\n") + 1):
            self._lines.append(line + number)
            self._partials.append(None)

    def add_partial(self, text: str, *, line: int, name: str) -> None:
        """Add what a line of the template renders."""
        self._texts.append(text)
        self.length += len(text)
        self._partials[-1] = self._partials[-1] or name
        for _ in range(text.count("\n")):
            self._lines.append(line)
            self._partials.append(name)

    def finish(self) -> Expanded:
        """Return what was added."""
        return Expanded("".join(self._texts), tuple(self._lines), tuple(self._partials))


def _read_call(tag: str) -> tuple[str, dict[str, str]]:
    """Return the name and the arguments of a ``render`` tag. Raises TemplateError."""
    called = _CALL.match(tag.removesuffix("%}").removesuffix("-").rstrip())
    if called is None:
        reason = "Expected {% render 'name' %}, or with arguments {% render 'name', url: link %}."
        raise TemplateError(FAULT, reason)
    return called[1][1:-1], read_arguments(called[2], fault=FAULT)


def read_arguments(text: str, *, fault: str) -> dict[str, str]:
    """Return the arguments in a text such as ``, url: order.link``. Raises TemplateError."""
    arguments: dict[str, str] = {}
    at = 0
    while at < len(text):
        argument = _ARGUMENT.match(text, at)
        if argument is None:
            reason = "An argument is a name with a variable, a text, or a number: url: order.link."
            raise TemplateError(fault, reason)
        arguments[argument[1]] = argument[2]
        at = argument.end()
    return arguments


def _defined(source: str, pieces: list[Piece]) -> frozenset[str]:
    """Return the variables that a source makes."""
    found = (_DEFINING.match(source, piece.start) for piece in pieces if piece.kind is Kind.TAG)
    return frozenset(match[1] for match in found if match)


def _begin(piece: str, kind: Kind) -> int:
    """Return where the expression of an output or a tag begins, after the tag's name."""
    named = _TAG_NAME.match(piece) if kind is Kind.TAG else None
    return named.end() if named else 2


def _variables(piece: str, kind: Kind) -> Iterator[str]:
    """Yield the names in an output or a tag that are variables."""
    if kind is not Kind.HIDDEN:
        for word in _WORD.finditer(piece, _begin(piece, kind)):
            if _is_variable(piece, word):
                yield word[2]


def _is_variable(piece: str, word: re.Match[str]) -> bool:
    if word[2] is None or word[1] or word[2] in _WORDS or word[3]:
        return False
    # Not the name of a filter.
    return not piece[: word.start()].rstrip().endswith("|")


def _rename(piece: str, kind: Kind, names: Mapping[str, str]) -> str:
    """Return an output or a tag with other names of variables."""
    if kind is Kind.HIDDEN or not names:
        return piece
    at = _begin(piece, kind)
    texts = [piece[:at]]
    for word in _WORD.finditer(piece, at):
        new = names.get(word[2], word[0]) if _is_variable(piece, word) else word[0]
        texts += [piece[at : word.start()], new]
        at = word.end()
    return "".join([*texts, piece[at:]])
