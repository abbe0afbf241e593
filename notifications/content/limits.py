"""Limits on the work of a rendering, which is paid from a budget."""

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from io import StringIO
from typing import Any, TextIO

from liquid import BoundTemplate, RenderContext
from liquid.ast import BlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions.logical import (
    ContainsExpression,
    EqExpression,
    GeExpression,
    GtExpression,
    LeExpression,
    LtExpression,
    NeExpression,
    _contains,
    _eq,
    _le,
    _lt,
)
from liquid.builtin.expressions.loop import LoopExpression
from liquid.builtin.expressions.path import Path
from liquid.builtin.expressions.primitive import Blank, RangeLiteral
from liquid.builtin.output import OutputNode
from liquid.builtin.tags.capture_tag import CaptureNode
from liquid.builtin.tags.case_tag import MultiExpressionBlockNode
from liquid.builtin.tags.cycle_tag import CycleNode
from liquid.builtin.tags.echo_tag import EchoNode
from liquid.builtin.tags.for_tag import ForNode
from liquid.builtin.tags.tablerow_tag import TablerowNode
from liquid.exceptions import (
    FilterArgumentError,
    FilterError,
    FilterValueError,
    LiquidValueError,
    LocalNamespaceLimitError,
    OutputStreamLimitError,
    ResourceLimitError,
)
from liquid.expression import Expression
from liquid.output import LimitedStringIO
from liquid.stringify import to_liquid_string
from liquid.token import Token
from liquid.undefined import UNDEFINED, is_undefined

from notifyproject import lockstep

from .values import flat, written

# Limits on a rendering.
MAX_WORK = 30_000  # Units of work for one rendering: about 50 ms
SHORT_WORK = 3_000  # Units of work after which other requests go first
MAX_VALUE = 256 * 1024  # Characters of a filter's result, in all its items
MAX_ITEMS = 10_000  # Items of a range, or of a list that a filter returns
MAX_BITS = 1_024  # Bits of a number that a filter returns
CHARACTERS_PER_UNIT = 32  # Characters read or written for one unit
UNITS_PER_CALL = 2
ITEMS_PER_UNIT = 4  # List items read for one unit
_SHORT = 32
_SHALLOW_FILTERS = frozenset({"size", "first", "last"})
"""Filters that don't read the items of a list or object."""
_FILTER_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    TypeError,
    ValueError,
    FilterError,
    FilterValueError,
    LiquidValueError,
)
"""Exceptions that a Liquid filter raises for an unsupported value."""
_ABSENT = object()


class WorkLimitError(ResourceLimitError):
    """A rendering exceeds its budget or a size limit."""


class Budget:
    """Units of work that one rendering may still use."""

    __slots__ = ("_mark", "left")

    def __init__(self, units: int = MAX_WORK) -> None:
        self.left = units
        self._mark = max(units - SHORT_WORK, 0)
        """What is left when other requests go first, and then 0."""

    def spend(self, units: int) -> None:
        """Spend units. Raises WorkLimitError if too few are left."""
        self.left -= units
        if self.left < self._mark:
            self._pass_mark()

    def _pass_mark(self) -> None:
        if self.left < 0:
            raise WorkLimitError("The template takes too much work to render.", token=None)
        self._mark = 0
        lockstep.rest()


def weight_of(value: object, *, limit: int = MAX_VALUE) -> int:
    """Return the number of characters in a value and its items. Stops soon after ``limit``."""
    total, waiting = 0, [value]
    while waiting and total <= limit:
        item = waiting.pop()
        if isinstance(item, str):
            total += len(item)
        elif isinstance(item, dict):
            total += 8
            waiting += [*item.keys(), *item.values()]
        elif isinstance(item, list | tuple):
            total += 8
            waiting += item
        else:
            total += 8
    return total


def check_length(length: int) -> None:
    """Raise WorkLimitError if a filter's result has too many characters."""
    if length > MAX_VALUE:
        raise WorkLimitError(f"A filter makes more than {MAX_VALUE:,} characters.", token=None)


def check_items(count: int) -> None:
    """Raise WorkLimitError if a range or list has too many items."""
    if count > MAX_ITEMS:
        raise WorkLimitError(f"A list or range has more than {MAX_ITEMS:,} entries.", token=None)


