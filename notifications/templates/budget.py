"""Limits on the work of one rendering: what Liquid's own limits do not bound.

Liquid bounds the output, the nesting and the product of nested loops. It does not bound loops that
follow each other, texts that filters make and throw away, nor comparisons of long values. A
rendering has one budget for these. The unit is about a microsecond on a current core; counting
units, not time, makes the answer the same on every machine.
"""

import sys
from collections.abc import Mapping
from io import StringIO
from typing import Any, TextIO

from liquid import BoundTemplate, RenderContext
from liquid.exceptions import LocalNamespaceLimitError, OutputStreamLimitError, ResourceLimitError
from liquid.output import LimitedStringIO

MAX_WORK = 30_000
"""Units of one rendering: some 50 ms."""
MAX_VALUE = 256 * 1024
"""Characters that a filter's result may hold, in all its entries."""
MAX_ITEMS = 10_000
"""Entries that a range, or the list a filter makes, may have."""
MAX_BITS = 1_024
"""Bits of a number that a filter may return."""
CHARACTERS_EACH = 32
"""Characters that are read or written for one unit."""


class WorkLimitError(ResourceLimitError):
    """A rendering takes more work, or makes longer values, than a template may."""


class Budget:
    """The remaining budget of one rendering."""

    __slots__ = ("left",)

    def __init__(self, units: int = MAX_WORK) -> None:
        self.left = units

    def spend(self, units: int) -> None:
        """Take units; raises WorkLimitError if there are not so many left."""
        self.left -= units
        if self.left < 0:
            raise WorkLimitError("The template takes too much work to render.", token=None)


def weight_of(value: object, *, most: int = MAX_VALUE) -> int:
    """Return the characters a value holds in all its entries, or somewhat more than ``most``."""
    total, waiting = 0, [value]
    while waiting and total <= most:
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
    """Raise WorkLimitError for a text that is longer than a filter may make."""
    if length > MAX_VALUE:
        raise WorkLimitError(f"A filter makes more than {MAX_VALUE:,} characters.", token=None)


def check_items(count: int) -> None:
    """Raise WorkLimitError for a range or list that has more entries than it may."""
    if count > MAX_ITEMS:
        raise WorkLimitError(f"A list or range has more than {MAX_ITEMS:,} entries.", token=None)


class ChargedIO(LimitedStringIO):
    """Output of limited size, paid from a budget."""

    def __init__(self, limit: int, budget: Budget) -> None:
        super().__init__(limit)
        self._budget = budget

    def write(self, text: str, /) -> int:
        """Write a text; raises WorkLimitError, OutputStreamLimitError."""
        size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
        self.size += size
        if self.size > self.limit:
            raise OutputStreamLimitError("output stream limit reached", token=None)
        if size >= CHARACTERS_EACH:
            self._budget.spend(size // CHARACTERS_EACH)
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
        """Set a variable of the template's; Liquid's own adds up all of them each time."""
        size = sys.getsizeof(val, 1)
        self._total += size - self._sizes.get(key, 0)
        self._sizes[key] = size
        self.locals[key] = val
        limit = self.env.local_namespace_limit
        if limit and self._total > limit:
            raise LocalNamespaceLimitError("local namespace limit reached", token=None)

    def get_buffer(self, buf: TextIO | None = None) -> StringIO:
        """Return a buffer for a part of the output, paid from the same budget."""
        used = buf.size if isinstance(buf, LimitedStringIO) else 0
        return ChargedIO((self.env.output_stream_limit or MAX_VALUE) - used, self.budget)


def render(bound: BoundTemplate, variables: Mapping[str, Any], budget: Budget) -> str:
    """Return a template's output; raises what Liquid raises, and WorkLimitError."""
    context = Context(bound, globals=bound.make_globals(dict(variables)))
    context.budget = budget
    buffer = ChargedIO(bound.env.output_stream_limit or MAX_VALUE, budget)
    bound.render_with_context(context, buffer)
    return buffer.getvalue()
