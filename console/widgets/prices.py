"""What parts of texts cost, in words. An unknown price is never zero."""

from collections.abc import Iterable

from domain.countries import country_name
from domain.prices import Total

from .formats import count_of

MAX_COUNTRIES = 3
UNKNOWN = "price unknown"


def price_text(total: Total) -> str:
    """Return what parts cost: "about 1.92 EUR", and which countries have no known price."""
    if not total.unpriced:
        return short_price(total)
    return f"{short_price(total)}: SMS_PRICES has none for {_names(total.unpriced)}"


def short_price(total: Total) -> str:
    """Return what parts cost: "about 1.92 EUR", and for how many the price is unknown."""
    if total.price is None:
        return UNKNOWN
    if not total.unpriced:
        return f"about {total.price}"
    return (
        f"about {total.price} without {count_of(sum(total.unpriced.values()), 'part')}, {UNKNOWN}"
    )


def parts_and_price(total: Total, *, is_short: bool = False) -> str:
    """Return how many parts there are, and what they cost."""
    price = short_price(total) if is_short else price_text(total)
    return f"{count_of(total.units, 'part')}, {price}" if total.units else "none"


def _names(countries: Iterable[str]) -> str:
    names = [country_name(country) if country else "numbers of no country" for country in countries]
    more = len(names) - MAX_COUNTRIES
    return ", ".join([*names[:MAX_COUNTRIES], *([f"{more} more"] if more > 0 else [])])
