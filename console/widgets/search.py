"""Addresses in a search text. Every search by address goes through this module."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest

from domain.addresses import address_digest
from domain.states import Channel
from recipients.masking import can_search_addresses

REFUSAL = "Your role can't search by address, because it sees masked addresses. Search by an ID."
_PHONE = re.compile(r"\+\d{6,15}", re.ASCII)
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_SCHEME = re.compile(r"(?:mailto|tel):(?=[^\s:]*[@\d])", re.IGNORECASE)
_NAMED = re.compile(r"[^<>]*<([^<>\s]+@[^<>\s]+)>[,;]?")
_DIALLED = re.compile(r"00[1-9]\d{5,13}", re.ASCII)
"""A number with the international prefix of most countries in place of the plus."""
_SEPARATORS = re.compile(r"[\s().-]+")


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
        if self.emails:
            yield Channel.EMAIL, self.emails[0]
        if self.phone is not None:
            yield Channel.WHATSAPP, self.phone

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
        return SearchedAddresses(is_refused=bool(at or _PHONE.fullmatch(number)))
    return SearchedAddresses(
        # Stored as the client sent it, with the domain in lower case.
        emails=tuple(sorted({text, f"{local}@{domain.lower()}", text.lower()})) if at else (),
        phone=number if _PHONE.fullmatch(number) else None,
    )


def pasted(text: str) -> str:
    """Return a text without what comes along with a copy.

    That is blanks and invisible characters, a link's scheme, and the name beside an address.
    """
    found = _INVISIBLE.sub("", text).replace("\u00a0", " ").strip()
    if named := _NAMED.fullmatch(found):
        found = named[1]
    return _SCHEME.sub("", found).strip()


def without_separators(number: str) -> str:
    """Return a phone number as it is stored, from one that is written for people."""
    found = _SEPARATORS.sub("", number)
    return f"+{found[2:]}" if _DIALLED.fullmatch(found) else found


def explain_refusal(request: HttpRequest, text: str) -> None:
    """Add a message if the text is an address by which the user may not search."""
    if searched_addresses(text, user=request.user).is_refused:
        messages.warning(request, REFUSAL)
