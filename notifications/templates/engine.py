"""Liquid, with limits: a template or its data cannot hold up a worker."""

import re
from collections.abc import Mapping
from typing import Any, Self

from liquid import BoundTemplate, Environment, FalsyStrictUndefined
from liquid.exceptions import LiquidError, UndefinedError

from . import budget as budgets
from . import plain
from .bounded_filters import REPLACED, within_budget
from .budget import MAX_VALUE, Budget, WorkLimitError
from .expressions import put_limits
from .filters import OWN_FILTERS
from .source import find_fault

MAX_OUTPUT = MAX_VALUE
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
    for name, function in (REPLACED | OWN_FILTERS).items():
        environment.add_filter(name, function)
    for name, function in list(environment.filters.items()):
        if name != "default":
            environment.add_filter(name, within_budget(function))
    for name in FORBIDDEN_TAGS:
        del environment.tags[name]
    if not is_layout:
        del environment.filters[plain.RAW_HTML_FILTER]
    return environment


TEXT = _environment(autoescape=False)
HTML = _environment(autoescape=True)
LAYOUT = _environment(autoescape=True, is_layout=True)


class Template:
    """A parsed text."""

    __slots__ = ("_pieces", "bound")

    def __init__(self, source: str, *, environment: Environment = TEXT) -> None:
        """Parse; raises TemplateProblem."""
        if fault := find_fault(source):
            line = None if fault.index is None else line_at(source, fault.index)
            raise TemplateProblem(fault.code, fault.reason, line=line)
        try:
            self._set(environment.from_string(source))
        except LiquidError as error:
            raise _failed(error) from error

    @classmethod
    def of(cls, bound: BoundTemplate) -> Self:
        """Return the template of a text that has been parsed; raises TemplateProblem."""
        template = cls.__new__(cls)
        template._set(bound)
        return template

    def _set(self, bound: BoundTemplate) -> None:
        self.bound = bound
        try:
            put_limits(bound)
            self._pieces = plain.pieces_of(bound)
        except RecursionError as error:
            raise _failed(error) from error

    @property
    def is_plain(self) -> bool:
        """Whether it only puts values into a text: that costs less than to remember it."""
        return self._pieces is not None

    def render(self, variables: Mapping[str, Any], *, budget: Budget | None = None) -> str:
        """Return the text with its variables filled in; raises TemplateProblem.

        It takes at most MAX_WORK units, or what is left of a budget that is given.
        """
        if self._pieces is not None:
            autoescape = self.bound.env.autoescape
            text = plain.fill(self._pieces, variables, autoescape=autoescape, limit=MAX_OUTPUT)
            if text is not None:
                return text
        try:
            return budgets.render(self.bound, variables, budget or Budget())
        except UndefinedError as error:
            match = _VARIABLE.search(str(error.args[0]))
            variable = match[1] if match else None
            raise TemplateProblem(
                "missing_variable",
                f"The template needs the variable {variable!r}.",
                variable=variable,
                line=line_of(error),
            ) from error
        except WorkLimitError as error:
            raise TemplateProblem(
                "template_failed", str(error.message), line=line_of(error)
            ) from error
        except (LiquidError, RecursionError, *_FILTER_FAILURES) as error:
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
