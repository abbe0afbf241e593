"""What in a template depends on a sensitive variable, followed through every value. Pure.

A value is secret if it is a sensitive variable or is computed from one: assigned, captured, cut,
encoded, counted, or chosen by it. Variables are joined over the whole template, in any order, so
that no order of loops and branches hides a flow.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from liquid import BoundTemplate, RenderContext
from liquid.ast import Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import (
    BooleanExpression,
    FilteredExpression,
    TernaryFilteredExpression,
)
from liquid.builtin.expressions.filtered import Filter
from liquid.builtin.expressions.logical import (
    EqExpression,
    LogicalAndExpression,
    LogicalNotExpression,
    LogicalOrExpression,
    NeExpression,
)
from liquid.builtin.expressions.loop import LoopExpression
from liquid.builtin.expressions.path import Path
from liquid.builtin.expressions.primitive import (
    Blank,
    Empty,
    FloatLiteral,
    Nil,
    StringLiteral,
)
from liquid.builtin.tags.assign_tag import AssignNode
from liquid.builtin.tags.capture_tag import CaptureNode
from liquid.builtin.tags.case_tag import CaseNode, MultiExpressionBlockNode
from liquid.builtin.tags.for_tag import ForNode
from liquid.builtin.tags.if_tag import IfNode
from liquid.builtin.tags.tablerow_tag import TablerowNode
from liquid.builtin.tags.unless_tag import UnlessNode
from liquid.expression import Expression

_PLAIN = re.compile(r"[\w \-*#,()\[\]\"'\u2022]*")
"""A text whose parts, put together in any way, are no link."""
_PLAIN_DATA = re.compile(r"[A-Za-z0-9_-]{1,40}")
_KEY = re.compile(r"[\w-]+")
_DATE = re.compile(
    r"(?:%[-_0^]?[A-Za-z]|[ ,-]|(?<![A-Za-z])[a-z]{1,2}(?![a-z])"
    r"|(?<=[dmyYeHIMSjl])[.:/](?=%[-_0]?[dmyYeHIMSjl]))*+"
)
"""A format of dates that writes a date and nothing else."""
_MARKUP = frozenset("<>\"'")
_QUOTED = 30
"""Characters of a text that a reason quotes."""
_DECODERS = frozenset(
    {"newline_to_br", "url_decode", "base64_decode", "base64_url_safe_decode", "escapejs"}
)
"""Filters whose result may have markup though their input has none."""
_TEXT_FILTERS = frozenset(
    [
        "append",
        "capitalize",
        "compact",
        "concat",
        "default",
        "downcase",
        "escape",
        "escape_once",
        "first",
        "h",
        "join",
        "last",
        "lstrip",
        "map",
        "pluralize",
        "prepend",
        "remove",
        "remove_first",
        "remove_last",
        "replace",
        "replace_first",
        "replace_last",
        "reverse",
        "rstrip",
        "size",
        "slice",
        "split",
        "squish",
        "strip",
        "strip_newlines",
        "upcase",
    ]
)
_NUMBER_FILTERS = frozenset(
    [
        "abs",
        "at_least",
        "at_most",
        "ceil",
        "date",
        "divided_by",
        "floor",
        "in_zone",
        "minus",
        "modulo",
        "plus",
        "round",
        "sum",
        "times",
    ]
)
"""Filters whose result has at most the dots and colons of a number or a date."""
FILTERS = _TEXT_FILTERS | _NUMBER_FILTERS
"""Filters of what is shown of a secret."""
_JOINING = frozenset({"append", "concat", "default", "prepend"})
"""Filters that may have a secret as their argument."""
_SELECTORS = frozenset({"compact", "concat", "default", "first", "last", "reverse", "slice"})
"""Filters that return items of a list as they are, whatever these contain."""
_BY_KEY = frozenset({"find", "reject", "sort", "sort_natural", "uniq", "where"})
"""Filters that return items of a list by one of their properties."""
_COUNTING = frozenset({"find_index", "has", "sum"})
"""Filters that compute something of one property."""


class Level(IntEnum):
    """How secret a value is."""

    PUBLIC = 0
    CONTAINER = 1
    """An object or list that has a sensitive variable somewhere."""
    SECRET = 2


@dataclass(frozen=True, slots=True)
class Value:
    """What is known of a value. ``name`` is the sensitive variable it depends on."""

    level: Level = Level.PUBLIC
    name: str = ""
    fault: str = ""
    """What in it, besides the secret, could make a link with what it stands beside; for people."""
    is_number: bool = False
    """It may have a dot."""
    markup: frozenset[str] = frozenset()
    """Characters of HTML that it may have and that aren't escaped."""

    def join(self, *others: "Value") -> "Value":
        """Return what is known of a value that is one of these, or made of all of them."""
        most = max((self, *others), key=lambda value: value.level)
        return Value(
            most.level,
            most.name,
            next((value.fault for value in (self, *others) if value.fault), ""),
            any(value.is_number for value in (self, *others)),
            self.markup.union(*(value.markup for value in others)),
        )


