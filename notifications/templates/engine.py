"""Liquid, with limits: a template or its data cannot hold up a worker."""

import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from liquid import Environment, FalsyStrictUndefined, is_undefined
from liquid.exceptions import LiquidError, UndefinedError
from liquid.template import BoundTemplate

from . import plain
from .filters import OWN_FILTERS

MAX_OUTPUT = 256 * 1024
"""No part renders to more bytes than this."""
FORBIDDEN_TAGS = ("include", "render")
"""Tags that read other templates: there are none to read."""
_FILTER_FAILURES = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError)
"""What a filter of Liquid's may raise for a value it was not made for: a date in the year 0."""
_VARIABLE = re.compile(r"'?([^' ]+)'? is undefined")


class TemplateProblem(ValueError):
    """A message cannot be made from a template. ``variable`` names the one that is missing."""

    def __init__(
        self, code: str, message: str, *, variable: str | None = None, line: int | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.variable = variable
        self.line = line


class _Liquid(Environment):
    context_depth_limit = 10
    loop_iteration_limit = 1_000
    local_namespace_limit = 64 * 1024
    output_stream_limit = MAX_OUTPUT


def _environment(*, autoescape: bool, is_layout: bool = False) -> Environment:
    environment = _Liquid(undefined=FalsyStrictUndefined, autoescape=autoescape)
    for name, function in OWN_FILTERS.items():
        environment.add_filter(name, function)
    for name, function in list(environment.filters.items()):
        if name != "default":
            environment.add_filter(name, _strict(function))
    for name in FORBIDDEN_TAGS:
        del environment.tags[name]
    if not is_layout:
        del environment.filters[plain.RAW_HTML_FILTER]
    return environment


def _strict(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that needs its variables: Liquid's own make 0 or an empty text of them."""

    @wraps(function)
    def strict(*args: Any, **options: Any) -> Any:
        for value in (*args, *options.values()):
            if is_undefined(value):
                str(value)  # raises UndefinedError, naming it
        return function(*args, **options)

    return strict


TEXT = _environment(autoescape=False)
HTML = _environment(autoescape=True)
LAYOUT = _environment(autoescape=True, is_layout=True)


class Template:
    """A parsed text."""

    __slots__ = ("_pieces", "bound")

    def __init__(self, source: str, *, environment: Environment = TEXT) -> None:
        """Parse; raises TemplateProblem."""
        try:
            self.bound: BoundTemplate = environment.from_string(source)
        except LiquidError as error:
            raise _failed(error) from error
        self._pieces = plain.pieces_of(self.bound)

    @property
    def is_plain(self) -> bool:
        """Whether it only puts values into a text: that costs less than to remember it."""
        return self._pieces is not None

    def render(self, variables: Mapping[str, Any]) -> str:
        """Return the text with its variables filled in; raises TemplateProblem."""
        if self._pieces is not None:
            autoescape = self.bound.env.autoescape
            text = plain.fill(self._pieces, variables, autoescape=autoescape, limit=MAX_OUTPUT)
            if text is not None:
                return text
        try:
            return self.bound.render(variables)
        except UndefinedError as error:
            match = _VARIABLE.search(str(error.args[0]))
            variable = match[1] if match else None
            raise TemplateProblem(
                "missing_variable",
                f"The template needs the variable {variable!r}.",
                variable=variable,
                line=line_of(error),
            ) from error
        except (LiquidError, *_FILTER_FAILURES) as error:
            raise _failed(error) from error


def line_of(error: Exception) -> int | None:
    """Return the line of the template that an error of Liquid's is about; None if it is unknown."""
    if not isinstance(error, LiquidError) or error.token is None or error.token.start_index < 0:
        return None
    return line_at(error.token.source, error.token.start_index)


def line_at(source: str, index: int) -> int:
    """Return the number of the line a character stands on, from 1."""
    return source.count("\n", 0, index) + 1


def _failed(error: Exception) -> TemplateProblem:
    return TemplateProblem(
        "template_failed",
        f"The template cannot be rendered: {type(error).__name__}.",
        line=line_of(error),
    )
