"""Addresses in a search text. Every search by address goes through this module."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from domain.states import Channel
from recipients.addresses import address_digest

_PHONE = re.compile(r"\+\d{6,15}", re.ASCII)
_SEPARATORS = re.compile(r"[\s().-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedAddresses:
    """The addresses that a search text may mean."""

    emails: tuple[str, ...] = ()
    """The spellings of one email address: as typed, and in lower case as a whole or its domain."""
    phone: str | None = None
    """A phone number without separators, such as ``+351912345678``."""

    def by_channel(self) -> Iterator[tuple[Channel, str]]:
        """Return each address with the channel of its suppressions and digests."""
        if self.emails:
            yield Channel.EMAIL, self.emails[0]
        if self.phone is not None:
            yield Channel.WHATSAPP, self.phone

    def digests(self) -> list[str]:
        """Return the digest of each address, which doesn't depend on its spelling."""
        return [address_digest(channel.value, address) for channel, address in self.by_channel()]


def searched_addresses(text: str) -> SearchedAddresses:
    """Return the addresses that a search text may mean; none if it isn't a whole address."""
    local, at, domain = text.rpartition("@")
    number = _SEPARATORS.sub("", text)
    return SearchedAddresses(
        # Stored as the client sent it, with the domain in lower case.
        emails=tuple(sorted({text, f"{local}@{domain.lower()}", text.lower()})) if at else (),
        phone=number if _PHONE.fullmatch(number) else None,
    )
