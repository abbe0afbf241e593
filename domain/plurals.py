"""Plural forms and numbers by language, with the data of CLDR. Pure."""

from collections.abc import Mapping, Set
from decimal import Decimal
from functools import lru_cache

from babel.core import Locale, UnknownLocaleError
from babel.numbers import format_decimal

FALLBACK = "en"
COUNTED = 1_000
"""The number up to which the forms of whole numbers are looked for."""
MAX_FRACTION = 3
"""Digits after the point that are shown, as ICU does."""
_MOST = Decimal(10) ** 15


def plural_category(number: Decimal, language: str) -> str:
    """Return the form of a number as it is shown: ``one``, ``few``, ``other``, …."""
    return _locale(language).plural_form(_shown(number))


def missing_forms(options: Set[str], language: str) -> list[str]:
    """Return the forms of whole numbers up to a thousand that a plural's options leave out.

    Many a language has another one for fractions or for millions, which few texts need.
    """
    return [
        form
        for form, numbers in _whole_numbers(language).items()
        if form not in options and not numbers <= options
    ]


def format_number(number: Decimal, language: str) -> str:
    """Return a number as a language writes it: ``1,234.5`` or ``1.234,5``."""
    shown = _shown(number)
    if abs(shown) >= _MOST:
        return f"{shown:f}"
    return format_decimal(shown, locale=_locale(language))


@lru_cache(maxsize=256)
def _whole_numbers(language: str) -> Mapping[str, frozenset[str]]:
    """Return the numbers of each form as options of a plural: ``{"one": {"=1"}}``."""
    found: dict[str, set[str]] = {}
    for number in range(COUNTED + 1):
        form = _locale(language).plural_form(number)
        found.setdefault(form, set()).add(f"={number}")
    return {form: frozenset(numbers) for form, numbers in found.items()}


def _shown(number: Decimal) -> Decimal:
    """Return a number with the digits that are shown: 1.0 is shown as 1, and has its form."""
    if abs(number) >= _MOST:
        return number
    rounded = round(number, MAX_FRACTION)
    whole = rounded.to_integral_value()
    return whole if rounded == whole else rounded.normalize()


@lru_cache(maxsize=256)
def _locale(language: str) -> Locale:
    """Return what CLDR knows of a language, of a wider one, or of English."""
    for tag in (language, language.partition("-")[0]):
        try:
            return Locale.parse(tag, sep="-")
        except (UnknownLocaleError, ValueError):
            continue
    return Locale(FALLBACK)
