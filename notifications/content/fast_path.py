"""Templates that only put values into a text, filled in without Liquid's machinery.

Most parts of most templates are such: text, ``{{ name }}``, and ``{% if name %}``. They cost a
tenth of what Liquid takes. Whatever is not as simple as that, in the template or in its data, is
left to Liquid: :func:`fill` then answers None. Both give the same text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from liquid import BoundTemplate
from liquid.ast import BlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import BooleanExpression, FilteredExpression, Path
from liquid.builtin.output import OutputNode
from liquid.builtin.tags.if_tag import IfNode
from markupsafe import escape

_OWN_MEANING = frozenset({"first", "last", "size", "now", "today", "partial"})
"""Names that Liquid understands although no variable is called so."""
RAW_HTML_FILTER = "safe"
"""Puts a text into HTML as it is: for the layout only, which is given HTML made here."""


@dataclass(frozen=True, slots=True)
class _Value:
    """A variable, to be put out."""

    path: tuple[str, ...]
    is_safe: bool = False
    """It is marked as escaped already."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What stands between ``if`` and ``endif``."""

    path: tuple[str, ...]
    then: "Pieces"
    otherwise: "Pieces"


Pieces = Sequence[str | _Value | _Choice]


class _NotPlain(Exception):
    """It takes Liquid to render this."""


def compile_fast_path(bound: BoundTemplate) -> Pieces | None:
    """Return what a parsed template is made of; None if it is not a plain one."""
    try:
        return _pieces(bound.nodes)
    except _NotPlain:
        return None


def fill(
    pieces: Pieces, variables: Mapping[str, Any], *, autoescape: bool, limit: int
) -> str | None:
    """Return the text with its variables; None if Liquid has to find out what becomes of it.

    ``limit`` is in bytes: a text that might have more is Liquid's to measure.
    """
    found: list[str] = []
    try:
        # A character has up to four bytes.
        _fill(pieces, variables, found, autoescape, limit // 4)
    except _NotPlain:
        return None
    text = "".join(found)
    # Liquid's output makes every end of a line a plain one.
    return None if "\r" in text else text


def _pieces(nodes: Sequence[Node]) -> Pieces:
    return tuple(_piece(node) for node in nodes)


def _piece(node: Node) -> str | _Value | _Choice:
    if isinstance(node, ContentNode):
        return node.text
    if isinstance(node, OutputNode):
        return _value(node.expression)
    if isinstance(node, IfNode) and not node.alternatives:
        condition = node.condition
        if isinstance(condition, BooleanExpression):
            condition = condition.expression
        otherwise = _block(node.default) if node.default else ()
        return _Choice(_path(condition), _block(node.consequence), otherwise)
    raise _NotPlain


def _value(expression: object) -> _Value:
    if not isinstance(expression, FilteredExpression):
        return _Value(_path(expression))
    filters = [one.name for one in expression.filters or ()]
    if filters not in ([], [RAW_HTML_FILTER]):
        raise _NotPlain
    return _Value(_path(expression.left), is_safe=bool(filters))


def _block(block: BlockNode) -> Pieces:
    if block.blank:
        # Liquid leaves out a block that holds nothing but blanks.
        raise _NotPlain
    return _pieces(block.nodes)


def _path(expression: object) -> tuple[str, ...]:
    if not isinstance(expression, Path):
        raise _NotPlain
    names = tuple(name for name in expression.path if isinstance(name, str))
    if len(names) != len(expression.path) or not _OWN_MEANING.isdisjoint(names):
        raise _NotPlain
    return names


def _fill(
    pieces: Pieces, variables: Mapping[str, Any], found: list[str], autoescape: bool, room: int
) -> int:
    """Add the texts of pieces, and return how many more characters there is room for."""
    for piece in pieces:
        if isinstance(piece, str):
            text = piece
        elif isinstance(piece, _Value):
            value = _look_up(piece.path, variables)
            text = _text(value, autoescape and not piece.is_safe)
        else:
            value = _look_up(piece.path, variables)
            chosen = piece.otherwise if value is None or value is False else piece.then
            room = _fill(chosen, variables, found, autoescape, room)
            continue
        room -= len(text)
        if room < 0:
            raise _NotPlain
        found.append(text)
    return room


def _look_up(path: tuple[str, ...], variables: Mapping[str, Any]) -> Any:
    """Return a variable; None if it is missing."""
    value: Any = variables
    for name in path:
        if type(value) is not dict:
            raise _NotPlain
        value = value.get(name)
        if value is None:
            return None
    return value


def _text(value: Any, autoescape: bool) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        raise _NotPlain
    return escape(value) if autoescape else value
