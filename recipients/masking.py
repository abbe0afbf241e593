"""Masks addresses for staff, and checks the permissions to see them."""

import re
from typing import Any

SEE_ADDRESSES = "notifications.view_addresses"  # The permission to see unmasked addresses
REVEAL_ADDRESSES = "notifications.reveal_addresses"
"""The permission to reveal the addresses of one notification or recipient, with an audit entry."""

CORRECT_ADDRESS = "notifications.correct_address"
"""The permission to enter another address for a notification, as its recipient gave it."""

_EMAIL = re.compile(r"[^\s<>\"'(),:;@\\]+@[^\s<>\"'(),:;@\\]+")
# With a plus and separators; or, as providers write them, ten or more digits in a row.
_PHONE = re.compile(r"\+\d[\d ()-]{6,18}\d|(?<![\w.])\d{10,15}(?![\w.])", re.ASCII)
_VISIBLE_HEAD = 4
_VISIBLE_TAIL = 3


def can_see_addresses(user: Any) -> bool:
    """Return whether a staff user sees unmasked addresses."""
    return bool(user.has_perm(SEE_ADDRESSES))


def can_reveal_addresses(user: Any) -> bool:
    """Return whether a staff user sees masked addresses and may reveal them."""
    return bool(user.has_perm(REVEAL_ADDRESSES)) and not can_see_addresses(user)


def can_search_addresses(user: Any) -> bool:
    """Return whether a staff user may search by address: who may see, reveal, or correct one.

    Others would confirm a masked address by searching for guesses.
    """
    return any(user.has_perm(name) for name in (SEE_ADDRESSES, REVEAL_ADDRESSES, CORRECT_ADDRESS))


def mask_email(address: str) -> str:
    """Return the first character and the domain of an email address: ``a***@example.com``."""
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}***@{domain}" if local else "***"


def mask_phone(number: str) -> str:
    """Return the country code and last digits of a phone number: ``+351*****678``."""
    hidden = len(number) - _VISIBLE_HEAD - _VISIBLE_TAIL
    if hidden < 1:
        return "*" * len(number)
    return f"{number[:_VISIBLE_HEAD]}{'*' * hidden}{number[-_VISIBLE_TAIL:]}"


def mask_address(address: str) -> str:
    """Mask an email address or phone number."""
    return mask_email(address) if "@" in address else mask_phone(address)


def mask_text(text: str) -> str:
    """Mask every address in ``text``."""
    masked = _EMAIL.sub(lambda match: mask_email(match[0]), text)
    return _PHONE.sub(lambda match: mask_phone(match[0]), masked)
