"""What parts of texts cost, in words. An unknown price is never zero."""

from collections.abc import Iterable

from domain.countries import country_name
from domain.prices import Total

from .formats import count_of

MAX_COUNTRIES = 3
UNKNOWN = "price unknown"


def price_text(total: Total) -> str:
    """Return what parts cost: "about 1.92 EUR", and for how many the price is unknown."""
    if not total.unpriced:
        return f"about {total.price}"
    reason = f"{UNKNOWN}: SMS_PRICES has none for {_names(total.unpriced)}"
    if total.price is None:
        return reason
    return f"about {total.price} without {count_of(sum(total.unpriced.values()), 'part')}, {reason}"


def parts_and_price(total: Total) -> str:
    """Return how many parts there are, and what they cost."""
    return f"{count_of(total.units, 'part')}, {price_text(total)}" if total.units else "none"


def _names(countries: Iterable[str]) -> str:
    names = [country_name(country) if country else "numbers of no country" for country in countries]
    more = len(names) - MAX_COUNTRIES
    return ", ".join([*names[:MAX_COUNTRIES], *([f"{more} more"] if more > 0 else [])])
