"""Which addresses are on the public Internet: nothing else is connected to for anybody's name."""

import ipaddress
import socket
from collections.abc import Callable

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_UNICAST = ipaddress.ip_network("2000::/3")
_TUNNELS = (ipaddress.ip_network("2002::/16"), ipaddress.ip_network("2001::/32"))
"""6to4 and Teredo: an IPv4 address is hidden in them."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class NotPublic(Exception):
    """A host has an address that is not a public one: such a name is a mistake or a trap."""


def is_public(address: Address) -> bool:
    """Return whether an address is one of the public Internet, and of one machine."""
    if isinstance(address, ipaddress.IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    hidden = address.ipv4_mapped
    if address in _NAT64:
        hidden = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    if hidden is not None:
        return is_public(hidden)
    is_tunnel = any(address in network for network in _TUNNELS)
    return address.is_global and address in _UNICAST and not is_tunnel


def addresses_of(host: str, port: int) -> list[tuple[str, int]]:
    """Return where to connect to for a host.

    Raises NotPublic if any of its addresses is not public, OSError if it has none.
    """
    return _resolved(host, port, is_public)


def loopback_of(host: str, port: int) -> list[tuple[str, int]]:
    """Return where this machine listens under a name; raises NotPublic if that is another's."""
    return _resolved(host, port, lambda address: address.is_loopback)


def _resolved(host: str, port: int, is_allowed: Callable[[Address], bool]) -> list[tuple[str, int]]:
    # It may take any time, and nothing hurries it; the deadline is looked at again after it.
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if not all(is_allowed(ipaddress.ip_address(a.partition("%")[0])) for a in addresses):
        raise NotPublic("the host is not on the public Internet")
    return [(address, port) for address in addresses]
