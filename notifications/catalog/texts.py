"""What text messages may cost: the countries they go to, and the parts they have."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from django.conf import settings
from msgspec import Meta

from domain.channels import Channel
from domain.countries import country_name, country_of
from domain.daily_units import UnitCaps
from domain.prices import PriceList, Total
from domain.sms import MAX_UNITS, EncodedText, TextRules, encode
from domain.stored import known_fields
from providers.registry import is_configured

DEFAULT_RULES = TextRules()


class TextRulesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an SMS of the type may cost."""

    max_units: Annotated[int, Meta(ge=1, le=MAX_UNITS, description="Most parts.")] = (
        DEFAULT_RULES.max_units
    )
    allow_unicode: Annotated[
        bool,
        Meta(description="Whether a text may have characters with which a part is 70 long."),
    ] = DEFAULT_RULES.allow_unicode


def rules_of(document: Mapping[str, Any]) -> TextRules:
    """Return the rules of a stored type."""
    return TextRules(**known_fields(TextRules, document.get("sms") or {}))


def encode_text(text: str) -> EncodedText:
    """Return a text as it is sent."""
    return encode(text, smart=settings.SMS_SMART_ENCODING)


def unit_caps() -> UnitCaps:
    """Return the most parts of a client and day."""
    return UnitCaps(units=settings.SMS_DAILY_UNITS, abroad=settings.SMS_DAILY_UNITS_ABROAD)


def total_price(units: Mapping[str, int]) -> Total:
    """Return what parts by country cost by SMS_PRICES. The country "" has the numbers of none."""
    prices = PriceList(currency=settings.SMS_CURRENCY, by_country=settings.SMS_PRICES)
    return prices.total(units)


def price_of_text(number: str | None, *, units: int) -> Total:
    """Return what a text to a number costs by SMS_PRICES."""
    return total_price({paid_country(number): units})


def paid_country(number: str | None) -> str:
    """Return the country whose price a text to a number has, or "" if the number has none."""
    return (number and country_of(number)) or ""


def is_abroad(number: str | None) -> bool:
    """Return whether a number isn't of the country that SMS_COUNTRIES names first."""
    return number is None or country_of(number) not in settings.SMS_COUNTRIES[:1]


def country_refusal(channel: Channel, number: str | None) -> str | None:
    """Return why a number gets no text message, as a sentence without the number, or None."""
    if number is None or not channel.pays_by_part or not is_configured(channel):
        return None
    country = country_of(number)
    if country is None:
        return f"The number belongs to no country, and {channel.spec.label} goes to countries only."
    if country in settings.SMS_COUNTRIES:
        return None
    return f"{channel.spec.label} to {country_name(country)} isn't enabled."
