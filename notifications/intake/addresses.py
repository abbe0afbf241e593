"""Whether an address can be one. Pure: nothing is looked up."""

import re
from functools import lru_cache

import phonenumbers
from email_validator import EmailNotValidError, validate_email

_E164 = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)
_ORDINARY = re.compile(r"([a-z0-9_+-]+(?:\.[a-z0-9_+-]+)*)@([A-Za-z0-9.-]+)", re.ASCII)
"""An address that is as good as its domain, which many share."""
_SHORT = 200
_LOCAL_PART_LENGTH = 64
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class AddressProblem(ValueError):
    """An address that cannot be one; the message says why without repeating it."""


def check_email(text: str) -> str:
    """Return the address in its normal form; raises AddressProblem.

    A display name, a list, a domain without a dot, an IP address in place of a domain, and a local
    part of over 64 characters are none.
    """
    try:
        return _normal_email(text)
    except EmailNotValidError:
        raise AddressProblem("Expected one address such as ada@example.com.") from None


def check_phone(text: str) -> str:
    """Return the E.164 number; raises AddressProblem for another form or an impossible number."""
    if not _E164.fullmatch(text) or not _is_possible(text):
        raise AddressProblem("Expected a number in E.164 form such as +351912345678.")
    return text


@lru_cache(maxsize=4096)
def _normal_email(text: str) -> str:
    # Asked for twice of each request: for its suppressions, and for the recipient.
    ordinary = _ORDINARY.fullmatch(text) if len(text) <= _SHORT else None
    if ordinary is None or len(ordinary[1]) > _LOCAL_PART_LENGTH:
        return _validated(text)
    return f"{ordinary[1]}@{_normal_domain(ordinary[2])}"


@lru_cache(maxsize=4096)
def _normal_domain(domain: str) -> str:
    return _validated(f"a@{domain}").rpartition("@")[2]


def _validated(text: str) -> str:
    return validate_email(
        text,
        check_deliverability=False,
        strict=True,
        allow_smtputf8=False,
        test_environment=True,
    ).normalized


@lru_cache(maxsize=4096)
def _is_possible(number: str) -> bool:
    try:
        return phonenumbers.is_possible_number(phonenumbers.parse(number, None))
    except phonenumbers.NumberParseException:
        return False


def has_control_characters(text: str) -> bool:
    """Return whether there is a line break or another control character in ``text``."""
    return _CONTROL.search(text) is not None
