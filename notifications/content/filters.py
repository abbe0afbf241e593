"""Filters of templates: our own, and those of Liquid that differ or have no limit in python-liquid.

Shopify's tests of Liquid say what a filter does.
"""

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from liquid import Environment, Markup, soft_str
from liquid.exceptions import FilterArgumentError
from liquid.filter import (
    int_arg,
    liquid_filter,
    sequence_filter,
    string_filter,
    with_environment,
)
from liquid.undefined import is_undefined

from domain import plurals
from domain.time import parse_zone

from .dates import MAX_DATE_LENGTH, read_date, write_date
from .limits import MAX_ITEMS, check_items, check_length, weight_of
from .numbers import NUMBER_FILTERS
from .values import flat, text_of

MAX_SEPARATOR = 100  # Characters of a separator of split
MAX_NUMBER = 40  # Characters of a number that is counted
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d{1,2})?", re.ASCII)
_MISSING = object()
_BLOCK = re.compile(r"<(script|style|!--)", re.IGNORECASE | re.ASCII)
_BLOCK_ENDS = {
    "script": re.compile("</script>", re.IGNORECASE | re.ASCII),
    "style": re.compile("</style>", re.IGNORECASE | re.ASCII),
    "!--": re.compile("-->"),
}
_ESCAPABLE = re.compile(r"[<>\"']|&(?!(?:[a-zA-Z]{1,32}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});)")
_ENTITIES = {"<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "&": "&amp;"}


def pluralize(value: Any, one: str, many: str) -> str:
    """Return ``one`` if ``value`` is 1, as a number or text, else ``many``."""
    try:
        is_one = not isinstance(value, bool) and float(value) == 1
    except (TypeError, ValueError, OverflowError):
        is_one = False
    return one if is_one else many


def in_zone(value: Any, zone: str = "UTC") -> datetime:
    """Convert RFC 3339 text or a timestamp to local time. Text without an offset is UTC.

    Written as text, it is the clock of that place, without an offset.

    ``{{ start_time | in_zone: recipient.timezone | date: '%H:%M' }}``
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            instant = datetime.fromtimestamp(value, UTC)
        else:
            given = datetime.fromisoformat(str(value))
            instant = given if given.tzinfo else given.replace(tzinfo=UTC)
        return LocalTime.fromtimestamp(instant.timestamp(), parse_zone(zone))
    except (ValueError, OverflowError, OSError, TypeError):
        raise FilterArgumentError("in_zone takes a time and a time zone", token=None) from None


class LocalTime(datetime):
    """A time with its zone, which is written as the clock of that place."""

    def __str__(self) -> str:
        return str(datetime.combine(self.date(), self.time()))


def plural_form(value: Any, language: str, exact: str = "") -> str:
    """Return the plural form of a number, or ``=0`` if this is one of the exact ones."""
    number = _counted(value)
    is_exact = any(number == int(each[1:]) for each in exact.split())
    return f"={int(number)}" if is_exact else plurals.plural_category(number, language)


def format_number(value: Any, language: str) -> str:
    """Return a number as a language writes it."""
    return plurals.format_number(_counted(value), language)


def _counted(value: Any) -> Decimal:
    """Return a number, or a text that is one. Raises FilterArgumentError."""
    text = str(value)
    if isinstance(value, bool) or len(text) > MAX_NUMBER or not _NUMBER.fullmatch(text):
        raise FilterArgumentError("a plural is chosen by a number", token=None)
    return Decimal(text)


CUSTOM_FILTERS: dict[str, Callable[..., Any]] = {
    "pluralize": pluralize,
    "in_zone": in_zone,
    "plural_form": plural_form,
    "format_number": format_number,
}


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
    between = text_of(separator)
    if environment.autoescape and between == " ":
        between = Markup(" ")
    texts: list[str] = []
    total = -len(between)
    for item in flat(left):
        texts.append(text_of(item))
        total += len(texts[-1]) + len(between)
        check_length(total)
    return between.join(texts)


@string_filter
def split(val: str, sep: Any) -> list[str]:
    """Split a text at a separator, or into characters. Without the empty pieces at the end."""
    if sep is None or sep == "":
        check_items(len(val))
        return list(val)
    between = soft_str(sep)
    if len(between) > MAX_SEPARATOR:
        raise FilterArgumentError(f"a separator has at most {MAX_SEPARATOR} characters", token=None)
    pieces = val.split(None if between == " " else between, MAX_ITEMS)
    check_items(len(pieces))
    while pieces and not pieces[-1]:
        pieces.pop()
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
        value = item if key is None else _property(item, key)
        kept.setdefault(_hashable(None if value is _MISSING else value), item)
    return list(kept.values())


def _property(item: Any, key: object) -> object:
    try:
        return item[key]
    except (KeyError, IndexError):
        return _MISSING
    except TypeError as error:
        raise FilterArgumentError(f"can't read property '{key}'", token=None) from error


def _hashable(value: Any) -> Hashable:
    """Return a key that only equal values have. In Ruby, 1, 1.0, and true differ."""
    if isinstance(value, dict):
        return ("dict", frozenset((k, _hashable(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return (isinstance(value, list), tuple(_hashable(v) for v in value))
    return (type(value), value) if isinstance(value, bool | float) else value


@with_environment
def date(value: Any, pattern: Any, *, environment: Environment) -> Any:
    """Format a date. What isn't one is returned unchanged, as with an empty format."""
    if isinstance(pattern, str) and len(pattern) > MAX_DATE_LENGTH:
        raise FilterArgumentError("the format of a date is too long", token=None)
    if pattern is None or is_undefined(pattern) or pattern == "":
        return value
    when = read_date(value)
    if when is None:
        return value
    text = write_date(when, str(pattern))
    return Markup(text) if environment.autoescape and isinstance(pattern, Markup) else text


@with_environment
@string_filter
def strip_html(val: str, *, environment: Environment) -> str:
    """Return a text without tags, comments, scripts, and style sheets. Linear in its length."""
    if "<" not in val:
        return val
    stripped = _without_tags(_without_blocks(val))
    return Markup(stripped) if environment.autoescape and isinstance(val, Markup) else stripped


def _without_blocks(text: str) -> str:
    pieces: list[str] = []
    unclosed: set[str] = set()
    kept_to = at = 0
    while found := _BLOCK.search(text, at):
        name = found[1].lower()
        at = found.end()
        end = None if name in unclosed else _BLOCK_ENDS[name].search(text, at)
        if end is None:
            unclosed.add(name)
            continue
        pieces.append(text[kept_to : found.start()])
        kept_to = at = end.end()
    return "".join([*pieces, text[kept_to:]])


def _without_tags(text: str) -> str:
    pieces: list[str] = []
    at = 0
    while (start := text.find("<", at)) >= 0 and (end := text.find(">", start)) >= 0:
        pieces.append(text[at:start])
        at = end + 1
    return "".join([*pieces, text[at:]])


@string_filter
def truncate(val: str, num: Any = 50, end: Any = "...") -> str:
    """Cut a longer text, so that it has ``num`` characters with the ellipsis."""
    length, ellipsis = _defined_int(num), text_of(end)
    return val if len(val) <= length else val[: max(length - len(ellipsis), 0)] + ellipsis


@string_filter
def truncatewords(val: str, num: Any = 15, end: Any = "...") -> str:
    """Cut a text of more than ``num`` words, at least one."""
    count = max(_defined_int(num), 1)
    words = val.split(None, count) if count < len(val) else [val]
    return val if len(words) <= count else " ".join(words[:count]) + text_of(end)


@liquid_filter
def slice_(val: Any, start: Any, length: Any = 1) -> Any:
    """Return characters of a text or items of a list from a position, which may be negative."""
    sequence = val if isinstance(val, str | list | tuple | range) else text_of(val)
    begin, count = _exact_int(start), 1 if is_undefined(length) else _exact_int(length)
    if begin < 0:
        begin += len(sequence)
    is_inside = 0 <= begin <= len(sequence) and count >= 0
    found = sequence[begin : begin + count] if is_inside else sequence[:0]
    return found if isinstance(found, str) else list(found)


@string_filter
def replace_last(val: str, seq: Any, sub: Any) -> str:
    """Return a text with the last ``seq`` replaced by ``sub``."""
    old, new = soft_str(seq), soft_str(sub)
    check_length(len(val) + len(new))
    # Backwards: Python's search from the end takes quadratic time.
    at = val[::-1].find(old[::-1]) if val.count(old) else -1
    if at < 0:
        return val
    end = len(val) - at
    return val[: end - len(old)] + new + val[end:]


@string_filter
def remove_last(val: str, arg: Any) -> str:
    """Return a text without the last ``arg``."""
    return str(replace_last(val, arg, ""))


@with_environment
@string_filter
def escape_once(val: str, *, environment: Environment) -> str:
    """Escape a text for HTML. Entities in it are kept."""
    escaped = _ESCAPABLE.sub(lambda found: _ENTITIES[found[0]], val)
    return Markup(escaped) if environment.autoescape else escaped


@sequence_filter
def compact(sequence: Iterable[Any], key: Any = None) -> list[Any]:
    """Return a list without null, or without the items of which a property is null or missing."""
    if key is None:
        return [item for item in sequence if item is not None]
    return [item for item in sequence if _property(item, key) not in (None, _MISSING)]


@sequence_filter
def sort(sequence: Sequence[Any], key: Any = None) -> list[Any]:
    """Return a list in ascending order, by a property if given. Without a value comes last."""
    return _sort(sequence, key, lambda value: value)


@sequence_filter
def sort_natural(sequence: Sequence[Any], key: Any = None) -> list[Any]:
    """Return a list in ascending order of its texts, without regard to case."""
    return _sort(sequence, key, lambda value: str(value).lower())


def _sort(sequence: Sequence[Any], key: Any, read: Callable[[Any], Any]) -> list[Any]:
    values = [item if not key else _property(item, str(key)) for item in sequence]
    ranked = [
        (value is None or value is _MISSING, position, value)
        for position, value in enumerate(values)
    ]
    present = [entry for entry in ranked if not entry[0]]
    try:
        present.sort(key=lambda entry: read(entry[2]))
    except TypeError:
        raise FilterArgumentError("can't compare these values", token=None) from None
    return [sequence[position] for _, position, _ in (*present, *(r for r in ranked if r[0]))]


def _defined_int(value: Any) -> int:
    if is_undefined(value):
        str(value)  # Raises UndefinedError with the variable's name.
    return int_arg(value)


def _exact_int(value: Any) -> int:
    if value is None or isinstance(value, float) or is_undefined(value):
        raise FilterArgumentError("slice takes whole numbers", token=None)
    return int_arg(value)


REPLACED_FILTERS: dict[str, Callable[..., Any]] = {
    **NUMBER_FILTERS,
    "compact": compact,
    "concat": concat,
    "date": date,
    "escape_once": escape_once,
    "join": join,
    "remove_last": remove_last,
    "replace": replace,
    "replace_last": replace_last,
    "slice": slice_,
    "sort": sort,
    "sort_natural": sort_natural,
    "split": split,
    "strip_html": strip_html,
    "truncate": truncate,
    "truncatewords": truncatewords,
    "uniq": uniq,
}
