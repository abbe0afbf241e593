"""Liquid's filters within a rendering's budget, and those of them that could take more at once.

A filter reads its arguments and makes a value: it pays for both. That would be too late for a few,
which make a long text or list out of short ones, or take time that grows with the square of what
they are given: these have versions of ours with the same results.
"""

from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from typing import Any

from liquid import Environment, Markup, soft_str
from liquid.builtin.filters.misc import date as date_of_liquid
from liquid.exceptions import FilterArgumentError
from liquid.filter import sequence_filter, string_filter, with_environment
from liquid.undefined import is_undefined

from . import markup
from .budget import (
    CHARACTERS_EACH,
    MAX_BITS,
    MAX_ITEMS,
    MAX_VALUE,
    Context,
    WorkLimitError,
    check_items,
    check_length,
    weight_of,
)

UNITS_OF_A_CALL = 2
MAX_DATE_LENGTH = 100
"""Characters of a text that is read as a date, and of a date's format."""
ITEMS_EACH = 4
"""Entries of a list that are read for one unit."""


def within_budget(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that needs its variables, and pays for its work.

    Liquid's own make 0 or an empty text of a variable that is missing.
    """
    wants_context = getattr(function, "with_context", False)

    @wraps(function)
    def bounded(*args: Any, context: Any = None, **options: Any) -> Any:
        units = UNITS_OF_A_CALL
        for value in args:
            units += _units(value)
        for value in options.values():
            units += _units(value)
        if wants_context:
            options["context"] = context
        made = function(*args, **options)
        if isinstance(context, Context):
            context.budget.spend(units + _units(made))
        return made

    bounded.__dict__["with_context"] = True
    return bounded


def _units(value: Any) -> int:
    """Return what it costs to read a value once; raises WorkLimitError for one that is too long.

    Raises UndefinedError for a variable that is missing.
    """
    kind = type(value)
    if issubclass(kind, str):
        length = len(value)
        if length > MAX_VALUE:
            check_length(length)
        return length // CHARACTERS_EACH
    if issubclass(kind, int):
        if value.bit_length() > MAX_BITS:
            raise WorkLimitError(f"A number has more than {MAX_BITS:,} bits.", token=None)
    elif issubclass(kind, list | tuple):
        check_items(len(value))
        return len(value) // ITEMS_EACH
    elif is_undefined(value):
        str(value)  # raises UndefinedError, naming it
    return 0


@string_filter
def replace(val: str, seq: str, sub: str = "") -> str:
    """Return a text with another in place of each occurrence of a third."""
    old, new = soft_str(seq), soft_str(sub)
    check_length(len(val) + val.count(old) * max(0, len(new) - len(old)))
    return val.replace(old, new)


@with_environment
@sequence_filter
def join(left: Iterable[object], separator: object = " ", *, environment: Environment) -> str:
    """Return the entries of a list as one text."""
    between = separator if isinstance(separator, str) else str(separator)
    if environment.autoescape and between == " ":
        between = Markup(" ")
    texts: list[str] = []
    total = 0
    for item in left:
        text = item if isinstance(item, str) else str(item)
        total += len(text) + len(between)
        check_length(total - len(between))
        texts.append(text)
    return between.join(texts)


@string_filter
def split(val: str, sep: Any) -> list[str]:
    """Return the pieces of a text between separators; its characters without one."""
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
    """Return a list followed by another."""
    if not isinstance(second_array, list | tuple):
        raise FilterArgumentError(
            f"concat expected an array, found {type(second_array).__name__}", token=None
        )
    made = [*sequence, *second_array]
    check_items(len(made))
    # The same text may stand in it a thousand times: it is long once it is written.
    check_length(weight_of(made))
    return made


@sequence_filter
def uniq(sequence: Iterable[Any], key: object = None) -> list[object]:
    """Return a list without the entries that are equal to an earlier one."""
    seen: set[Hashable] = set()
    kept: list[object] = []
    for item in sequence:
        mark = _hashable(item if key is None else _property(item, key))
        if mark not in seen:
            seen.add(mark)
            kept.append(item)
    return kept


def _property(item: Any, key: object) -> object:
    try:
        return item[key]
    except (KeyError, IndexError):
        return _MISSING
    except TypeError as error:
        raise FilterArgumentError(f"can't read property '{key}'", token=None) from error


_MISSING = object()


def _hashable(value: Any) -> Hashable:
    """Return something that is equal to another's where the values are."""
    if isinstance(value, dict):
        return ("dict", frozenset((k, _hashable(v)) for k, v in value.items()))
    if isinstance(value, list):
        return ("list", tuple(_hashable(v) for v in value))
    if isinstance(value, tuple):
        return ("tuple", tuple(_hashable(v) for v in value))
    return value


@with_environment
def date(dat: Any, fmt: Any, *, environment: Environment) -> str:
    """Return a date in a format; a text that is none stays as it is."""
    if isinstance(fmt, str) and len(fmt) > MAX_DATE_LENGTH:
        raise FilterArgumentError("the format of a date is too long", token=None)
    if isinstance(dat, str) and len(dat) > MAX_DATE_LENGTH:
        return str(dat)
    return date_of_liquid(dat, fmt, environment=environment)


@with_environment
@string_filter
def strip_html(val: str, *, environment: Environment) -> str:
    """Return a text without its tags and comments, and what stands in scripts and styles."""
    if "<" not in val or ">" not in val:
        return val
    pieces: list[str] = []
    at = 0
    for token in markup.tokens(val):
        pieces.append(val[at : token.start])
        if token.name in ("title", "textarea"):
            pieces.append(val[token.tag_end : token.end])
        at = token.end
    stripped = "".join([*pieces, val[at:]])
    return Markup(stripped) if environment.autoescape and isinstance(val, Markup) else stripped


REPLACED: dict[str, Callable[..., Any]] = {
    "replace": replace,
    "join": join,
    "split": split,
    "concat": concat,
    "uniq": uniq,
    "date": date,
    "strip_html": strip_html,
}
