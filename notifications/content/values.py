"""Values as Liquid writes them. Pure."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import wraps
from math import isfinite, isnan
from typing import Any

from liquid.undefined import is_undefined
from markupsafe import Markup, escape

_WORDS: dict[bool | None, str] = {None: "", True: "true", False: "false"}


def text_of(value: Any) -> str:
    """Return a value as Liquid writes it: nothing for null, ``{"a"=>1}`` for an object."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, float):
        return _text_of_float(value)
    if isinstance(value, range):
        return f"{value.start}..{value.stop - 1}"
    return _inspected(value) if isinstance(value, dict | list | tuple) else str(value)


def _text_of_float(number: float) -> str:
    if not isfinite(number):
        return "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"
    mantissa, exponent, power = str(number).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{exponent}{power}"


def _inspected(value: Any) -> str:
    """Return a value inside of a list or an object, as Ruby shows it."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None:
        return "nil"
    if isinstance(value, dict):
        pairs = (f"{_inspected(key)}=>{_inspected(item)}" for key, item in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_inspected, value))}]"
    return text_of(value)


def flat(values: Iterable[Any]) -> Iterator[Any]:
    """Yield the items of a list, and those of its inner lists."""
    for item in values:
        if isinstance(item, list | tuple):
            yield from flat(item)
        else:
            yield item


def written(value: Any, *, is_html: bool) -> str:
    """Return a value as an output writes it: the items of a list one after another."""
    texts = [*map(text_of, flat(value))] if isinstance(value, list | tuple) else [text_of(value)]
    if is_html and any(isinstance(text, Markup) for text in texts):
        return Markup("").join(map(escape, texts))
    # A list may have thousands of short items, and escaping takes as long for each as for all.
    return escape("".join(texts)) if is_html else "".join(texts)


def with_liquid_operands(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter of texts or lists so that it reads its operands as Liquid does."""
    read = _READERS.get(name)
    if read is None:
        return function

    @wraps(function)
    def reading(*args: Any, **options: Any) -> Any:
        return function(*read(*args), **options)

    return reading


def _operand(value: Any) -> Any:
    return value if is_undefined(value) else text_of(value)


def _read_texts(*operands: Any) -> Iterable[Any]:
    return map(_operand, operands)


def _read_text(value: Any, *operands: Any) -> Iterable[Any]:
    return (_operand(value), *operands)


def _read_list(value: Any, *operands: Any) -> Iterable[Any]:
    # Without items, there is none to have the property.
    is_nothing = value is None or (value is False and operands)
    return ([] if is_nothing else value, *operands)


_READERS: Mapping[str, Callable[..., Iterable[Any]]] = {
    **dict.fromkeys(
        [
            "append",
            "base64_encode",
            "base64_url_safe_encode",
            "capitalize",
            "downcase",
            "escape",
            "escape_once",
            "h",
            "lstrip",
            "newline_to_br",
            "prepend",
            "remove",
            "remove_first",
            "remove_last",
            "replace",
            "replace_first",
            "replace_last",
            "rstrip",
            "squish",
            "strip",
            "strip_html",
            "strip_newlines",
            "upcase",
            "url_decode",
            "url_encode",
        ],
        _read_texts,
    ),
    **dict.fromkeys(["split", "truncate", "truncatewords"], _read_text),
    **dict.fromkeys(
        [
            "compact",
            "find",
            "find_index",
            "has",
            "map",
            "reject",
            "sort",
            "sort_natural",
            "sum",
            "uniq",
            "where",
        ],
        _read_list,
    ),
}
"""How a filter reads its operands: all as texts, the first as a text, or the first as a list."""
