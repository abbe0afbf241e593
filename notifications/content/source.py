"""The Liquid of a template's source, found in one pass, and limits on it. Pure.

Everything that asks where Liquid begins and ends asks here: limits, linting, CSS inlining, and the
search for secrets in URLs. The answer is that of python-liquid's lexer, which takes quadratic time
for thousands of unclosed openings, so that it only runs on a source that passed.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

MAX_SOURCE = 64 * 1024  # Characters of a part
MAX_MARKUP = 500  # Outputs and tags of a part, and lines of its ``liquid`` tags
MAX_MARKUP_LENGTH = 1_000  # Characters of one output or tag, or of one line of a ``liquid`` tag
MAX_BLANKS = 500_000  # Sum of the squared lengths of whitespace runs inside outputs and tags
_OPENING = re.compile(r"\{[{%]")
_NAME = re.compile(r"-?\s*+(#|\w+)")
_VERBATIM_START = re.compile(r"\{%-?\s*+(raw|doc)\s*+-?%\}")
_VERBATIM_END = {name: re.compile(rf"\{{%-?\s*+end{name}\s*+-?%\}}") for name in ("raw", "doc")}
"""End tags of the blocks whose content isn't read as Liquid."""
_BLANKS = re.compile(r"\s{10,}")


class Kind(Enum):
    """What a piece of Liquid is."""

    OUTPUT = auto()
    TAG = auto()
    HIDDEN = auto()
    """A comment or documentation, with its tags and its content."""


@dataclass(frozen=True, slots=True)
class Piece:
    """An output or a tag, or a whole comment. ``name`` is a tag's name."""

    kind: Kind
    start: int
    end: int
    name: str = ""


class SourceError(ValueError):
    """A source that exceeds a limit or is unclosed, and where."""

    def __init__(self, code: str, reason: str, index: int | None = None) -> None:
        super().__init__(reason)
        self.code = code
        self.index = index


def find_liquid(source: str) -> list[Piece]:
    """Return the outputs, tags, and comments of a source. Raises SourceError.

    The content of a ``raw`` block is text, and its two tags are pieces.
    """
    if len(source) > MAX_SOURCE:
        raise SourceError("too_long", f"A part has at most {MAX_SOURCE:,} characters.")
    pieces: list[Piece] = []
    limits = _Limits()
    depth = opened = 0
    for piece in _scan(source):
        limits.count(source, piece)
        if piece.name == "comment":
            opened, depth = (opened, depth + 1) if depth else (piece.start, 1)
        elif piece.name == "endcomment" and depth:
            depth -= 1
            if not depth:
                pieces.append(Piece(Kind.HIDDEN, opened, piece.end))
        elif not depth:
            if piece.kind is Kind.TAG and not piece.name:
                reason = "Missing tag name or closing delimiter."
                raise SourceError("syntax", reason, piece.start)
            pieces.append(piece)
    if depth:
        raise SourceError("syntax", "Expected tag endcomment, found end of file.", opened)
    return pieces


def before(source: str, at: int, piece: Piece) -> str:
    """Return the text from ``at`` to a piece, without the blanks that the piece removes."""
    text = source[at : piece.start]
    return text.rstrip() if source.startswith("-", piece.start + 2) else text


def after(source: str, piece: Piece) -> int:
    """Return where the text after a piece begins, without the blanks that the piece removes."""
    if not source.startswith("-", piece.end - 3):
        return piece.end
    return len(source) - len(source[piece.end :].lstrip())


def _scan(source: str) -> Iterator[Piece]:
    """Yield every output and tag, also of comments. A tag without a name ends after ``{%``."""
    opening = _OPENING.search(source)
    while opening:
        at, end = opening.start(), opening.end()
        if verbatim := _VERBATIM_START.match(source, at):
            name = verbatim[1]
            closing = _VERBATIM_END[name].search(source, verbatim.end())
            if closing is None:
                reason = f"Expected tag end{name}, found end of file."
                raise SourceError("syntax", reason, at)
            end = closing.end()
            if name == "doc":
                yield Piece(Kind.HIDDEN, at, end)
            else:
                yield Piece(Kind.TAG, at, verbatim.end(), name)
                yield Piece(Kind.TAG, closing.start(), end, f"end{name}")
        elif opening[0] == "{{":
            end = _find_end(source, "}}", at)
            yield Piece(Kind.OUTPUT, at, end)
        elif named := _NAME.match(source, end):
            end = _find_end(source, "%}", at, after=named.end())
            yield Piece(Kind.TAG, at, end, named[1])
        else:
            yield Piece(Kind.TAG, at, end)
        opening = _OPENING.search(source, end)


def _find_end(source: str, closing: str, at: int, *, after: int | None = None) -> int:
    found = source.find(closing, at + 2 if after is None else after)
    if found < 0:
        raise SourceError("syntax", f"Expected '{closing}', found end of file.", at)
    return found + 2


class _Limits:
    """Counts the outputs and tags of a source."""

    def __init__(self) -> None:
        self._count = self._blanks = 0

    def count(self, source: str, piece: Piece) -> None:
        if piece.kind is Kind.HIDDEN:
            self._count += 1
            return
        inner = source[piece.start + 2 : piece.end - 2]
        # Each line of a ``liquid`` tag counts as a tag.
        lines = inner.splitlines() if piece.name == "liquid" else [inner]
        self._count += len(lines)
        self._blanks += sum(len(run) ** 2 for run in _BLANKS.findall(inner))
        if reason := self._exceeded(lines):
            raise SourceError("too_complex", reason, piece.start)

    def _exceeded(self, lines: Sequence[str]) -> str | None:
        if self._count > MAX_MARKUP:
            return f"A part has at most {MAX_MARKUP:,} outputs and tags."
        if max(map(len, lines), default=0) > MAX_MARKUP_LENGTH:
            return f"An output or tag has at most {MAX_MARKUP_LENGTH:,} characters."
        if self._blanks > MAX_BLANKS:
            return "Too much whitespace in a row inside outputs and tags."
        return None
