"""Line-by-line diff of two template versions. Pure."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from notifications.content.templates import Part, Parts

from .preview import language_name
from .version_form import LABELS

CONTEXT = 2  # Unchanged lines shown around a change
TOP_HUNKS = ("@@ -0", "@@ -1 ", "@@ -1,")


class LineChange(StrEnum):
    """The change of a line."""

    KEPT = "kept"
    ADDED = "added"
    REMOVED = "removed"
    OMITTED = "omitted"  # A placeholder for unchanged lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a diff."""

    change: LineChange
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The diff of one text."""

    language: str
    label: str
    lines: Sequence[Line]


_LINE_CHANGES = {
    " ": LineChange.KEPT,
    "+": LineChange.ADDED,
    "-": LineChange.REMOVED,
    "@": LineChange.OMITTED,
}


def changes(before: Parts, after: Parts) -> list[Change]:
    """Return the diffs of the changed texts, by language and part."""
    languages = dict.fromkeys([*after, *before])
    return [
        Change(
            language=language_name(language),
            label=LABELS[part][0],
            lines=lines_between(*(_text(parts, language, part) for parts in (before, after))),
        )
        for language in languages
        for part in Part
        if _text(before, language, part) != _text(after, language, part)
    ]


def lines_between(before: str, after: str) -> list[Line]:
    """Return the diff of two texts."""
    found = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=CONTEXT)
    # The first two lines name the files; a hunk header at the top omits no lines.
    return [
        Line(change=_LINE_CHANGES[line[0]], text="" if line[0] == "@" else line[1:])
        for number, line in enumerate(found)
        if number > 1 and not line.startswith(TOP_HUNKS)
    ]


def _text(parts: Parts, language: str, part: Part) -> str:
    texts: Mapping[str, str] = parts.get(language, {})
    return texts.get(part.value, "").strip("\n")
