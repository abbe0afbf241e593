"""Plural forms and numbers of languages."""

from decimal import Decimal

from domain.plurals import format_number, missing_forms, plural_category
from tests.support.tables import each_case


@each_case(
    "language, forms",
    [
        ("en", {"1": "one", "1.0": "one", "1.5": "other", "0": "other", "2": "other"}),
        ("en-ZA", {"1": "one", "2": "other"}),
        ("pl", {"1": "one", "2": "few", "5": "many", "22": "few", "12": "many", "1.5": "other"}),
        ("ru", {"1": "one", "21": "one", "11": "many", "3": "few"}),
        (
            "ar",
            {"0": "zero", "1": "one", "2": "two", "3": "few", "11": "many", "100": "other"},
        ),
        ("fr", {"0": "one", "1": "one", "1.5": "one", "2": "other", "1000000": "many"}),
        ("pt", {"0": "one", "1": "one", "2": "other"}),
        ("pt-PT", {"0": "other", "1": "one", "2": "other"}),
        ("ja", {"1": "other"}),
        ("cy", {"0": "zero", "2": "two", "3": "few", "6": "many"}),
        # What CLDR doesn't know is read as English.
        ("tlh", {"1": "one", "2": "other"}),
    ],
)
def test_number_has_a_form_by_language(language: str, forms: dict[str, str]) -> None:
    assert {text: plural_category(Decimal(text), language) for text in forms} == forms


def test_negative_number_has_the_form_of_the_positive_one() -> None:
    assert plural_category(Decimal(-1), "en") == "one"


@each_case(
    "number, language, text",
    [
        ("1234.5", "en", "1,234.5"),
        ("1234567.50", "pt", "1.234.567,5"),
        ("1234", "de-CH", "1\u2019234"),
        ("5.0", "pl", "5"),
        ("0.12345", "en", "0.123"),
        ("-3", "en", "-3"),
        ("1E+3", "en", "1,000"),
        ("123456", "ar", "123,456"),
        ("9" * 40, "en", "9" * 40),
    ],
)
def test_number_is_written_as_its_language_does(number: str, language: str, text: str) -> None:
    assert format_number(Decimal(number), language) == text


@each_case(
    "language, options, missing",
    [
        ("en", {"other"}, ["one"]),
        ("en", {"=1", "other"}, []),
        ("en", {"=0", "other"}, ["one"]),
        ("pl", {"one", "other"}, ["many", "few"]),
        # In Polish, only fractions have the form "other".
        ("pl", {"one", "few", "many"}, []),
        ("ar", {"=0", "one", "two", "few", "many", "other"}, []),
        # Only a million has the form "many".
        ("fr", {"one", "other"}, []),
        ("ja", {"other"}, []),
    ],
)
def test_form_of_a_whole_number_is_missed(
    language: str, options: set[str], missing: list[str]
) -> None:
    assert missing_forms(options, language) == missing
