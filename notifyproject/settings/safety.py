"""Rules for the secrets and URLs of the environment: which values are safe on a server. Pure.

``kinds.py`` gives each secret and URL a rule.
"""

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from urllib.parse import urlsplit

from domain.hosts import is_loopback, is_private_name

MIN_UNIT = 16
"""Characters after which a random secret may repeat itself: with fewer, it is a pattern."""
MAX_RUN = 8
"""Characters in a row that are equal, or each the next of the one before."""
MAX_DISTINCT = 10
_PLACEHOLDER = re.compile(rb"change[-_ ]?me|replace[-_ ]?me|placeholder|django-insecure", re.I)
_NAME = re.compile(r"[a-z][a-z0-9_-]*", re.ASCII)
_PRIVATE_NETWORKS = tuple(
    ipaddress.ip_network(network)
    for network in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "169.254.0.0/16",
        "100.64.0.0/10",
        "fc00::/7",
        "fe80::/10",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRule:
    """What a secret must be on a server."""

    min_length: int
    """Characters, or bytes of a key."""
    is_issued: bool = False
    """Issued by a provider, to whom the service presents it. Otherwise, others who guess it can do
    what it allows, so it must be random."""


class Plain(StrEnum):
    """To which hosts a URL may lead without TLS."""

    LOOPBACK = "this machine"
    PRIVATE = "a private network"
    ANY = "any host"


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlRule:
    """What production requires of a URL setting."""

    schemes: tuple[str, ...] = ("https", "http")
    plain: Plain
    """To which hosts it may lead without TLS. The network of the stores is private by definition:
    docs/reference/security.md."""


def secret_problem(rule: SecretRule, secret: bytes) -> str | None:
    """Return what is wrong with a secret, without the secret, or None."""
    if len(secret) < rule.min_length:
        return f"has fewer than {rule.min_length} characters"
    if not rule.is_issued and not _is_random(secret):
        return "is not random"
    return None


def url_problem(rule: UrlRule, url: str) -> str | None:
    """Return what is wrong with a URL, without the URL, or None."""
    if problem := url_form_problem(rule, url):
        return problem
    if not url.startswith("http://"):
        return None
    host = urlsplit(url).hostname or ""
    if is_loopback(host) or (rule.plain is Plain.PRIVATE and is_private(host)):
        return None
    return f"is not https: plain http is for {rule.plain} only"


def url_form_problem(rule: UrlRule, url: str) -> str | None:
    """Return why a text is not a URL of the rule, or None. URLs of stores: ``store_urls.py``.

    A scheme in capitals is refused, since clients of HTTP and of the stores compare it.
    """
    scheme, separator, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    is_web = scheme.startswith("http")
    findings = {
        f"doesn't begin with {' or '.join(f'{scheme}://' for scheme in rule.schemes)}": (
            scheme not in rule.schemes or not separator
        ),
        "contains a blank": re.search(r"\s", url) is not None,
        "has a user or a password": is_web and "@" in authority,
        "has no valid host and port": is_web and not _has_host(url),
        "has a query or a fragment": is_web and re.search(r"[?#]", url) is not None,
    }
    return next((problem for problem, is_found in findings.items() if is_found), None)


def is_private(host: str) -> bool:
    """Return whether a host is in a private network, by its address or its name."""
    name = host.rstrip(".").lower()
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        # A number without dots is an address, too.
        return is_private_name(name) and ("." in name or _NAME.fullmatch(name) is not None)
    return address.is_loopback or any(address in network for network in _PRIVATE_NETWORKS)


def _has_host(url: str) -> bool:
    """Return whether a URL has one host, and a port or none."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if ":" in host:
            ipaddress.IPv6Address(host)
            host = "address"
    except ValueError:
        return False
    is_name = re.fullmatch(r"\w([\w-]*\w)?(\.\w([\w-]*\w)?)*\.?", host) is not None
    return is_name and port != 0 and not parts.netloc.endswith(":")


def _is_random(secret: bytes) -> bool:
    has_few = len(set(secret)) < min(MAX_DISTINCT, len(secret) // 4)
    return not (
        has_few
        or _unit(secret) < min(MIN_UNIT, len(secret) // 2 + 1)
        or any(_longest_run(secret, step) >= MAX_RUN for step in (-1, 0, 1))
        or _PLACEHOLDER.search(secret)
    )


def _unit(secret: bytes) -> int:
    """Return the length of the part of which a secret is a repetition."""
    return next(size for size in range(1, len(secret) + 1) if secret[size:] == secret[:-size])


def _longest_run(secret: bytes, step: int) -> int:
    longest = length = 1
    for before, number in pairwise(secret):
        length = length + 1 if number - before == step else 1
        longest = max(longest, length)
    return longest
