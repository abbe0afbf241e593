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

_RESERVED_NAMES = frozenset({"first", "last", "size", "now", "today", "partial"})
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
class _Conditional:
    """What stands between ``if`` and ``endif``."""

    path: tuple[str, ...]
    then: "Pieces"
    otherwise: "Pieces"


Pieces = Sequence[str | _Value | _Conditional]


class _NeedsLiquidError(Exception):
    """It takes Liquid to render this."""


def compile_fast_path(bound: BoundTemplate) -> Pieces | None:
    """Return what a parsed template is made of; None if it is not a plain one."""
    try:
        return _compile_nodes(bound.nodes)
    except _NeedsLiquidError:
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
    except _NeedsLiquidError:
        return None
    text = "".join(found)
    # Liquid's output makes every end of a line a plain one.
    return None if "\r" in text else text


def _compile_nodes(nodes: Sequence[Node]) -> Pieces:
    return tuple(_compile_node(node) for node in nodes)


def _compile_node(node: Node) -> str | _Value | _Conditional:
    if isinstance(node, ContentNode):
        return node.text
    if isinstance(node, OutputNode):
        return _compile_output(node.expression)
    if isinstance(node, IfNode) and not node.alternatives:
        condition = node.condition
        if isinstance(condition, BooleanExpression):
            condition = condition.expression
        otherwise = _compile_block(node.default) if node.default else ()
        return _Conditional(_compile_path(condition), _compile_block(node.consequence), otherwise)
    raise _NeedsLiquidError


def _compile_output(expression: object) -> _Value:
    if not isinstance(expression, FilteredExpression):
        return _Value(_compile_path(expression))
    filters = [one.name for one in expression.filters or ()]
    if filters not in ([], [RAW_HTML_FILTER]):
        raise _NeedsLiquidError
    return _Value(_compile_path(expression.left), is_safe=bool(filters))


def _compile_block(block: BlockNode) -> Pieces:
    if block.blank:
        # Liquid leaves out a block that holds nothing but blanks.
        raise _NeedsLiquidError
    return _compile_nodes(block.nodes)


def _compile_path(expression: object) -> tuple[str, ...]:
    if not isinstance(expression, Path):
        raise _NeedsLiquidError
    names = tuple(name for name in expression.path if isinstance(name, str))
    if len(names) != len(expression.path) or not _RESERVED_NAMES.isdisjoint(names):
        raise _NeedsLiquidError
    return names


def _fill(
    pieces: Pieces,
    variables: Mapping[str, Any],
    found: list[str],
    autoescape: bool,
    characters_left: int,
) -> int:
    """Add the texts of pieces, and return how many more characters there is room for."""
    for piece in pieces:
        if isinstance(piece, str):
            text = piece
        elif isinstance(piece, _Value):
            value = _look_up(piece.path, variables)
            text = _format_value(value, autoescape and not piece.is_safe)
        else:
            value = _look_up(piece.path, variables)
            chosen = piece.otherwise if value is None or value is False else piece.then
            characters_left = _fill(chosen, variables, found, autoescape, characters_left)
            continue
        characters_left -= len(text)
        if characters_left < 0:
            raise _NeedsLiquidError
        found.append(text)
    return characters_left


def _look_up(path: tuple[str, ...], variables: Mapping[str, Any]) -> Any:
    """Return a variable; None if it is missing."""
    value: Any = variables
    for name in path:
        if type(value) is not dict:
            raise _NeedsLiquidError
        value = value.get(name)
        if value is None:
            return None
    return value


def _format_value(value: Any, autoescape: bool) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        raise _NeedsLiquidError
    return escape(value) if autoescape else value
