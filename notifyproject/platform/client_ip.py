"""The IP address of a request's client."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Network, ip_address

UNKNOWN_ADDRESS = "unknown"


def client_ip(meta: Mapping[str, str], *, proxies: int) -> str:
    """Return the client's IPv4 address or IPv6 /64, given ``proxies`` trusted proxies.

    Each proxy appends its caller to X-Forwarded-For. Earlier entries aren't trusted.
    """
    forwarded = meta.get("HTTP_X_FORWARDED_FOR", "")
    chain = [*(forwarded.split(",") if forwarded else ()), meta.get("REMOTE_ADDR", "")]
    return _network(chain[max(len(chain) - 1 - proxies, 0)].strip())


@lru_cache(maxsize=1_024)
def _network(text: str) -> str:
    """Return an IPv4 address as is, and an IPv6 address as its /64, which one subscriber owns."""
    try:
        address = ip_address(text)
    except ValueError:
        return UNKNOWN_ADDRESS
    if isinstance(address, IPv4Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(IPv6Network((int(address), 64), strict=False).network_address)
