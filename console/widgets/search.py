"""Addresses in a search text. Every search by address goes through this module."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from domain.addresses import EMAIL_ADDRESS, PHONE_NUMBER, AddressKind
from domain.channels import Channel, address_digest, channels_of
from recipients.masking import can_search_addresses

REFUSAL = "Your role can't search by address, because it sees masked addresses. Search by an ID."
_PHONE = re.compile(r"\+\d{6,15}", re.ASCII)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SCHEME = re.compile(r"(?:mailto|tel):(?=[^\s:]*[@\d])", re.IGNORECASE)
_NAMED = re.compile(r"[^<>]*<([^<>\s]+@[^<>\s]+)>")
_DIALLED = re.compile(r"00[1-9]\d{5,13}", re.ASCII)
"""A number with the international prefix of most countries in place of the plus."""
_TRUNK_ZERO = re.compile(r"(?<=\d)\s*\(0\)")
"""The zero that isn't dialled after the country code: ``+44 (0)20``."""
_SEPARATORS = re.compile("[\\s()./\u2010-\u2015\u2212-]+")
_ENDS = ".,;:"
"""What follows an address in a sentence or a list; none can end an address."""
_ADDRESS = re.compile(r"[!-~]+@[^\s@]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedAddresses:
    """The addresses that a search text may mean."""

    emails: tuple[str, ...] = ()
    """The spellings of one email address: as typed, and in lower case as a whole or its domain."""
    phone: str | None = None
    """A phone number without separators, such as ``+351912345678``."""
    is_refused: bool = False
    """Whether the text is an address by which the user may not search."""

    def by_channel(self) -> Iterator[tuple[Channel, str]]:
        """Return each address with the channel of its suppressions and digests."""
        found = ((EMAIL_ADDRESS, self.emails[:1]), (PHONE_NUMBER, (self.phone,)))
        for kind, addresses in found:
            for channel in channels_of(kind):
                yield from ((channel, address) for address in addresses if address is not None)

    def digests(self) -> list[str]:
        """Return the digest of each address, which doesn't depend on its spelling."""
        return [address_digest(channel.value, address) for channel, address in self.by_channel()]


def searched_addresses(text: str, *, user: Any) -> SearchedAddresses:
    """Return the addresses that a search text may mean.

    There are none if it isn't a whole address, or if the user may not search by address.
    """
    local, at, domain = text.rpartition("@")
    number = without_separators(text)
    if not can_search_addresses(user):
        # Digits alone may be an ID that begins with zeros.
        is_phone = _PHONE.fullmatch(number) and not text.isdecimal()
        return SearchedAddresses(is_refused=bool(at or is_phone))
    return SearchedAddresses(
        # Stored as the client sent it, with the domain in lower case.
        emails=tuple(sorted({text, f"{local}@{domain.lower()}", text.lower()})) if at else (),
        phone=number if _PHONE.fullmatch(number) else None,
    )


def pasted(text: str) -> str:
    """Return a text without what comes along with a copy.

    That is blanks and invisible characters, a link's scheme, and the name beside an address.
    Only an address or a number loses also its quotes, the punctuation after it, and the width of
    its letters: an ID may contain these.
    """
    found = _INVISIBLE.sub("", text).replace("\u00a0", " ").strip()
    plain = unicodedata.normalize("NFKC", found).replace("\u3002", ".").rstrip(_ENDS).strip()
    if plain[:1] in {"'", '"'} and plain.endswith(plain[0]):
        plain = plain[1:-1]
    if named := _NAMED.fullmatch(plain):
        plain = named[1]
    plain = _SCHEME.sub("", plain).strip()
    is_contact = _ADDRESS.fullmatch(plain) or _PHONE.fullmatch(without_separators(plain))
    return plain if is_contact else found


def entered_address(kind: AddressKind, text: str) -> str:
    """Return an entered address without what comes along with a copy, and a number's separators."""
    plain = pasted(text)
    return without_separators(plain) if kind is PHONE_NUMBER else plain


def without_separators(number: str) -> str:
    """Return a phone number as it is stored, from one that is written for people."""
    found = _SEPARATORS.sub("", _TRUNK_ZERO.sub("", number))
    return f"+{found[2:]}" if _DIALLED.fullmatch(found) else found


def explain_refusal(request: HttpRequest, text: str) -> None:
    """Add a message if the text is an address by which the user may not search."""
    if searched_addresses(text, user=request.user).is_refused:
        messages.warning(request, REFUSAL)
