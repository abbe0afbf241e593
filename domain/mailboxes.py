"""Reads a mailbox of a setting, such as ``Shop, Inc. <shop@example.com>``, and of a brand. Pure."""

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.utils import parseaddr, unquote
from functools import lru_cache

from email_validator import validate_email

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_NAME_AND_ADDRESS = re.compile(r"(.*?)\s*<\s*([^<>\s]+)\s*>")
_OTHER_ADDRESS = re.compile(r"\S@\S+\s*[,;]|<[^<>]*@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mailbox:
    """One address, and the name of its owner."""

    name: str
    """Without quotes and encoded words; it may be empty."""
    address: str
    """With an ASCII domain, as it stands in mail."""

    def __str__(self) -> str:
        """Return it as people write it: ``Shop, Inc. <shop@example.com>``."""
        return f"{self.name} <{self.address}>" if self.name else self.address

    @property
    def label(self) -> str:
        """The name, or the address if there is none."""
        return self.name or self.address

    @property
    def domain(self) -> str:
        """The address's domain."""
        return self.address.rpartition("@")[2]


@lru_cache(maxsize=1000)
def parse_mailbox(text: str) -> Mailbox:
    """Return the mailbox of a text with exactly one. Raises ValueError for any other text.

    The name may be quoted, encoded as in mail, or as people write it, with a comma or a colon. The
    cache holds values of settings and brands. Parsing one takes 100 µs, and every email needs them.
    """
    if _CONTROL.search(text):
        raise ValueError("a mailbox has no control characters")
    plain = text.strip()
    if found := _NAME_AND_ADDRESS.fullmatch(plain):
        name, address = found[1], found[2]
        if re.fullmatch(_QUOTED, name):
            name = unquote(name)
        elif _OTHER_ADDRESS.search(name):
            raise ValueError("there are several addresses")
    else:
        name, address = parseaddr(plain)
        if plain not in (address, f"{address} ({name})"):
            raise ValueError("a mailbox is an address, or a name and <address>")
    # IDNA 2008 is used: the IDNA 2003 of the standard library and Django maps ß to another domain.
    valid = validate_email(
        address, check_deliverability=False, allow_smtputf8=False, test_environment=True
    )
    name = _decoded(name)
    if _CONTROL.search(name):
        raise ValueError("a name has no control characters")
    return Mailbox(name=name, address=valid.ascii_email or address)


def may_send_as(mailbox: Mailbox, senders: Iterable[str]) -> bool:
    """Return whether one of the senders is a mailbox's address, or its whole domain.

    A domain isn't its subdomains, which others may own. An invalid sender is none.
    """
    allowed = set()
    for text in senders:
        with suppress(ValueError):
            allowed.add(parse_sender(text))
    return not allowed.isdisjoint({mailbox.address.lower(), f"@{mailbox.domain.lower()}"})


@lru_cache(maxsize=1000)
def parse_sender(text: str) -> str:
    """Return an address, or an ``@`` and a domain, in the form in which senders are compared.

    Raises ValueError for any other text.
    """
    if not text.startswith("@"):
        if "<" in text:
            raise ValueError("a sender has no name")
        return parse_mailbox(text).address.lower()
    return f"@{parse_mailbox(f'any{text}').domain.lower()}"


def _decoded(name: str) -> str:
    try:
        return str(make_header(decode_header(name))) or name
    except (HeaderParseError, LookupError, ValueError):
        # It only looks like an encoded word.
        return name
