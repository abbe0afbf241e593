"""Plural forms and numbers by language, with the data of CLDR. Pure."""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from babel.core import Locale, UnknownLocaleError
from babel.numbers import format_decimal

FALLBACK = "en"
MAX_FRACTION = 3
"""Digits after the point that are shown, as ICU does."""
_MOST = Decimal(10) ** 15


def plural_category(number: Decimal, language: str) -> str:
    """Return the form of a number as it is shown: ``one``, ``few``, ``other``, …."""
    return _locale(language).plural_form(_shown(number))


def plural_categories(language: str) -> Sequence[str]:
    """Return the forms that a language has, and those of whole and decimal numbers alike."""
    return sorted(_locale(language).plural_form.tags | {"other"})


def format_number(number: Decimal, language: str) -> str:
    """Return a number as a language writes it: ``1,234.5`` or ``1.234,5``."""
    shown = _shown(number)
    if abs(shown) >= _MOST:
        return f"{shown:f}"
    return format_decimal(shown, locale=_locale(language))


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
