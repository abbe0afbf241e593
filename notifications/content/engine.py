"""Renders Liquid with limits and custom filters, a fast path for simple templates, and a cache."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from liquid import BoundTemplate, Environment, FalsyStrictUndefined
from liquid.ast import BlockNode, Node
from liquid.builtin.content import ContentNode
from liquid.builtin.expressions import BooleanExpression, FilteredExpression, Path
from liquid.builtin.output import OutputNode
from liquid.builtin.tags.if_tag import IfNode
from liquid.exceptions import (
    ContextDepthError,
    FilterArgumentError,
    FilterError,
    LiquidError,
    LiquidTypeError,
    LocalNamespaceLimitError,
    LoopIterationLimitError,
    OutputStreamLimitError,
    UndefinedError,
)
from markupsafe import escape as escape_html

from domain import markdown
from domain.type_rules import LIQUID_PROPERTIES

from . import limits
from .filters import CUSTOM_FILTERS, REPLACED_FILTERS
from .limits import MAX_VALUE, Budget, WorkLimitError, apply_limits, within_budget
from .source import Piece, SourceError, find_liquid
from .values import with_liquid_operands

MAX_OUTPUT = MAX_VALUE  # Maximum size of a rendered part, in bytes
FORBIDDEN_TAGS = ("include", "render")
"""Tags that load other templates. Partials are in place of ``render`` before a source is parsed."""
_FILTER_ERRORS = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""Exceptions that a Liquid filter raises for an unsupported value, such as a date in year 0."""
_VARIABLE = re.compile(r"(?:'([^']*)'|(.+)) is undefined\Z", re.DOTALL)


# The fast path renders templates that have only text, ``{{ name }}``, and ``{% if name %}``, as
# most have, in a tenth of Liquid's time. Liquid renders all other templates and data. Both produce
# the same text.
_RESERVED_NAMES = frozenset({"first", "last", "size", "now", "today", "partial"})
"""Names that Liquid resolves without a variable of this name."""
RAW_HTML_FILTER = "safe"
"""Inserts text into HTML unescaped. Only for the layout, which receives HTML made here."""
MAX_LOOP_ITERATIONS = 1_000
_TOO_DEEP = "Blocks or expressions are nested too deeply."
_REASONS: Mapping[type[Exception], str] = {
    LoopIterationLimitError: f"Over {MAX_LOOP_ITERATIONS:,} loop iterations.",
    OutputStreamLimitError: f"The text is over {MAX_OUTPUT // 1024} KB long.",
    LocalNamespaceLimitError: "The template's own variables take too much memory.",
    ContextDepthError: _TOO_DEEP,
    RecursionError: _TOO_DEEP,
}
MAX_QUOTED = 80
"""Characters of an output or a tag that an error shows."""
MAX_CACHED_TEXTS = 512
MAX_CACHED_CHARACTERS = 4 * 1024 * 1024
_CLOCK_VARIABLES = frozenset({"now", "today"})
_MISSING = ""  # Cache key of a missing variable; no value has this representation


@dataclass(frozen=True, slots=True)
class _Value:
    path: tuple[str, ...]
    is_safe: bool = False  # The value is already escaped


@dataclass(frozen=True, slots=True)
class _Conditional:
    path: tuple[str, ...]
    then: "Pieces"
    otherwise: "Pieces"


Pieces = Sequence[str | _Value | _Conditional]


class _NeedsLiquidError(Exception):
    """The fast path can't render a template or its data, but Liquid can."""


def compile_fast_path(bound: BoundTemplate) -> Pieces | None:
    """Compile a parsed template for the fast path. Return None if the template needs Liquid."""
    try:
        return tuple(_compile_node(node) for node in bound.nodes)
    except _NeedsLiquidError:
        return None


Escape = Callable[[str], str]
"""Makes a value a text in the language of the template."""


def fill_fast_path(
    pieces: Pieces, variables: Mapping[str, Any], *, escape: Escape | None
) -> str | None:
    """Return the text with its variables inserted, or None if the data needs Liquid."""
    found: list[str] = []
    try:
        # A character takes up to 4 bytes. Liquid measures exactly.
        _fill(pieces, variables, found, escape, MAX_OUTPUT // 4)
    except _NeedsLiquidError:
        return None
    text = "".join(found)
    # Liquid normalizes line ends.
    return None if "\r" in text else text


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
    filters = [used.name for used in expression.filters or ()]
    if filters not in ([], [RAW_HTML_FILTER]):
        raise _NeedsLiquidError
    return _Value(_compile_path(expression.left), is_safe=bool(filters))


def _compile_block(block: BlockNode) -> Pieces:
    if block.blank:
        # Liquid omits a block that holds only whitespace.
        raise _NeedsLiquidError
    return tuple(_compile_node(node) for node in block.nodes)


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
    escape: Escape | None,
    characters_left: int,
) -> int:
    for piece in pieces:
        if isinstance(piece, str):
            text = piece
        elif isinstance(piece, _Value):
            value = _look_up(piece.path, variables)
            text = _format_value(value, None if piece.is_safe else escape)
        else:
            value = _look_up(piece.path, variables)
            chosen = piece.otherwise if value is None or value is False else piece.then
            characters_left = _fill(chosen, variables, found, escape, characters_left)
            continue
        characters_left -= len(text)
        if characters_left < 0:
            raise _NeedsLiquidError
        found.append(text)
    return characters_left


