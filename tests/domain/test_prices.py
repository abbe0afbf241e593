"""Prices of text messages by country."""

import pytest

from domain.prices import PriceList, parse_prices
from tests.support.tables import each_case

PRICES = PriceList(currency="EUR", by_country=parse_prices("PT:0.036, GB:0.04,US:1,SE:0"))


@each_case(
    "units, price",
    [
        ({"PT": 3}, "0.108 EUR"),
        ({"GB": 5}, "0.2 EUR"),
        ({"US": 100}, "100 EUR"),
        ({"SE": 2}, "0 EUR"),
        ({"PT": 99_999, "GB": 1}, "3,600 EUR"),
        ({"PT": 1_001}, "36.04 EUR"),
        ({"PT": 3, "GB": 5}, "0.308 EUR"),
    ],
)
def test_parts_cost_the_price_of_their_country(units: dict[str, int], price: str) -> None:
    total = PRICES.total(units)
    assert (str(total.price), total.units, total.unpriced) == (price, sum(units.values()), {})


def test_parts_to_a_country_without_a_price_are_told_apart() -> None:
    total = PRICES.total({"PT": 1, "MX": 2, "": 3})
    assert (str(total.price), total.units) == ("0.036 EUR", 6)
    assert total.unpriced == {"": 3, "MX": 2}


@each_case("units", [{"DE": 1}, {"": 1}, {}])
def test_unknown_price_is_none_and_not_zero(units: dict[str, int]) -> None:
    assert PRICES.total(units).price is None


@each_case("text", ["PT", "PT:", "PT:x", "pt:1", "PT:1,PT:2", "PT:-1", "PT:1e3", "PT:0,036"])
def test_other_text_is_no_list_of_prices(text: str) -> None:
    with pytest.raises(ValueError, match="a price"):
        parse_prices(text)
