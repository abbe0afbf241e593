"""Names of hosts that only a local network resolves. Pure."""

PRIVATE_DOMAINS = frozenset(
    {
        # Reserved by RFC 6761, 6762, 8375, and 9476, and by ICANN.
        *("localhost", "local", "arpa", "alt", "internal"),
        # Of Kubernetes, Linux, routers, and companies.
        *("svc", "localdomain", "lan", "home", "corp", "intranet", "private"),
    }
)
"""Last labels of names that aren't of the public Internet. No registry delegates them."""


def is_private_name(name: str) -> bool:
    """Return whether a host name, in lower case, is of a local network."""
    plain = name.removesuffix(".")
    return "." not in plain or plain.rpartition(".")[2] in PRIVATE_DOMAINS
