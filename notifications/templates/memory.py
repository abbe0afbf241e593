"""What has been rendered for one call: of a thousand people who are told the same, once.

It lasts as long as the call that it was made for: what it remembers is somebody's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from liquid import BoundTemplate

from .engine import Template

MOST = 512
"""Texts that are remembered for a call."""
MOST_CHARACTERS = 4 * 1024 * 1024
"""Characters that they have together at most."""
_OF_THE_MOMENT = frozenset({"now", "today"})
_LIQUIDS_OWN = frozenset({"first", "last", "size"})
_MISSING = ""
"""No value is written so."""
Paths = Sequence[tuple[str, ...]]


class Memory:
    """Texts by their template and by what of the variables stands in them."""

    def __init__(self) -> None:
        self._paths: dict[Template, Paths | None] = {}
        self._texts: dict[tuple[Template, tuple[str, ...]], str] = {}
        self._room = MOST_CHARACTERS

    def render(self, template: Template, variables: Mapping[str, Any]) -> str:
        """Return a template's text with its variables filled in; raises TemplateProblem."""
        if template.is_plain:
            return template.render(variables)
        if template not in self._paths:
            self._paths[template] = paths_of(template.bound)
        paths = self._paths[template]
        if paths is None:
            return template.render(variables)
        key = (template, tuple(_written(path, variables) for path in paths))
        text = self._texts.get(key)
        if text is None:
            text = template.render(variables)
            if len(self._texts) < MOST and len(text) <= self._room:
                self._texts[key] = text
                self._room -= len(text)
        return text


def paths_of(bound: BoundTemplate) -> Paths | None:
    """Return the variables that a template's text depends on; None if it depends on the clock."""
    used = bound.analyze(include_partials=False).globals
    if not _OF_THE_MOMENT.isdisjoint(used):
        return None
    paths = {_names(use.segments) for uses in used.values() for use in uses}
    return sorted(paths)


def _names(segments: Sequence[object]) -> tuple[str, ...]:
    """Return a path as far as it is one of names: what lies behind is part of that value."""
    names: list[str] = []
    for segment in segments:
        if not isinstance(segment, str) or (names and segment in _LIQUIDS_OWN):
            break
        names.append(segment)
    return tuple(names)


def _written(path: tuple[str, ...], variables: Mapping[str, Any]) -> str:
    """Return a variable so that what is written alike is alike: 1 is neither "1" nor True."""
    value: Any = variables
    for depth, name in enumerate(path):
        if not isinstance(value, Mapping):
            # What stands here is no value of the path, though it may look like one.
            return f"{depth}:{value!r}"
        if name not in value:
            return _MISSING
        value = value[name]
    return repr(value)
