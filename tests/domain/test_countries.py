"""Countries of phone numbers."""

from babel.core import Locale
from phonenumbers import PhoneNumberFormat, example_number, format_number

from domain.countries import COUNTRIES, country_name, country_of
from tests.support.tables import each_case

SHARING = {"EH": "MA", "MF": "BL"}
"""Countries whose numbers can't be told from another's."""


@each_case(
    "number, country",
    [
        ("+351912345678", "PT"),
        ("+12025550123", "US"),
        ("+14165550123", "CA"),
        ("+18765550123", "JM"),
        ("+12645550123", "AI"),
        ("+12845550123", "VG"),
        ("+13405550123", "VI"),
        ("+17875550123", "PR"),
        ("+18095550123", "DO"),
        ("+77011234567", "KZ"),
        ("+79161234567", "RU"),
        ("+447400123456", "GB"),
        ("+447797123456", "JE"),
        ("+447781123456", "GG"),
        ("+447624123456", "IM"),
        ("+393331234567", "IT"),
        ("+3906698123", "VA"),
        ("+59995123456", "CW"),
        ("+5997123456", "BQ"),
        ("+38344123456", "XK"),
        ("+61412345678", "AU"),
        ("+5511912345678", "BR"),
        # Area codes that nobody has been assigned.
        ("+15005550006", "US"),
        ("+15555550100", "US"),
        # Networks of no country, of which some are expensive.
        ("+870773111632", None),
        ("+881612345678", None),
        ("+882161234567", None),
        ("+97912345678", None),
        ("+999123456789", None),
        ("nonsense", None),
        ("", None),
    ],
)
def test_a_number_has_a_country(number: str, country: str | None) -> None:
    assert country_of(number) == country


def test_each_country_has_a_number_and_a_name() -> None:
    examples = {code: example_number(code) for code in COUNTRIES}
    found = {
        code: country_of(format_number(number, PhoneNumberFormat.E164))
        for code, number in examples.items()
        if number is not None
    }
    assert found == {code: code for code in COUNTRIES} | SHARING
    unnamed = {code for code in COUNTRIES if country_name(code) == code}
    assert unnamed <= COUNTRIES - set(Locale("en").territories)
