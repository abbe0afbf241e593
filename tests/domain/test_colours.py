"""The contrast of colours, by examples that tools of others agree about."""

import pytest

from domain.colours import MIN_CONTRAST, READ_ON, contrast
from notifications.catalog.designs import DarkPalette, Palette
from tests.support.tables import each_case


@each_case(
    "one, other, expected",
    [
        ("#000000", "#ffffff", 21),
        ("#4f46e5", "#4f46e5", 1),
        ("#767676", "#ffffff", 4.54),
        ("#777777", "#ffffff", 4.48),
        ("#ff0000", "#ffffff", 4.00),
        ("#0000ff", "#000000", 2.44),
    ],
)
def test_contrast_is_that_of_wcag(one: str, other: str, expected: float) -> None:
    assert contrast(one, other) == pytest.approx(expected, abs=0.005)
    assert contrast(other, one) == contrast(one, other)


def test_colours_of_a_brand_without_its_own_are_read_well() -> None:
    for palette in (Palette(), DarkPalette()):
        for text, ground in READ_ON:
            found = contrast(getattr(palette, text), getattr(palette, ground))
            assert found >= MIN_CONTRAST, (type(palette).__name__, text, ground, found)
