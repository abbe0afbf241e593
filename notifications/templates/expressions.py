"""Parts of a parsed template in versions of ours, which pay for their work from the budget.

Liquid makes its own; they are exchanged after parsing, where there is one tree to walk.
"""

from collections.abc import Iterator
from typing import Any, TextIO

from liquid import BoundTemplate, RenderContext
from liquid.ast import BlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions.logical import (
    ContainsExpression,
    EqExpression,
    NeExpression,
    _contains,
    _eq,
)
from liquid.builtin.expressions.primitive import RangeLiteral
from liquid.builtin.tags.case_tag import MultiExpressionBlockNode
from liquid.builtin.tags.for_tag import ForNode
from liquid.builtin.tags.tablerow_tag import TablerowNode
from liquid.expression import Expression

from .budget import CHARACTERS_EACH, Context, check_items, weight_of


class _Range(RangeLiteral):
    """``(1..9)``, of limited length."""

    __slots__ = ()

    def _make_range(self, start: Any, stop: Any) -> range:
        made = super()._make_range(start, stop)
        check_items(made.stop - made.start)
        return made


class _Contains(ContainsExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _pay(context, left, right)
        return _contains(self.token, left, right)


class _Equal(EqExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _pay(context, left, right)
        return _eq(left, right)


class _NotEqual(NeExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _pay(context, left, right)
        return not _eq(left, right)


class _When(MultiExpressionBlockNode):
    """The part of a ``case`` for some values."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        left = self.expression.left.evaluate(context)
        for right in self.expression.expressions:
            _pay(context, left, right.evaluate(context))
        return super().render_to_output(context, buffer)


class _Rounds(BlockNode):
    """What a loop repeats."""

    __slots__ = ("units",)

    units: int

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        if isinstance(context, Context):
            context.budget.spend(self.units)
        return super().render_to_output(context, buffer)


_EXPRESSIONS: dict[type[Expression], type[Expression]] = {
    RangeLiteral: _Range,
    ContainsExpression: _Contains,
    EqExpression: _Equal,
    NeExpression: _NotEqual,
}


def put_limits(bound: BoundTemplate) -> None:
    """Exchange what is unlimited in a parsed template; raises RecursionError if it is too deep."""
    static = RenderContext(bound)
    for node in _nodes(bound.nodes, static):
        if isinstance(node, ForNode | TablerowNode):
            node.block = _rounds(node.block, static)
        elif isinstance(node, MultiExpressionBlockNode):
            node.__class__ = _When
        for expression in _expressions(node.expressions()):
            if replacement := _EXPRESSIONS.get(type(expression)):
                expression.__class__ = replacement


def _nodes(nodes: Any, static: RenderContext) -> Iterator[Node]:
    waiting = [*nodes]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children(static, include_partials=False)


def _expressions(expressions: Any) -> Iterator[Expression]:
    waiting = [*expressions]
    while waiting:
        expression = waiting.pop()
        yield expression
        waiting += expression.children()


def _rounds(block: BlockNode, static: RenderContext) -> _Rounds:
    rounds = _Rounds(block.token, block.nodes)
    units = 1
    for node in _nodes(block.nodes, static):
        if isinstance(node, ContentNode):
            units += len(node.text) // CHARACTERS_EACH
        elif not isinstance(node, BlockNode):
            units += 1 + sum(1 for _ in _expressions(node.expressions())) // 2
    rounds.units = units
    return rounds


def _pay(context: RenderContext, *operands: object) -> None:
    """Pay for comparing values with everything in them."""
    if isinstance(context, Context):
        weight = sum(weight_of(operand) for operand in operands)
        context.budget.spend(1 + weight // CHARACTERS_EACH)
