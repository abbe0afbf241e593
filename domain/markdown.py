"""The subset of Markdown in which messages to rooms are written. Pure.

It has bold, italics, code, links, lists, and blocks of code. A backslash makes any ASCII
punctuation a literal character, and :func:`escape` puts one before all that would be read as
markup. Each provider writes :class:`Line` in a form of its own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

_PUNCTUATION = r"!-/:-@\[-`{-~"
_MARKUP = re.compile(r"[\\`*_~\[\]<>#|]|(?<![^\n])[ \t]*[+-]|(?<![^\n])[ \t]*\d{1,9}[.)]")
_ESCAPE = re.compile(rf"\\([{_PUNCTUATION}])")
_ADDRESS = rf"https?://(?:\\[{_PUNCTUATION}]|[^\s<>\"`|\\^{{}}])+"
_TARGET = rf"https?://(?:\\[{_PUNCTUATION}]|\([^\s()<>]{{0,200}}\)|[^\s<>\"`|\\^{{}}()])+"
"""An address in brackets, which may have pairs of brackets."""
_SPAN = r"(?=\S)(?:\\.|[^\\\n]){1,400}?(?<=\S)"
"""A text between two markers. Its length is bounded, so that many markers take linear time."""
_TOKEN = re.compile(
    rf"\\(?P<literal>[{_PUNCTUATION}])"
    r"|(?P<fence>`++)(?P<code>[^`\n][^\n]{0,400}?)(?<!`)(?P=fence)(?!`)"
    r"|(?P<ticks>`++)"
    rf"|\[(?P<label>(?:\\.|[^\]\\\n]){{1,400}})\]\(<?(?P<link>{_TARGET})>?\)"
    rf"|<(?P<auto>{_ADDRESS})>"
    r"|<!(?P<mention>here|channel|everyone)>"
    rf"|(?<![\w/])(?P<address>{_ADDRESS})"
    rf"|\*\*(?P<bold>{_SPAN})\*\*"
    rf"|(?<![\w*])\*(?P<star>{_SPAN})\*(?![\w*])"
    rf"|(?<!\w)_(?P<underscore>{_SPAN})_(?!\w)"
)
_LIST = re.compile(r"(?P<indent>[ \t]*)(?:[-*+]|(?P<number>\d{1,9})[.)])[ \t]+(?P<text>\S.*)")
_FENCE = re.compile(r"[ \t]*```[^`]*")
_AFTER_ADDRESS = re.compile(r"(?:\\?[.,;:!?'*_]){1,40}\Z")
_AFTER_BRACKET = re.compile(r"(?:\\?[.,;:!?'*_)]){1,40}\Z")
"""Punctuation at the end of a bare address, which belongs to the sentence: a bracket only if the
address has no opening one. Its length is bounded, so that the search takes linear time."""
MAX_LEVEL = 3
MAX_NESTING = 3
"""Levels of bold, italics, and links in one another. Markup beyond them is a text."""


class LineKind(StrEnum):
    """What a line is."""

    TEXT = "text"
    ITEM = "item"
    """One of a list: numbered if it has a number."""
    CODE = "code"
    BLANK = "blank"
    """Between paragraphs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A text of one form."""

    text: str
    is_bold: bool = False
    is_italic: bool = False
    is_code: bool = False
    link: str | None = None
    mention: str | None = None
    """Who is notified, such as ``here``: only by the template's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line, without a line break."""

    kind: LineKind
    runs: tuple[Run, ...] = ()
    number: int | None = None
    level: int = 0
    """How deep an item is, from 0."""

    @property
    def mark(self) -> str:
        """What stands before an item, as plain text."""
        if self.kind is not LineKind.ITEM:
            return ""
        sign = "-" if self.number is None else f"{self.number}."
        return f"{'  ' * self.level}{sign} "


def escape(text: str) -> str:
    """Return a text that :func:`parse` reads as it is, wherever it is inserted."""
    return _MARKUP.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text)


def parse(text: str) -> tuple[Line, ...]:
    """Return the lines of a text. No text is invalid: what is no markup is a text."""
    lines: list[Line] = []
    is_code = False
    for source in text.strip("\n").split("\n"):
        if _FENCE.fullmatch(source):
            is_code = not is_code
        elif is_code:
            lines.append(Line(kind=LineKind.CODE, runs=(Run(text=source, is_code=True),)))
        elif not source.strip():
            lines.append(Line(kind=LineKind.BLANK))
        elif item := _LIST.fullmatch(source):
            lines.append(
                Line(
                    kind=LineKind.ITEM,
                    runs=_runs(item["text"].rstrip()),
                    number=None if item["number"] is None else int(item["number"]),
                    level=min(len(item["indent"].expandtabs(2)) // 2, MAX_LEVEL),
                )
            )
        else:
            lines.append(Line(kind=LineKind.TEXT, runs=_runs(source.rstrip())))
    return tuple(lines)


def plain(text: str) -> str:
    """Return a text without its markup. A link has its address behind it."""
    return "\n".join(f"{line.mark}{''.join(map(_plain, line.runs))}" for line in parse(text))


def in_pieces(runs: Sequence[Run], *, size: int) -> Iterator[Run]:
    """Yield runs, those that are longer than ``size`` in pieces."""
    for run in runs:
        if len(run.text) <= size:
            yield run
            continue
        for start in range(0, len(run.text), size):
            yield replace(run, text=run.text[start : start + size])


def _plain(run: Run) -> str:
    return run.text if run.link in (None, run.text) else f"{run.text} ({run.link})"


def _runs(source: str) -> tuple[Run, ...]:
    merged: list[Run] = []
    for run in _inline(source, Run(text=""), MAX_NESTING):
        if merged and replace(merged[-1], text=run.text) == run and run.mention is None:
            merged[-1] = replace(run, text=merged[-1].text + run.text)
        elif run.text:
            merged.append(run)
    return tuple(merged)


def _inline(source: str, form: Run, depth: int) -> Iterator[Run]:
    """Yield the runs of a source, in a form that surrounds it."""
    at = 0
    for found in _TOKEN.finditer(source):
        yield replace(form, text=source[at : found.start()])
        at = found.end()
        yield from _token(found, form, depth)
    yield replace(form, text=source[at:])


def _token(found: re.Match[str], form: Run, depth: int) -> Iterator[Run]:
    kind = found.lastgroup or ""
    inner = found[kind]
    if kind in ("bold", "star", "underscore"):
        is_bold = form.is_bold or kind == "bold"
        styled = replace(form, is_bold=is_bold, is_italic=form.is_italic or kind != "bold")
        yield from _nested(found, inner, styled, form, depth)
    elif kind == "link":
        yield from _nested(found, found["label"], replace(form, link=_unescape(inner)), form, depth)
    elif kind == "code":
        yield replace(form, text=inner, is_code=True)
    elif kind == "mention":
        yield replace(form, text=f"@{inner}", mention=inner)
    elif kind in ("auto", "address"):
        ending = _AFTER_ADDRESS if "(" in inner else _AFTER_BRACKET
        after = ending.search(inner) if kind == "address" else None
        address = _unescape(inner[: after.start()] if after else inner)
        yield replace(form, text=address, link=form.link or address)
        yield replace(form, text=_unescape(after[0]) if after else "")
    else:
        yield replace(form, text=inner)


def _nested(found: re.Match[str], inner: str, styled: Run, form: Run, depth: int) -> Iterator[Run]:
    if depth:
        yield from _inline(inner, styled, depth - 1)
    else:
        yield replace(form, text=_unescape(found[0]))


def _unescape(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)