PUBLIC = Value()


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """What decides whether a node is rendered, and how often, with the conditions around it."""

    expressions: tuple[Expression, ...]
    parent: "Condition | None" = None
    is_compared: bool = False
    """A loop or a ``case``, which does more than to ask whether there is a value."""


@dataclass(frozen=True, slots=True, eq=False)
class _Assignment:
    name: str
    expressions: Sequence[Expression]
    condition: Condition | None


@dataclass(slots=True)
class Secrets:
    """The secret values of one parsed template."""

    bound: BoundTemplate
    sensitive: frozenset[str]
    example: Mapping[str, Any]
    assigned: set[str] = field(default_factory=set)
    """The variables that ``assign`` sets."""
    _locals: dict[str, Value] = field(default_factory=dict)
    _deciding: dict[Condition, str] = field(default_factory=dict)
    _children: dict[Node, list[tuple[Node, Condition | None]]] = field(default_factory=dict)
    _containers: frozenset[str] = frozenset()
    _static: RenderContext = field(init=False)

    def __post_init__(self) -> None:
        self._static = RenderContext(self.bound)
        self._containers = frozenset(_names_of_containers(self.example, self.sensitive))
        readers: dict[str | Condition, list[_Assignment | Condition]] = defaultdict(list)
        waiting: deque[_Assignment | Condition] = deque()
        for assignment in self._assignments(self.bound.nodes, None):
            waiting.append(assignment)
            sources: list[str | Condition] = [*_roots(assignment.expressions)]
            outer = (
                assignment.condition if isinstance(assignment, _Assignment) else assignment.parent
            )
            for source in (*sources, *([outer] if outer else ())):
                readers[source].append(assignment)
            if isinstance(assignment, _Assignment):
                self._locals[assignment.name] = PUBLIC
        while waiting:
            assignment = waiting.popleft()
            waiting.extend(self._update(assignment, readers))

    def _update(
        self,
        assignment: _Assignment | Condition,
        readers: Mapping[str | Condition, Sequence[_Assignment | Condition]],
    ) -> Sequence[_Assignment | Condition]:
        """Compute a value again. Return what depends on it, if it has changed."""
        if isinstance(assignment, Condition):
            if assignment in self._deciding or not (name := self._decides(assignment)):
                return ()
            self._deciding[assignment] = name
            return readers.get(assignment, ())
        before = self._locals[assignment.name]
        after = before.join(*(self.value_of(expression) for expression in assignment.expressions))
        if name := self.deciding(assignment.condition):
            after = after.join(Value(Level.SECRET, name))
        self._locals[assignment.name] = after
        return readers.get(assignment.name, ()) if after != before else ()

    def value_of(self, expression: Expression) -> Value:
        """Return what is known of an expression's value."""
        if isinstance(expression, Path):
            return self._value_of_path(expression)
        if isinstance(expression, StringLiteral):
            text = expression.value
            fault = "" if _PLAIN.fullmatch(text) else f"the text {text[:_QUOTED]!r}"
            return Value(fault=fault, markup=_MARKUP.intersection(text))
        if isinstance(expression, FloatLiteral):
            return Value(is_number=True)
        if isinstance(expression, FilteredExpression):
            value = self.value_of(expression.left)
            return self._filtered(value, expression.filters or ())
        if isinstance(expression, TernaryFilteredExpression):
            value = self.value_of(expression.left)
            if expression.alternative:
                other = self.value_of(expression.alternative)
                value = value.join(self._filtered(other, expression.filters or ()))
            if name := self._revealed(expression.condition):
                value = value.join(Value(Level.SECRET, name))
            return self._filtered(value, expression.tail_filters or ())
        return PUBLIC.join(*(self.value_of(child) for child in expression.children()))

    def touched(self) -> str | None:
        """Return a sensitive variable that the template shows or decides by, or None."""
        for top in self.bound.nodes:
            for node in self._walk(top):
                for expression in node.expressions():
                    value = self.value_of(expression)
                    is_handed_on = isinstance(node, AssignNode | ForNode)
                    if value.level > (Level.CONTAINER if is_handed_on else Level.PUBLIC):
                        return value.name
        return None

    def deciding(self, condition: Condition | None) -> str | None:
        """Return the sensitive variable that decides about a node, or None.

        Whether a sensitive variable is given reveals nothing of it.
        """
        return None if condition is None else self._deciding.get(condition)

    def _decides(self, condition: Condition) -> str | None:
        if condition.parent is not None and (name := self._deciding.get(condition.parent)):
            return name
        ask = self._compared if condition.is_compared else self._revealed
        return next(
            (name for expression in condition.expressions if (name := ask(expression))), None
        )

    def children(
        self, node: Node, condition: Condition | None
    ) -> Sequence[tuple[Node, Condition | None]]:
        """Return the blocks inside a node, with what decides about each."""
        found = self._children.get(node)
        if found is None:
            found = self._children[node] = [*self._read_children(node, condition)]
        return found

    def _read_children(
        self, node: Node, condition: Condition | None
    ) -> Iterator[tuple[Node, Condition | None]]:
        match node:
            case IfNode() | UnlessNode():
                condition = Condition((node.condition,), condition)
                yield node.consequence, condition
                for alternative in node.alternatives:
                    condition = Condition((alternative.expression,), condition)
                    yield alternative.block, condition
                if node.default:
                    yield node.default, condition
            case CaseNode():
                yield from _read_choice(node, condition)
            case ForNode() | TablerowNode():
                loop = Condition((node.expression,), condition, is_compared=True)
                yield node.block, loop
                if isinstance(node, ForNode) and node.default:
                    yield node.default, loop
            case _:
                for child in node.children(self._static, include_partials=False):
                    yield child, condition

    def _assignments(
        self, nodes: Iterable[Node], condition: Condition | None
    ) -> Iterator[_Assignment | Condition]:
        """Yield the assignments and conditions of a template."""
        for node in nodes:
            match node:
                case AssignNode():
                    self.assigned.add(str(node.name))
                    yield _Assignment(str(node.name), [node.expression], condition)
                case CaptureNode():
                    yield self._capture(node, condition)
                case _:
                    pass
            last = condition
            for child, inner in self.children(node, condition):
                yield from _between(inner, last)
                last = inner
                if isinstance(node, ForNode | TablerowNode) and child is node.block:
                    yield from self._loop_variables(node, condition, inner)
                yield from self._assignments([child], inner)

    @staticmethod
    def _loop_variables(
        node: ForNode | TablerowNode, outer: Condition | None, inner: Condition | None
    ) -> Iterator[_Assignment]:
        loop = node.expression
        yield _Assignment(str(loop.identifier), [loop.iterable], outer)
        for counter in ("forloop", "tablerowloop"):
            yield _Assignment(counter, (), inner)

    def _capture(self, node: CaptureNode, condition: Condition | None) -> _Assignment:
        inside: list[Expression] = []
        for inner in self._walk(node.block):
            inside += inner.expressions()
            if isinstance(inner, ContentNode):
                inside.append(StringLiteral(inner.token, inner.text))
        return _Assignment(str(node.name), inside, condition)

    def _walk(self, block: Node) -> Iterator[Node]:
        waiting = [block]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.children(self._static, include_partials=False)

    def _value_of_path(self, path: Path) -> Value:
        root, *segments = path.path
        if not isinstance(root, str):
            # A computed root, such as `{{ [name] }}`, may name any variable.
            return Value(Level.SECRET, self._name, "a variable by a computed name")
        if root in self.sensitive:
            return Value(Level.SECRET, root)
        is_local = root in self._locals
        value = self._locals.get(root, PUBLIC)
        found: Any = self.example.get(root)
        if root in self._containers:
            value = value.join(Value(Level.CONTAINER, self._name))
        for segment in segments:
            value = self._step(value, segment)
            is_name = isinstance(found, Mapping) and isinstance(segment, str)
            found = found.get(segment) if is_name else None
        if value.level is not Level.SECRET and not is_local and not _is_plain_data(found):
            value = value.join(Value(fault=f"the variable {path}"))
        return value

    @property
    def _name(self) -> str:
        return min(self.sensitive)

    def _step(self, value: Value, segment: object) -> Value:
        if isinstance(segment, Path):
            by = self.value_of(segment)
            if by.level is not Level.PUBLIC:
                return value.join(Value(Level.SECRET, by.name, "a value that it chooses"))
            return as_text(value)
        if segment in self.sensitive:
            return Value(Level.SECRET, str(segment))
        is_inside = value.level is Level.CONTAINER and isinstance(segment, str)
        if is_inside and segment not in self._containers and segment not in ("first", "last"):
            return Value(fault=f"the variable {segment}")
        return value

    def _filtered(self, value: Value, filters: Iterable[Filter]) -> Value:
        for liquid_filter in filters:
            given = [argument.value for argument in liquid_filter.args]
            values = [self.value_of(argument) for argument in given]
            key = given[0].value if given and isinstance(given[0], StringLiteral) else None
            if value.level is Level.CONTAINER and (
                found := self._selected(value, liquid_filter, key, values)
            ):
                value = found
            elif value.join(*values).level is Level.PUBLIC:
                value = value.join(*values)
                if liquid_filter.name in _DECODERS:
                    value = value.join(Value(markup=_MARKUP))
            else:
                value = self._computed(value, liquid_filter.name, key, values)
        return value

    def _selected(
        self, value: Value, liquid_filter: Filter, key: str | None, values: Sequence[Value]
    ) -> Value | None:
        """Return what a filter takes of an object or a list. None if it may depend on a secret."""
        if any(argument.level is Level.SECRET for argument in values):
            return None
        is_name = key is not None and _KEY.fullmatch(key) is not None
        is_public = is_name and key not in self.sensitive | self._containers
        if liquid_filter.name == "map" and is_name:
            return self._step(value, key)
        if liquid_filter.name == "size" or (liquid_filter.name in _COUNTING and is_public):
            return PUBLIC
        if liquid_filter.name in _SELECTORS or (liquid_filter.name in _BY_KEY and is_public):
            return value.join(*values)
        return None

    def _computed(self, value: Value, name: str, key: str | None, values: Sequence[Value]) -> Value:
        """Return what is known of the result of a filter that has a secret."""
        if name == "date":
            is_plain = len(values) == 1 and key is not None and _DATE.fullmatch(key)
            values = [replace(value, fault="" if is_plain else "the format") for value in values]
        elif name == "in_zone":
            values = [replace(value, fault="") for value in values]
        found = as_text(value).join(*map(as_text, values))
        is_by_secret = any(value.level is not Level.PUBLIC for value in values)
        is_known = name in FILTERS and (not is_by_secret or name in _JOINING)
        if not is_known:
            allowed = ", ".join(sorted(FILTERS))
            found = found.join(Value(fault=f"the filter {name!r} (only {allowed})"))
        if name in _DECODERS:
            found = found.join(Value(markup=_MARKUP))
        return found.join(Value(is_number=name in _NUMBER_FILTERS))

    def _revealed(self, expression: Expression) -> str | None:
        match expression:
            case BooleanExpression():
                return self._revealed(expression.expression)
            case LogicalNotExpression():
                return self._revealed(expression.right)
            case LogicalAndExpression() | LogicalOrExpression():
                return self._revealed(expression.left) or self._revealed(expression.right)
            case Path() if self.is_variable(expression):
                return None
            case EqExpression() | NeExpression() if isinstance(
                expression.right, Nil | Blank | Empty
            ) or (isinstance(expression.right, StringLiteral) and not expression.right.value):
                return self._revealed(expression.left)
            case _:
                return self._compared(expression)

    def is_variable(self, path: Path) -> bool:
        """Return whether a path is a variable of the data, not one of the template."""
        root = path.path[0]
        names = all(isinstance(part, str) for part in path.path)
        return names and isinstance(root, str) and root not in self._locals

    def _compared(self, expression: Expression) -> str | None:
        if isinstance(expression, LoopExpression):
            value = self.value_of(expression.iterable)
            others = [child for child in expression.children() if child is not expression.iterable]
            values = [as_text(self.value_of(child)) for child in others]
            value = PUBLIC.join(*values, *([value] if value.level is Level.SECRET else []))
        else:
            value = as_text(self.value_of(expression))
        return value.name if value.level is Level.SECRET else None


