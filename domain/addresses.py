"""Folds addresses to the form that is compared, and computes their digests. Pure."""

import hashlib
import re

from email_validator import EmailNotValidError, validate_email

from .states import Channel

EMAIL, WHATSAPP = Channel.EMAIL.value, Channel.WHATSAPP.value
ADDRESS_CHANNELS = (EMAIL, WHATSAPP)
"""Channels with an address. Push goes to devices, and in-app to an inbox."""

_BRAZILIAN_MOBILE = re.compile(r"(\+55[1-9]\d)9([6-9]\d{7})", re.ASCII)
_OTHER_FORMS = (
    _BRAZILIAN_MOBILE,
    re.compile(r"(\+52)1(\d{10})", re.ASCII),
    re.compile(r"(\+54)9(\d{10})", re.ASCII),
    re.compile(r"(\+229)01(\d{8})", re.ASCII),
)
"""Brazil and Mexico: the older form, without the ninth digit, or with a 1 after the country code.
Argentina: the 9 of a mobile number is dialled from abroad only. Benin: numbers had eight digits
until November 2024, and keep them after 01."""


def address_key(channel: str, address: str) -> str:
    """Return ``<channel>:<address>`` with the address folded."""
    normal = fold_phone(address) if channel == WHATSAPP else _fold_email(address)
    return f"{channel}:{normal}"


def address_digest(channel: str, address: str) -> str:
    """Return the SHA-256 digest of an address: 64 hex digits.

    It is stored under a key only, since a phone number is found from its digest by trying all.
    """
    return hashlib.sha256(address_key(channel, address).encode(errors="replace")).hexdigest()


def fold_phone(phone: str) -> str:
    """Return a phone number in the form that is stored and compared."""
    # WhatsApp reports mobile numbers of some countries in another form than the dialled one.
    # recipients/whatsapp_identities.py learns the forms of others.
    for form in _OTHER_FORMS:
        if found := form.fullmatch(phone):
            return found[1] + found[2]
    return phone


def _fold_email(address: str) -> str:
    # Providers report ``bücher.example`` as ``xn--bcher-kva.example``.
    plain = address.lower()
    if plain.isascii():
        return plain
    try:
        parsed = validate_email(
            plain, check_deliverability=False, allow_smtputf8=False, test_environment=True
        )
    except EmailNotValidError:
        return plain
    return (parsed.ascii_email or plain).lower()
