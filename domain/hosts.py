"""Names of hosts, and which of them only a local network resolves. Pure."""

import ipaddress
import re
from urllib.parse import urlsplit

import idna

PRIVATE_DOMAINS = frozenset(
    {
        # Reserved by RFC 6761, 6762, 8375, and 9476, and by ICANN.
        "localhost",
        "local",
        "arpa",
        "alt",
        "internal",
        # Of Kubernetes, Linux, routers, and companies.
        "svc",
        "localdomain",
        "lan",
        "home",
        "corp",
        "intranet",
        "private",
    }
)
"""Last labels of names that aren't of the public Internet. No registry delegates them."""
_PUBLIC_NAME = re.compile(r"(?:[a-z0-9-]{1,63}\.)+[a-z][a-z0-9-]*", re.ASCII)


def is_loopback(host: str) -> bool:
    """Return whether a host of a URL is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


def is_private_name(name: str) -> bool:
    """Return whether a host name, in lower case, is of a local network."""
    plain = name.removesuffix(".")
    return "." not in plain or plain.rpartition(".")[2] in PRIVATE_DOMAINS


def public_name(url: str) -> str:
    """Return the public host name of a URL in ASCII, or an empty text if it has none."""
    try:
        host = (urlsplit(url).hostname or "").removesuffix(".")
        name = host if host.isascii() else idna.encode(host).decode("ascii")
    except (ValueError, UnicodeError):
        return ""
    is_public = _PUBLIC_NAME.fullmatch(name) is not None and not is_private_name(name)
    return name if is_public else ""
