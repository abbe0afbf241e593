"""Values as Liquid writes and reads them. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

from markupsafe import Markup, escape

_WORDS: dict[bool | None, str] = {None: "", True: "true", False: "false"}
_MATH_FILTERS = frozenset(
    [
        *("abs", "at_least", "at_most", "ceil", "divided_by", "floor", "minus", "modulo"),
        *("plus", "round", "times"),
    ]
)
_TEXT_FILTERS = frozenset(
    [
        *("append", "base64_encode", "capitalize", "downcase", "escape", "h", "prepend", "remove"),
        *("remove_first", "remove_last", "replace", "replace_first", "replace_last", "upcase"),
        "url_encode",
    ]
)
_LEADING_NUMBER = re.compile(r"\s*(-?\d{1,400})(?![.\d])")


def text_of(value: Any) -> str:
    """Return a value as text: nothing for null, and ``true`` for true."""
    if isinstance(value, str):
        return value
    return _WORDS[value] if value is None or isinstance(value, bool) else str(value)


def flat(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of a list, and those of its inner lists."""
    for one in values:
        if isinstance(one, list | tuple):
            yield from flat(one)
        else:
            yield one


def write_list(values: Iterable[Any], *, is_html: bool) -> str:
    """Return the items of a list, one after another."""
    texts = [text_of(one) for one in flat(values)]
    return Markup("").join(escape(text) for text in texts) if is_html else "".join(texts)


def with_liquid_operands(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter of texts or numbers so that it reads its operands as Liquid does."""
    read = _number_of if name in _MATH_FILTERS else _text_operand if name in _TEXT_FILTERS else None
    if read is None:
        return function

    @wraps(function)
    def reading(*args: Any, **options: Any) -> Any:
        return function(*map(read, args), **options)

    return reading


def _number_of(value: Any) -> Any:
    """Return the number at the start of a text, such as 12 of ``12 kg``."""
    if isinstance(value, str) and (found := _LEADING_NUMBER.match(value)):
        return found[1]
    return value


def _text_operand(value: Any) -> Any:
    return _WORDS[value] if value is None or isinstance(value, bool) else value
