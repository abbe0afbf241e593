"""Limits on a template's source, checked before Liquid or a regular expression reads it. Pure.

Liquid's lexer, and expressions that look for a tag's end, begin anew at every opening: thousands
that are never closed take minutes. Blanks that may belong to either side of an expression take
time that grows with the square of their number. This check takes one pass.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

MAX_SOURCE = 64 * 1024
"""A part has at most this many characters."""
MAX_MARKUP = 500
"""Outputs and tags of a part, and lines of its ``liquid`` tags."""
MAX_MARKUP_LENGTH = 1_000
"""Characters of one output or tag, or of a line of a ``liquid`` tag."""
MAX_BLANKS = 500_000
"""The sum of the squares of how many blanks stand in a row inside outputs and tags."""
_OPENING = re.compile(r"\{[{%]")
_TAG_NAME = re.compile(r"-?\s{0,100}(\w{0,20})\s{0,100}")
_BLOCKS = {
    name: re.compile(rf"\{{%-?\s{{0,100}}end{name}\s{{0,100}}-?%\}}")
    for name in ("raw", "doc", "comment")
}
"""Tags whose content is not Liquid, with their ends."""
_BLANKS = re.compile(r"\s{10,}")


def count_markup(source: str) -> int:
    """Return how many outputs and tags a source has at most."""
    return source.count("{{") + source.count("{%")


@dataclass(frozen=True, slots=True)
class SourceFault:
    """Why a source is not read any further, and where."""

    code: str
    reason: str
    index: int | None = None


def find_fault(source: str) -> SourceFault | None:
    """Return the first thing in a source that Liquid is not given to read; None if there is none.

    It is beyond a limit, or never closed.
    """
    if len(source) > MAX_SOURCE:
        return SourceFault("too_long", f"A part has at most {MAX_SOURCE:,} characters.")
    count = blanks = 0
    opening = _OPENING.search(source)
    while opening:
        at = opening.start()
        closing = "%}" if opening[0] == "{%" else "}}"
        end = source.find(closing, at + 2)
        if end < 0:
            return SourceFault("syntax", f"Expected '{closing}', found end of file.", at)
        inner = source[at + 2 : end]
        lines = _lines(inner)
        count += len(lines)
        blanks += sum(len(run) ** 2 for run in _BLANKS.findall(inner))
        if reason := _exceeded_limit(lines, count, blanks):
            return SourceFault("too_complex", reason, at)
        end += 2
        if closing == "%}" and (block := _block_of(inner)) is not None:
            match = _BLOCKS[block].search(source, end)
            if match is None:
                return SourceFault("syntax", f"Expected tag end{block}, found end of file.", at)
            end = match.end()
        opening = _OPENING.search(source, end)
    return None


def _lines(inner: str) -> list[str]:
    """Return what counts as an output or tag of its own: each line of a ``liquid`` tag."""
    if inner.lstrip("- \t\n").startswith("liquid"):
        return inner.splitlines()
    return [inner]


def _exceeded_limit(lines: Sequence[str], count: int, blanks: int) -> str | None:
    """Return which limit an output or tag passes."""
    if count > MAX_MARKUP:
        return f"A part has at most {MAX_MARKUP:,} outputs and tags."
    if max(map(len, lines)) > MAX_MARKUP_LENGTH:
        return f"An output or tag has at most {MAX_MARKUP_LENGTH:,} characters."
    if blanks > MAX_BLANKS:
        return "Too many blanks stand in a row inside outputs and tags."
    return None


def _block_of(inner: str) -> str | None:
    match = _TAG_NAME.match(inner)
    return match[1] if match and match[1] in _BLOCKS else None
