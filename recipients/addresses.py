"""When two ways to write an address mean the same one. Pure."""

import hashlib
import re

from email_validator import EmailNotValidError, validate_email

EMAIL, WHATSAPP = "email", "whatsapp"
ADDRESS_CHANNELS = (EMAIL, WHATSAPP)
"""The channels that go to an address; push goes to devices, in-app to users."""

_BRAZILIAN_MOBILE = re.compile(r"(\+55[1-9]\d)9([6-9]\d{7})", re.ASCII)
_MEXICAN_MOBILE = re.compile(r"(\+52)1(\d{10})", re.ASCII)


def address_key(channel: str, address: str) -> str:
    """Return ``<channel>:<address>``, the same for every way to write the address."""
    normal = normalize_phone(address) if channel == WHATSAPP else _normalize_email(address)
    return f"{channel}:{normal}"


def address_digest(channel: str, address: str) -> str:
    """Return what an address is recognised by when it is not to be read: 64 hex digits."""
    return hashlib.sha256(address_key(channel, address).encode(errors="replace")).hexdigest()


def normalize_phone(phone: str) -> str:
    """Return the one spelling of a number under which things are kept.

    Of Brazil's and Mexico's mobile numbers WhatsApp reports an older form than the one that is
    dialled: without the ninth digit, or with a 1 behind the country's code.
    """
    found = _BRAZILIAN_MOBILE.fullmatch(phone) or _MEXICAN_MOBILE.fullmatch(phone)
    return found[1] + found[2] if found else phone


def _normalize_email(address: str) -> str:
    """Return a mail address in its normal form.

    Mail addresses do not differ by case, nor by how a foreign domain is written: providers report
    of ``xn--bcher-kva.example`` what was asked for as ``bücher.example``.
    """
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
