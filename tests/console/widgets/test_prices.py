"""What parts of texts cost, in words."""

import pytest

from console.widgets.prices import parts_and_price, price_text
from domain.prices import PriceList, parse_prices
from tests.support.tables import each_case

NONE = "price unknown: SMS_PRICES has none for"


@each_case(
    "units, words",
    [
        ({"PT": 3}, "about 0.108 EUR"),
        ({"PT": 1, "BR": 1}, f"about 0.036 EUR without 1 part, {NONE} Brazil"),
        ({"BR": 2}, f"{NONE} Brazil"),
        ({"": 2}, f"{NONE} numbers of no country"),
        (
            dict.fromkeys(("BR", "CL", "MX", "PE", "UY"), 1),
            f"{NONE} Brazil, Chile, Mexico, 2 more",
        ),
    ],
)
def test_price_is_told_or_said_to_be_unknown(units: dict[str, int], words: str) -> None:
    prices = PriceList(currency="EUR", by_country=parse_prices("PT:0.036"))
    assert price_text(prices.total(units)) == words


@pytest.mark.parametrize("units", [{}, {"PT": 0}])
def test_no_parts_have_no_price(units: dict[str, int]) -> None:
    assert parts_and_price(PriceList(currency="EUR").total(units)) == "none"