class ChargedIO(LimitedStringIO):
    """Output of limited size that spends a budget."""

    def __init__(self, limit: int, budget: Budget) -> None:
        super().__init__(limit)
        self._budget = budget

    def write(self, text: str, /) -> int:
        """Write text. Raises WorkLimitError or OutputStreamLimitError."""
        size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        self.size += size
        if self.size > self.limit:
            raise OutputStreamLimitError("output stream limit reached", token=None)
        if size >= CHARACTERS_PER_UNIT:
            self._budget.spend(size // CHARACTERS_PER_UNIT)
        return StringIO.write(self, text)


class Context(RenderContext):
    """The state of one rendering, with its budget."""

    __slots__ = ("_sizes", "_total", "budget")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.budget = Budget()
        self._sizes: dict[str, int] = {}
        self._total = 0

    def assign(self, key: str, val: Any) -> None:
        """Set a template variable. Keeps the total size, which Liquid would sum on each call."""
        size = sys.getsizeof(val, 1)
        self._total += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        self.locals[key] = val
        limit = self.env.local_namespace_limit
        if limit and self._total > limit:
            raise LocalNamespaceLimitError("local namespace limit reached", token=None)

    def get(
        self, path: list[object], *, token: Token | None, default: object = UNDEFINED
    ) -> object:
        """Return the value at a path. Liquid writes the path of a missing one as text."""
        for segment in path:
            if type(segment) is not int and (type(segment) is not str or len(segment) > _SHORT):
                self.budget.spend(weight_of(segment) // CHARACTERS_PER_UNIT)
        return super().get(path, token=token, default=default)

    def get_buffer(self, buf: TextIO | None = None) -> StringIO:
        """Return a buffer for a part of the output, which spends the same budget."""
        used = buf.size if isinstance(buf, LimitedStringIO) else 0
        return ChargedIO((self.env.output_stream_limit or MAX_VALUE) - used, self.budget)


def render(bound: BoundTemplate, variables: Mapping[str, Any], budget: Budget) -> str:
    """Return a template's output. Raises WorkLimitError and Liquid's errors."""
    context = Context(bound, globals=bound.make_globals(dict(variables)))
    context.budget = budget
    buffer = ChargedIO(bound.env.output_stream_limit or MAX_VALUE, budget)
    bound.render_with_context(context, buffer)
    return buffer.getvalue()


def _cost_of_date(value: object = None, pattern: object = None, *_others: object) -> int:
    """Return the units for reading a date and for its directives, of which some are several."""
    return (20 if isinstance(value, str) else 4) + 6 * str(pattern).count("%")


def _cost_of_stripping(value: object = None, *_others: object) -> int:
    return len(value) // 16 if isinstance(value, str) else 0


_COSTS: dict[str, Callable[..., int]] = {
    "date": _cost_of_date,
    "strip_html": _cost_of_stripping,
}
"""What filters cost that do more than read their operands once."""


def within_budget(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter so that it spends the budget and rejects missing variables.

    It pays for every character of its operands, also in nested lists and objects, which most
    filters write as text, compare, or flatten.
    """
    # Liquid's own filters turn a missing variable into 0 or an empty text.
    needs_context = getattr(function, "with_context", False)
    cost_of_value = _COSTS.get(name)
    cost_of_operand = _cost_of_result if name in _SHALLOW_FILTERS else _cost_of_operand

    @wraps(function)
    def bounded(*args: Any, context: Any = None, **options: Any) -> Any:
        units = UNITS_PER_CALL
        for value in (*args, *options.values()):
            units += cost_of_operand(value)
        if cost_of_value is not None:
            units += cost_of_value(*args)
        budget = context.budget if isinstance(context, Context) else None
        if budget is not None:
            budget.spend(units)
        if needs_context:
            options["context"] = context
        try:
            made = function(*args, **options)
        except _FILTER_ERRORS:
            # Such as a date in year 0. Liquid adds the place of the filter.
            raise FilterArgumentError("the filter can't take this value", token=None) from None
        if budget is not None:
            budget.spend(_cost_of_result(made))
        return made

    bounded.__dict__["with_context"] = True
    return bounded


def _cost_of_operand(value: Any) -> int:
    """Return the units for reading a value once. Raises WorkLimitError or UndefinedError."""
    if isinstance(value, dict | list | tuple):
        if isinstance(value, list | tuple):
            check_items(len(value))
        weight = weight_of(value)
        check_length(weight)
        return weight // CHARACTERS_PER_UNIT
    return _cost_of_result(value)


def _cost_of_result(value: Any) -> int:
    """Return the units for a value without its items. Raises WorkLimitError or UndefinedError."""
    kind = type(value)
    if issubclass(kind, str):
        check_length(len(value))
        return len(value) // CHARACTERS_PER_UNIT
    if issubclass(kind, int):
        if value.bit_length() > MAX_BITS:
            raise WorkLimitError(f"A number has more than {MAX_BITS:,} bits.", token=None)
    elif issubclass(kind, list | tuple | range):
        check_items(len(value))
        return len(value) // ITEMS_PER_UNIT
    elif is_undefined(value):
        str(value)  # Raises UndefinedError with the variable's name.
    return 0


class _Range(RangeLiteral):
    """A range such as ``(1..9)``, of limited length."""

    __slots__ = ()

    def _make_range(self, start: Any, stop: Any) -> range:
        made = super()._make_range(start, stop)
        check_items(made.stop - made.start)
        return made


class _Contains(ContainsExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        if isinstance(left, str) and isinstance(right, str) and right:
            # Python's count is linear for every text, and its search isn't.
            return left.count(right) > 0
        return _contains(self.token, left, right)


def _is_equal(left: object, right: object) -> bool:
    """Return whether two values are equal. As in Ruby, null and false are blank, too."""
    if isinstance(right, Blank):
        left, right = right, left
    if isinstance(left, Blank):
        return is_undefined(right) or right is None or right is False or bool(left == right)
    return _eq(left, right)


class _Equal(EqExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return _is_equal(left, right)


class _NotEqual(NeExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return not _is_equal(left, right)


class _Less(LtExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return _lt(self.token, left, right)


class _Greater(GtExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return _lt(self.token, right, left)


class _LessOrEqual(LeExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return _le(left, right)


class _GreaterOrEqual(GeExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return _le(right, left)


class _Path(Path):
    """A variable, which is called as its template calls it if it is missing."""

    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        segments = [
            segment.evaluate(context) if isinstance(segment, Path) else segment
            for segment in self.path
        ]
        found = context.get(segments, token=self.token, default=_ABSENT)
        if found is not _ABSENT:
            return found
        # Without the values of segments: they may be secrets.
        name = str(Path(self.token, self.path[: _count_to_absent(segments, context)]))
        return context.env.undefined(name, hint=f"{name} is undefined", token=self.token)


def _count_to_absent(segments: list[Any], context: RenderContext) -> int:
    """Return the number of a path's segments up to the first without a value."""
    value = context.get(segments[:1], token=None, default=_ABSENT)
    if value is _ABSENT:
        return 1
    for position, segment in enumerate(segments[1:], start=1):
        try:
            value = context.get_item(value, segment)
        except (KeyError, TypeError, IndexError):
            return position + 1
    return len(segments)


class _Loop(LoopExpression):
    """The list of a loop. To skip items or turn them round, Liquid reads them all."""

    __slots__ = ()

    def evaluate(self, context: RenderContext) -> tuple[Iterator[object], int]:
        if self.reversed or self.offset is not None:
            items = self.iterable.evaluate(context)
            count = len(items) if isinstance(items, list | tuple | dict | range) else 0
            if isinstance(context, Context):
                context.budget.spend(count // ITEMS_PER_UNIT)
        return super().evaluate(context)


class _Cycle(CycleNode):
    """A cycle, which writes its group, or all its values, as a text."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        _charge(context, *(expression.evaluate(context) for expression in self.expressions()))
        written_text = context.get_buffer(buffer)
        super().render_to_output(context, written_text)
        return buffer.write(_escaped(written_text.getvalue(), context))


class _When(MultiExpressionBlockNode):
    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        left, matches = self.expression.left.evaluate(context), 0
        for expression in self.expression.expressions:
            right = expression.evaluate(context)
            _charge(context, left, right)
            matches += _is_equal(left, right)
        # A block is rendered once for each of its values that matches.
        return sum(self.block.render(context, buffer) for _ in range(matches)) if matches else -1


class _LoopBody(BlockNode):
    """The body of a loop, which spends units at each iteration."""

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
    LtExpression: _Less,
    GtExpression: _Greater,
    LeExpression: _LessOrEqual,
    GeExpression: _GreaterOrEqual,
    LoopExpression: _Loop,
    Path: _Path,
}


class _Literal(str):
    """A text in the language of the template: a captured part of it."""

    __slots__ = ()


def _escaped(text: str, context: RenderContext) -> str:
    """Return a text as a template of Markdown writes it. HTML is escaped by Liquid."""
    escape = getattr(context.env, "escape", None)
    if escape is None or context.autoescape or isinstance(text, _Literal):
        return text
    return str(escape(text))


class _Capture(CaptureNode):
    """A capture, whose text is escaped already."""

    __slots__ = ()

    def _assign(self, context: RenderContext, buf: StringIO) -> None:
        if context.autoescape:
            super()._assign(context, buf)
        else:
            context.assign(self.name, _Literal(buf.getvalue()))


class _Output(OutputNode):
    """An output, which writes numbers, lists, and objects as Liquid does."""

    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        value = self.expression.evaluate(context)
        if isinstance(value, list | tuple) and isinstance(context, Context):
            # Inner lists count, too: a list of them is short, and its text may be as short.
            context.budget.spend(sum(1 for _ in flat(value)) // ITEMS_PER_UNIT)
        if isinstance(value, float | dict | list | tuple):
            text = written(value, is_html=context.autoescape)
        else:
            text = to_liquid_string(value, context.autoescape)
        return buffer.write(_escaped(text, context))


class _Echo(EchoNode):
    """The same, as a tag."""

    render_to_output = _Output.render_to_output


def apply_limits(bound: BoundTemplate) -> None:
    """Replace the unlimited parts of a parsed template. Raises RecursionError if it is too deep."""
    static = RenderContext(bound)
    for node in _walk_nodes(bound.nodes, static):
        if isinstance(node, ForNode | TablerowNode):
            node.block = _make_loop_body(node.block, static)
        elif isinstance(node, MultiExpressionBlockNode):
            node.__class__ = _When
        elif isinstance(node, CycleNode):
            node.__class__ = _Cycle
        elif isinstance(node, CaptureNode):
            node.__class__ = _Capture
        elif isinstance(node, OutputNode):
            node.__class__ = _Echo if isinstance(node, EchoNode) else _Output
        for expression in _walk_expressions(node.expressions()):
            if replacement := _EXPRESSIONS.get(type(expression)):
                expression.__class__ = replacement


def _walk_nodes(nodes: Any, static: RenderContext) -> Iterator[Node]:
    waiting = [*nodes]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.children(static, include_partials=False)


def _walk_expressions(expressions: Any) -> Iterator[Expression]:
    waiting = [*expressions]
    while waiting:
        expression = waiting.pop()
        yield expression
        waiting += expression.children()


def _make_loop_body(block: BlockNode, static: RenderContext) -> _LoopBody:
    body = _LoopBody(block.token, block.nodes)
    body.units = 1
    for node in _walk_nodes(block.nodes, static):
        if isinstance(node, ContentNode):
            body.units += len(node.text) // CHARACTERS_PER_UNIT
        elif not isinstance(node, BlockNode):
            expressions = _walk_expressions(node.expressions())
            body.units += 1 + sum(map(_size_of_expression, expressions)) // 2
    return body


def _size_of_expression(expression: Expression) -> int:
    """Return what an expression costs to evaluate, and a loop to name, in half units."""
    if isinstance(expression, Path):
        return 1 + len(expression.path) // 4
    if isinstance(expression, LoopExpression):
        return 1 + len(str(expression)) // CHARACTERS_PER_UNIT
    return 1


def _charge(context: RenderContext, *operands: object) -> None:
    if isinstance(context, Context):
        weight = sum(weight_of(operand) for operand in operands)
        context.budget.spend(1 + weight // CHARACTERS_PER_UNIT)