def _look_up(path: tuple[str, ...], variables: Mapping[str, Any]) -> Any:
    value: Any = variables
    for name in path:
        if type(value) is not dict:
            raise _NeedsLiquidError
        value = value.get(name)
        if value is None:
            return None
    return value


def _format_value(value: Any, escape: Escape | None) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is not str:
        raise _NeedsLiquidError
    return value if escape is None else escape(value)


def escape_of(environment: Environment) -> Escape | None:
    """Return how the outputs of an environment's templates are escaped, None if they aren't."""
    return environment.escape if isinstance(environment, _LimitedEnvironment) else None


class TemplateError(ValueError):
    """A template can't be parsed or rendered.

    ``variable`` is the name of a missing variable, ``part`` the template's part, if known.
    """

    def __init__(
        self, code: str, message: str, *, variable: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.variable = variable
        self.line = line
        self.part: str | None = None

    @property
    def text(self) -> str:
        """The message with its place, such as *Over 1,000 loop iterations (body, line 1)*."""
        line = None if self.line is None else f"line {self.line}"
        place = ", ".join(where for where in (self.part, line) if where)
        message = str(self)
        return f"{message.rstrip('.')} ({place})." if place else message


def check_source(source: str) -> list[Piece]:
    """Return a source's Liquid. Raises TemplateError if it exceeds the limits for parsing."""
    try:
        return find_liquid(source)
    except SourceError as fault:
        line = None if fault.index is None else line_at(source, fault.index)
        raise TemplateError(fault.code, str(fault), line=line) from fault


class _LimitedEnvironment(Environment):
    context_depth_limit = 10
    loop_iteration_limit = MAX_LOOP_ITERATIONS
    local_namespace_limit = 64 * 1024
    output_stream_limit = MAX_OUTPUT
    string_first_and_last = True
    escape: Escape | None = None
    """Applied to each output. None: it is written as it is."""


def _environment(*, escape: Escape | None = None, is_layout: bool = False) -> Environment:
    is_html = escape is escape_html
    environment = _LimitedEnvironment(undefined=FalsyStrictUndefined, autoescape=is_html)
    environment.escape = escape
    for name, function in (REPLACED_FILTERS | CUSTOM_FILTERS).items():
        environment.add_filter(name, function)
    environment.add_filter("h", environment.filters["escape"])
    for name, function in list(environment.filters.items()):
        if name != "default":
            reading = with_liquid_operands(name, function)
            environment.add_filter(name, within_budget(name, reading))
    for name in FORBIDDEN_TAGS:
        del environment.tags[name]
    if not is_layout:
        del environment.filters[RAW_HTML_FILTER]
    return environment


TEXT_ENVIRONMENT = _environment()
HTML_ENVIRONMENT = _environment(escape=escape_html)
LAYOUT_ENVIRONMENT = _environment(escape=escape_html, is_layout=True)
MARKDOWN_ENVIRONMENT = _environment(escape=markdown.escape)


class Template:
    """One parsed part of a template, ready to render."""

    __slots__ = ("_fast_path", "bound")

    def __init__(self, source: str, *, environment: Environment = TEXT_ENVIRONMENT) -> None:
        check_source(source)
        try:
            self._bind(environment.from_string(source))
        except LiquidError as error:
            raise _to_template_error(error) from error

    @classmethod
    def from_bound(cls, bound: BoundTemplate) -> Self:
        """Return the template of an already parsed source. Raises TemplateError."""
        template = cls.__new__(cls)
        template._bind(bound)
        return template

    def _bind(self, bound: BoundTemplate) -> None:
        self.bound = bound
        try:
            apply_limits(bound)
            self._fast_path = compile_fast_path(bound)
        except RecursionError as error:
            raise _to_template_error(error) from error

    @property
    def has_fast_path(self) -> bool:
        """Whether the fast path can render the template, which is cheaper than a cache lookup."""
        return self._fast_path is not None

    def render(self, variables: Mapping[str, Any], *, budget: Budget | None = None) -> str:
        """Return the text with its variables inserted. Raises TemplateError."""
        if self._fast_path is not None:
            text = fill_fast_path(self._fast_path, variables, escape=escape_of(self.bound.env))
            if text is not None:
                return text
        try:
            return limits.render(self.bound, variables, budget or Budget())
        except UndefinedError as error:
            match = _VARIABLE.match(str(error.args[0]))
            variable = (match[1] or match[2]) if match else None
            reason, line = f"The template needs the variable {variable!r}.", line_of(error)
            raise TemplateError("missing_variable", reason, variable=variable, line=line) from error
        except WorkLimitError as error:
            reason, line = str(error.message), line_of(error)
            raise TemplateError("template_failed", reason, line=line) from error
        except (LiquidError, RecursionError, *_FILTER_ERRORS) as error:
            raise _to_template_error(error) from error


def line_of(error: Exception) -> int | None:
    """Return the template line of a Liquid error, or None if unknown."""
    if not isinstance(error, LiquidError) or error.token is None or error.token.start_index < 0:
        return None
    return line_at(error.token.source, error.token.start_index)


def line_at(source: str, index: int) -> int:
    """Return the line number of the character at ``index``, from 1."""
    return source.count("\n", 0, index) + 1


def _to_template_error(error: Exception) -> TemplateError:
    reason = _REASONS.get(type(error)) or _describe(error)
    return TemplateError("template_failed", reason, line=line_of(error))


def _describe(error: Exception) -> str:
    """Return what can't be rendered. No value is shown, since it may be a secret."""
    token = error.token if isinstance(error, LiquidError) else None
    if token is None or token.start_index < 0:
        return f"The template can't be rendered: {type(error).__name__}."
    quoted = " ".join(_piece_at(token.source, token.start_index).split())
    if len(quoted) > MAX_QUOTED:
        quoted = quoted[:MAX_QUOTED] + "\u2026"
    if isinstance(error, FilterArgumentError | FilterError | LiquidTypeError):
        return f"The filter or comparison {token.value!r} can't take this value: {quoted}"
    return f"This can't be rendered ({type(error).__name__}): {quoted}"


def _piece_at(source: str, index: int) -> str:
    """Return the output or tag around an index."""
    start = max(source.rfind("{{", 0, index + 2), source.rfind("{%", 0, index + 2), 0)
    ends = (source.find("}}", index), source.find("%}", index))
    end = min((found + 2 for found in ends if found >= 0), default=len(source))
    return source[start:end]


Paths = Sequence[tuple[str, ...]]


class RenderCache:
    """Caches rendered texts by template and by the values that the template uses."""

    def __init__(self) -> None:
        self._paths: dict[Template, Paths | None] = {}
        self._texts: dict[tuple[Template, tuple[str, ...]], str] = {}
        self._characters_left = MAX_CACHED_CHARACTERS

    def render(self, template: Template, variables: Mapping[str, Any]) -> str:
        """Return a template's text with its variables inserted. Raises TemplateError."""
        if template.has_fast_path:
            return template.render(variables)
        if template not in self._paths:
            self._paths[template] = variable_paths(template.bound)
        paths = self._paths[template]
        if paths is None:
            return template.render(variables)
        key = (template, tuple(_cache_key(path, variables) for path in paths))
        text = self._texts.get(key)
        if text is None:
            text = template.render(variables)
            if len(self._texts) < MAX_CACHED_TEXTS and len(text) <= self._characters_left:
                self._texts[key] = text
                self._characters_left -= len(text)
        return text


def variable_paths(bound: BoundTemplate) -> Paths | None:
    """Return the variables that determine a template's output. None: the current time does, too."""
    used = bound.analyze(include_partials=False).globals
    if not _CLOCK_VARIABLES.isdisjoint(used):
        return None
    paths = {_name_prefix(use.segments) for uses in used.values() for use in uses}
    # A variable's key contains those of its properties.
    return sorted(
        path for path in paths if not any(path[:length] in paths for length in range(1, len(path)))
    )


def _name_prefix(segments: Sequence[object]) -> tuple[str, ...]:
    """Return the names at the start of a path, up to an index or a property of Liquid."""
    names: list[str] = []
    for segment in segments:
        if not isinstance(segment, str) or (names and segment in LIQUID_PROPERTIES):
            break
        names.append(segment)
    return tuple(names)


def _cache_key(path: tuple[str, ...], variables: Mapping[str, Any]) -> str:
    """Return a key for a variable's value. Values that render differently have different keys."""
    value: Any = variables
    for depth, name in enumerate(path):
        if not isinstance(value, Mapping):
            # The path has no value. The depth distinguishes this key from that of a value.
            return f"{depth}:{value!r}"
        if name not in value:
            return _MISSING
        value = value[name]
    return repr(value)
