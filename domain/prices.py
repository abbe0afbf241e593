"""What text messages cost, by the prices that the operator has set. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

_ITEM = re.compile(r"([A-Z]{2}):([0-9]{1,4}(?:\.[0-9]{1,6})?)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """An amount of money."""

    amount: Decimal
    currency: str

    def __str__(self) -> str:
        amount = self.amount if self.amount < 1 else round(self.amount, 2)
        return f"{amount.normalize():,f} {self.currency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What parts to several countries cost together."""

    units: int
    price: Price | None
    """Of those with a known price; None if there are none."""
    unpriced: Mapping[str, int]
    """The other parts by country, which may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The price of a part by country."""

    currency: str
    by_country: Mapping[str, Decimal] = field(default_factory=dict)

    def total(self, units: Mapping[str, int]) -> Total:
        """Return the price of parts by country. The country "" has the numbers of none."""
        known = [
            price * units[country] for country, price in self.by_country.items() if country in units
        ]
        return Total(
            units=sum(units.values()),
            price=Price(amount=sum(known, Decimal(0)), currency=self.currency) if known else None,
            unpriced={
                country: count
                for country, count in sorted(units.items())
                if country not in self.by_country
            },
        )


def parse_prices(text: str) -> dict[str, Decimal]:
    """Return the prices in a list such as ``PT:0.036,GB:0.04``. Raises ValueError."""
    found: dict[str, Decimal] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = _ITEM.fullmatch(item)
        if match is None or match[1] in found:
            raise ValueError("a price is a country that occurs once, and an amount")
        found[match[1]] = Decimal(match[2])
    return found
