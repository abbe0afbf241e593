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
        return f"{self.amount.normalize():f} {self.currency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The price of a part by country."""

    currency: str
    by_country: Mapping[str, Decimal] = field(default_factory=dict)

    def price(self, country: str | None, *, units: int) -> Price | None:
        """Return the price of a text with some parts, or None for a country without a price."""
        amount = self.by_country.get(country or "")
        return None if amount is None else Price(amount=amount * units, currency=self.currency)


def parse_prices(text: str) -> dict[str, Decimal]:
    """Return the prices in a list such as ``PT:0.036,GB:0.04``. Raises ValueError."""
    found: dict[str, Decimal] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = _ITEM.fullmatch(item)
        if match is None or match[1] in found:
            raise ValueError("a price is a country that occurs once, and an amount")
        found[match[1]] = Decimal(match[2])
    return found