def _read_choice(
    node: CaseNode, condition: Condition | None
) -> Iterator[tuple[Node, Condition | None]]:
    whens = [block for block in node.blocks if isinstance(block, MultiExpressionBlockNode)]
    compared = [e for when in whens for e in when.expression.expressions]
    condition = Condition((node.expression, *compared), condition, is_compared=True)
    for block in node.blocks:
        yield (block.block if isinstance(block, MultiExpressionBlockNode) else block), condition


def _between(inner: Condition | None, outer: Condition | None) -> Iterator[Condition]:
    """Yield the conditions from an inner one up to an outer one, the outermost first."""
    found: list[Condition] = []
    while inner is not None and inner is not outer:
        found.append(inner)
        inner = inner.parent
    yield from reversed(found)


def as_text(value: Value) -> Value:
    """Return what is known of a value that is written as text or compared."""
    if value.level is Level.CONTAINER:
        return value.join(Value(Level.SECRET, value.name, "a whole object or list"))
    return value


def _is_plain_data(value: Any) -> bool:
    """Return whether a variable's example is a number or a word, so that it begins no link."""
    if isinstance(value, str):
        return _PLAIN_DATA.fullmatch(value) is not None
    return isinstance(value, int)


def _roots(expressions: Iterable[Expression]) -> Iterator[str]:
    waiting = [*expressions]
    while waiting:
        expression = waiting.pop()
        if isinstance(expression, Path) and isinstance(expression.path[0], str):
            yield expression.path[0]
        waiting += expression.children()


def _names_of_containers(value: Any, sensitive: frozenset[str]) -> Iterator[str]:
    """Yield the names in data whose values have a sensitive variable somewhere inside."""
    items = value.items() if isinstance(value, Mapping) else ((None, each) for each in value)
    for name, item in items:
        if isinstance(item, Mapping | list | tuple):
            if name is not None and name not in sensitive and _has_sensitive(item, sensitive):
                yield name
            yield from _names_of_containers(item, sensitive)


def _has_sensitive(value: Any, sensitive: frozenset[str]) -> bool:
    """Return whether data has a sensitive variable somewhere inside."""
    if isinstance(value, Mapping):
        return any(
            name in sensitive or _has_sensitive(item, sensitive) for name, item in value.items()
        )
    return isinstance(value, list | tuple) and any(
        _has_sensitive(item, sensitive) for item in value
    )
