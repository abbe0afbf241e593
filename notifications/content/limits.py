"""Limits on a template's source, and on the work of a rendering, which is paid from a budget."""

import re
import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from io import StringIO
from typing import Any, TextIO

from liquid import BoundTemplate, Environment, Markup, RenderContext, soft_str
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
from liquid.builtin.filters.misc import date as date_of_liquid
from liquid.builtin.tags.case_tag import MultiExpressionBlockNode
from liquid.builtin.tags.for_tag import ForNode
from liquid.builtin.tags.tablerow_tag import TablerowNode
from liquid.exceptions import (
    FilterArgumentError,
    LocalNamespaceLimitError,
    OutputStreamLimitError,
    ResourceLimitError,
)
from liquid.expression import Expression
from liquid.filter import sequence_filter, string_filter, with_environment
from liquid.output import LimitedStringIO
from liquid.undefined import is_undefined

from . import markup

# Limits on the source. Liquid's lexer searches for a tag's end from every opening, so thousands of
# unclosed tags take minutes. Runs of whitespace take quadratic time. find_fault takes one pass.
MAX_SOURCE = 64 * 1024  # Characters of a part
MAX_MARKUP = 500  # Outputs and tags of a part, and lines of its ``liquid`` tags
MAX_MARKUP_LENGTH = 1_000  # Characters of one output or tag, or of one line of a ``liquid`` tag
MAX_BLANKS = 500_000  # Sum of the squared lengths of whitespace runs inside outputs and tags
_OPENING = re.compile(r"\{[{%]")
_TAG_NAME = re.compile(r"-?\s{0,100}(\w{0,20})\s{0,100}")
_BLOCKS = {
    name: re.compile(rf"\{{%-?\s{{0,100}}end{name}\s{{0,100}}-?%\}}")
    for name in ("raw", "doc", "comment")
}
"""Tags whose content isn't Liquid, with their end tags."""
_BLANKS = re.compile(r"\s{10,}")


@dataclass(frozen=True, slots=True)
class SourceFault:
    """Why a source is rejected before parsing, and where."""

    code: str
    reason: str
    index: int | None = None


def find_fault(source: str) -> SourceFault | None:
    """Return the first part of a source that exceeds a limit or is unclosed, or None."""
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
        # Each line of a ``liquid`` tag counts as a tag.
        lines = inner.splitlines() if inner.lstrip("- \t\n").startswith("liquid") else [inner]
        count += len(lines)
        blanks += sum(len(run) ** 2 for run in _BLANKS.findall(inner))
        if reason := _exceeded_limit(lines, count, blanks):
            return SourceFault("too_complex", reason, at)
        end += 2
        name = _TAG_NAME.match(inner)
        if closing == "%}" and name and name[1] in _BLOCKS:
            match = _BLOCKS[name[1]].search(source, end)
            if match is None:
                return SourceFault("syntax", f"Expected tag end{name[1]}, found end of file.", at)
            end = match.end()
        opening = _OPENING.search(source, end)
    return None


def _exceeded_limit(lines: Sequence[str], count: int, blanks: int) -> str | None:
    if count > MAX_MARKUP:
        return f"A part has at most {MAX_MARKUP:,} outputs and tags."
    if max(map(len, lines)) > MAX_MARKUP_LENGTH:
        return f"An output or tag has at most {MAX_MARKUP_LENGTH:,} characters."
    if blanks > MAX_BLANKS:
        return "Too much whitespace in a row inside outputs and tags."
    return None


# Limits on a rendering.
MAX_WORK = 30_000  # Units of work for one rendering: about 50 ms
MAX_VALUE = 256 * 1024  # Characters of a filter's result, in all its items
MAX_ITEMS = 10_000  # Items of a range, or of a list that a filter returns
MAX_BITS = 1_024  # Bits of a number that a filter returns
CHARACTERS_PER_UNIT = 32  # Characters read or written for one unit


class WorkLimitError(ResourceLimitError):
    """A rendering exceeds its budget or a size limit."""


class Budget:
    """Units of work that one rendering may still use."""

    __slots__ = ("left",)

    def __init__(self, units: int = MAX_WORK) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Spend units. Raises WorkLimitError if too few are left."""
        self.left -= units
        if self.left < 0:
            raise WorkLimitError("The template takes too much work to render.", token=None)


def weight_of(value: object, *, limit: int = MAX_VALUE) -> int:
    """Return the number of characters in a value and its items. Stops soon after ``limit``."""
    total, waiting = 0, [value]
    while waiting and total <= limit:
        one = waiting.pop()
        if isinstance(one, str):
            total += len(one)
        elif isinstance(one, dict):
            total += 8
            waiting += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            total += 8
            waiting += one
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


UNITS_PER_CALL = 2
MAX_DATE_LENGTH = 100  # Characters of a text parsed as a date, and of a date format
ITEMS_PER_UNIT = 4  # List items read for one unit


def within_budget(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter so that it spends the budget and rejects missing variables."""
    # Liquid's own filters turn a missing variable into 0 or an empty text.
    needs_context = getattr(function, "with_context", False)

    @wraps(function)
    def bounded(*args: Any, context: Any = None, **options: Any) -> Any:
        units = UNITS_PER_CALL
        for value in (*args, *options.values()):
            units += _cost_of(value)
        if needs_context:
            options["context"] = context
        made = function(*args, **options)
        if isinstance(context, Context):
            context.budget.spend(units + _cost_of(made))
        return made

    bounded.__dict__["with_context"] = True
    return bounded


