"""Countries of phone numbers, by their ISO 3166 codes. Pure."""

from functools import lru_cache

import phonenumbers
from babel.core import Locale

COUNTRIES = frozenset(phonenumbers.SUPPORTED_REGIONS)
"""The codes of all countries that have phone numbers."""


@lru_cache(maxsize=4096)
def country_of(number: str) -> str | None:
    """Return the country of a number in E.164, or None for satellite and international networks.

    Countries that share a calling code differ in the digits after it: area codes in North America
    and the Caribbean, a 7 in Kazakhstan, 7797 in Jersey. A number that nobody has been assigned
    belongs to the main country of its calling code.
    """
    try:
        parsed = phonenumbers.parse(number, None)
    except phonenumbers.NumberParseException:
        return None
    country = phonenumbers.region_code_for_number(parsed)
    if country is None and parsed.country_code is not None:
        country = phonenumbers.region_code_for_country_code(parsed.country_code)
    return country if country in COUNTRIES else None


def country_name(code: str) -> str:
    """Return the English name of a country, or its code."""
    return str(Locale("en").territories.get(code, code))
