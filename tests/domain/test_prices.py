"""Prices of text messages by country."""

from decimal import Decimal

import pytest

from domain.prices import PriceList, parse_prices
from tests.support.tables import each_case


def test_text_costs_the_price_of_its_parts() -> None:
    prices = PriceList(currency="EUR", by_country=parse_prices("PT:0.036, GB:0.04,US:1"))
    assert str(prices.price("PT", units=3)) == "0.108 EUR"
    assert str(prices.price("GB", units=5)) == "0.2 EUR"
    assert str(prices.price("US", units=100)) == "100 EUR"


@each_case("country", ["DE", "", None])
def test_country_without_a_price_has_none(country: str | None) -> None:
    prices = PriceList(currency="EUR", by_country={"PT": Decimal(1)})
    assert prices.price(country, units=1) is None


@each_case("text", ["PT", "PT:", "PT:x", "pt:1", "PT:1,PT:2", "PT:-1", "PT:1e3", "PT:0,036"])
def test_other_text_is_no_list_of_prices(text: str) -> None:
    with pytest.raises(ValueError, match="a price"):
        parse_prices(text)