def _cost_of(value: Any) -> int:
    """Return the units for reading a value once. Raises WorkLimitError or UndefinedError."""
    kind = type(value)
    if issubclass(kind, str):
        check_length(len(value))
        return len(value) // CHARACTERS_PER_UNIT
    if issubclass(kind, int):
        if value.bit_length() > MAX_BITS:
            raise WorkLimitError(f"A number has more than {MAX_BITS:,} bits.", token=None)
    elif issubclass(kind, list | tuple):
        check_items(len(value))
        return len(value) // ITEMS_PER_UNIT
    elif is_undefined(value):
        str(value)  # Raises UndefinedError with the variable's name.
    return 0


@string_filter
def replace(val: str, seq: str, sub: str = "") -> str:
    """Return a text with every ``seq`` replaced by ``sub``."""
    old, new = soft_str(seq), soft_str(sub)
    check_length(len(val) + val.count(old) * max(0, len(new) - len(old)))
    return val.replace(old, new)


@with_environment
@sequence_filter
def join(left: Iterable[object], separator: object = " ", *, environment: Environment) -> str:
    """Return the items of a list as one text."""
    between = separator if isinstance(separator, str) else str(separator)
    if environment.autoescape and between == " ":
        between = Markup(" ")
    texts: list[str] = []
    total = -len(between)
    for item in left:
        texts.append(item if isinstance(item, str) else str(item))
        total += len(texts[-1]) + len(between)
        check_length(total)
    return between.join(texts)


@string_filter
def split(val: str, sep: Any) -> list[str]:
    """Split a text at a separator, or into characters if there is none."""
    if sep is None or sep == "":
        check_items(len(val))
        return list(val)
    between = soft_str(sep)
    if not val or val == between:
        return []
    pieces = val.split(None if between == " " else between, MAX_ITEMS)
    check_items(len(pieces))
    return pieces


@sequence_filter
def concat(sequence: list[Any], second_array: Any) -> list[Any]:
    """Return two lists as one."""
    if not isinstance(second_array, list | tuple):
        raise FilterArgumentError(
            f"concat expected an array, found {type(second_array).__name__}", token=None
        )
    made = [*sequence, *second_array]
    check_items(len(made))
    # A text may occur 1,000 times: short in memory, long when written.
    check_length(weight_of(made))
    return made


@sequence_filter
def uniq(sequence: Iterable[Any], key: object = None) -> list[object]:
    """Return a list without repeated items."""
    kept: dict[Hashable, object] = {}
    for item in sequence:
        kept.setdefault(_hashable(item if key is None else _property(item, key)), item)
    return list(kept.values())


def _property(item: Any, key: object) -> object:
    try:
        return item[key]
    except (KeyError, IndexError):
        return _MISSING
    except TypeError as error:
        raise FilterArgumentError(f"can't read property '{key}'", token=None) from error


_MISSING = object()


def _hashable(value: Any) -> Hashable:
    if isinstance(value, dict):
        return ("dict", frozenset((k, _hashable(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return (isinstance(value, list), tuple(_hashable(v) for v in value))
    return value


@with_environment
def date(dat: Any, fmt: Any, *, environment: Environment) -> str:
    """Format a date. A text that isn't a date is returned unchanged."""
    if isinstance(fmt, str) and len(fmt) > MAX_DATE_LENGTH:
        raise FilterArgumentError("the format of a date is too long", token=None)
    if isinstance(dat, str) and len(dat) > MAX_DATE_LENGTH:
        return str(dat)
    return date_of_liquid(dat, fmt, environment=environment)


@with_environment
@string_filter
def strip_html(val: str, *, environment: Environment) -> str:
    """Return a text without tags, comments, scripts, and style sheets."""
    if "<" not in val or ">" not in val:
        return val
    pieces: list[str] = []
    at = 0
    for token in markup.tokenize(val):
        pieces.append(val[at : token.start])
        if token.name in ("title", "textarea"):
            pieces.append(val[token.tag_end : token.end])
        at = token.end
    stripped = "".join([*pieces, val[at:]])
    return Markup(stripped) if environment.autoescape and isinstance(val, Markup) else stripped


REPLACED_FILTERS: dict[str, Callable[..., Any]] = {
    "replace": replace,
    "join": join,
    "split": split,
    "concat": concat,
    "uniq": uniq,
    "date": date,
    "strip_html": strip_html,
}


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
        return _contains(self.token, left, right)


class _Equal(EqExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return _eq(left, right)


class _NotEqual(NeExpression):
    __slots__ = ()

    def evaluate(self, context: RenderContext) -> object:
        left, right = self.left.evaluate(context), self.right.evaluate(context)
        _charge(context, left, right)
        return not _eq(left, right)


class _When(MultiExpressionBlockNode):
    __slots__ = ()

    def render_to_output(self, context: RenderContext, buffer: TextIO) -> int:
        left = self.expression.left.evaluate(context)
        for right in self.expression.expressions:
            _charge(context, left, right.evaluate(context))
        return super().render_to_output(context, buffer)


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
}


def apply_limits(bound: BoundTemplate) -> None:
    """Replace the unlimited parts of a parsed template. Raises RecursionError if it is too deep."""
    static = RenderContext(bound)
    for node in _walk_nodes(bound.nodes, static):
        if isinstance(node, ForNode | TablerowNode):
            node.block = _make_loop_body(node.block, static)
        elif isinstance(node, MultiExpressionBlockNode):
            node.__class__ = _When
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
            body.units += 1 + sum(1 for _ in _walk_expressions(node.expressions())) // 2
    return body


def _charge(context: RenderContext, *operands: object) -> None:
    if isinstance(context, Context):
        weight = sum(weight_of(operand) for operand in operands)
        context.budget.spend(1 + weight // CHARACTERS_PER_UNIT)
