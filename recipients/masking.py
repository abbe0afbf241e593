"""How an address looks to those who may not see it. Pure, but for the question who may."""

import re
from typing import Any

SEE_ADDRESSES = "notifications.view_addresses"
"""The permission to see addresses whole."""
REVEAL_ADDRESSES = "notifications.reveal_addresses"
"""The permission to have those of one notification or person shown, each time on record."""

_EMAIL = re.compile(r"[^\s<>\"'(),:;@\\]+@[^\s<>\"'(),:;@\\]+")
# With a plus and in any spelling; or, as providers write them, ten digits and more in a row.
_PHONE = re.compile(r"\+\d[\d ()-]{6,18}\d|(?<![\w.])\d{10,15}(?![\w.])", re.ASCII)
_VISIBLE_HEAD = 4
_VISIBLE_TAIL = 3


def can_see_addresses(user: Any) -> bool:
    """Return whether a member of staff may see addresses whole."""
    return bool(user.has_perm(SEE_ADDRESSES))


def can_reveal_addresses(user: Any) -> bool:
    """Return whether a member of staff, who sees them masked, may have some shown on record."""
    return bool(user.has_perm(REVEAL_ADDRESSES)) and not can_see_addresses(user)


def mask_email(address: str) -> str:
    """Return the first character and the domain: ``a***@example.com``."""
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}***@{domain}" if local else "***"


def mask_phone(number: str) -> str:
    """Return the country and the last digits: ``+351*****678``."""
    hidden = len(number) - _VISIBLE_HEAD - _VISIBLE_TAIL
    if hidden < 1:
        return "*" * len(number)
    return f"{number[:_VISIBLE_HEAD]}{'*' * hidden}{number[-_VISIBLE_TAIL:]}"


def mask_address(address: str) -> str:
    """Return an address of either kind masked."""
    return mask_email(address) if "@" in address else mask_phone(address)


def mask_text(text: str) -> str:
    """Return ``text`` with everything in it that looks like an address masked."""
    masked = _EMAIL.sub(lambda match: mask_email(match[0]), text)
    return _PHONE.sub(lambda match: mask_phone(match[0]), masked)
