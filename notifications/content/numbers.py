"""Liquid's filters of numbers. Pure.

Liquid counts in decimals: 0.3 divided by 0.1 is 3. A text is a number as far as Ruby reads it:
``1.5`` is a decimal, ``1.5 kg`` begins with the whole number 1, and ``kg`` is 0, as are null, true,
lists, and objects.
"""

import re
from collections.abc import Callable, Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from liquid.exceptions import FilterArgumentError
from liquid.filter import sequence_filter
from liquid.undefined import is_undefined

MAX_DIGITS = 100  # Digits after the decimal point
_DECIMAL = re.compile(r"\s*-?\d{1,310}\.\d+\s*", re.ASCII)
"""With more digits, a text is read as a whole number, which has too many bits: converting a decimal
into one takes quadratic time.
"""
_WHOLE = re.compile(r"\s*([-+]?\d(?:_?\d)*)", re.ASCII)
Number = int | Decimal


def number_of(value: Any) -> Number:
    """Return a value as a number. Raises ValueError for a number without an end."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        number = Decimal(str(value))
        if not number.is_finite():
            raise ValueError("not a finite number")
        return number
    if isinstance(value, str):
        if _DECIMAL.fullmatch(value):
            return Decimal(value.strip())
        found = _WHOLE.match(value)
        return int(found[1]) if found else 0
    return 0


def _as_liquid(number: Number) -> int | float:
    return number if isinstance(number, int) else float(number)


def plus(value: Any, operand: Any) -> int | float:
    """Return the sum of two numbers."""
    return _as_liquid(number_of(value) + number_of(operand))


def minus(value: Any, operand: Any) -> int | float:
    """Return the difference of two numbers."""
    return _as_liquid(number_of(value) - number_of(operand))


def times(value: Any, operand: Any) -> int | float:
    """Return the product of two numbers."""
    return _as_liquid(number_of(value) * number_of(operand))


def divided_by(value: Any, operand: Any) -> int | float:
    """Return the quotient of two numbers: a whole one, rounded down, of whole numbers."""
    dividend, divisor = number_of(value), number_of(operand)
    if not divisor:
        raise FilterArgumentError("can't divide by 0", token=None)
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend // divisor
    return float(Decimal(dividend) / Decimal(divisor))


def modulo(value: Any, operand: Any) -> int | float:
    """Return the remainder of a division, with the sign of the divisor."""
    dividend, divisor = number_of(value), number_of(operand)
    if not divisor:
        raise FilterArgumentError("can't divide by 0", token=None)
    if isinstance(dividend, int) and isinstance(divisor, int):
        return dividend % divisor
    try:
        rest = Decimal(dividend) % Decimal(divisor)
    except InvalidOperation:
        raise FilterArgumentError("the quotient is too long", token=None) from None
    return float(rest + divisor if rest and (rest < 0) != (divisor < 0) else rest)


def abs_(value: Any) -> int | float:
    """Return a number without its sign."""
    number = number_of(value)
    return _as_liquid(-number if number < 0 else number)


def ceil(value: Any) -> int:
    """Return the next whole number above."""
    return _rounded(number_of(value), ROUND_CEILING)


def floor(value: Any) -> int:
    """Return the next whole number below."""
    return _rounded(number_of(value), ROUND_FLOOR)


def round_(value: Any, digits: Any = None) -> int | float:
    """Round a number, half away from zero, to digits after the point.

    With a negative number of digits, the number is rounded to tens, hundreds, and so on.
    """
    number = number_of(value)
    places = 0 if is_undefined(digits) else int(number_of(digits))
    if places > 0:
        if isinstance(number, int):
            return number
        step = Decimal(1).scaleb(-min(places, MAX_DIGITS))
        try:
            return float(number.quantize(step, rounding=ROUND_HALF_UP))
        except InvalidOperation:
            return float(number)
    zeros = 10 ** min(-places, MAX_DIGITS)
    if isinstance(number, int):
        half = zeros // 2
        return (abs(number) + half) // zeros * zeros * (-1 if number < 0 else 1)
    return _rounded(number.scaleb(places), ROUND_HALF_UP) * zeros


def _rounded(number: Number, rounding: str) -> int:
    if isinstance(number, int):
        return number
    return int(number.to_integral_value(rounding=rounding))


def at_least(value: Any, least: Any) -> int | float:
    """Return a number, or ``least`` if that is more."""
    return _as_liquid(max(number_of(value), number_of(least)))


def at_most(value: Any, most: Any) -> int | float:
    """Return a number, or ``most`` if that is less."""
    return _as_liquid(min(number_of(value), number_of(most)))


@sequence_filter
def sum_(values: Iterable[Any], key: Any = None) -> int | float:
    """Return the sum of a list's items, or of one property of them."""
    if key is not None:
        values = [item.get(key) if isinstance(item, dict) else None for item in values]
    total: Number = 0
    for number in values:
        total += number_of(number)
    return _as_liquid(total)


NUMBER_FILTERS: dict[str, Callable[..., Any]] = {
    "abs": abs_,
    "at_least": at_least,
    "at_most": at_most,
    "ceil": ceil,
    "divided_by": divided_by,
    "floor": floor,
    "minus": minus,
    "modulo": modulo,
    "plus": plus,
    "round": round_,
    "sum": sum_,
    "times": times,
}
