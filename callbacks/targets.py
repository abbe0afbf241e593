"""Which URLs may be called back: what can be told from the text alone. Pure.

What the host's name stands for is looked at whenever it is connected to.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from notifyproject.outside.addresses import is_public

HTTPS_PORT = 443
HTTP_PORT = 80
SECOND_PORT = 8443
LAST_PRIVILEGED_PORT = 1024
"""Up to here ports are of other protocols, whose servers might make something of a request."""
_NAME = re.compile(
    r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
    re.ASCII,
)
_IN_A_PATH = "/%:@!$&'()*+,;=~-._"


class BadTarget(ValueError):
    """A URL that is not called back; the message says why, and holds no part of it."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a request goes."""

    host: str
    port: int
    path: str
    """With the query."""
    is_plain: bool = False
    """By http, which only this machine is called with."""

    @property
    def authority(self) -> str:
        """The host, and the port if it is not the usual one, as the header Host has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = HTTP_PORT if self.is_plain else HTTPS_PORT
        return host if self.port == usual else f"{host}:{self.port}"


def parse(url: str, *, loopback: bool) -> Target:
    """Return where a URL leads; raises BadTarget. ``loopback``: http to this machine is allowed."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise BadTarget("invalid_url", "Expected a URL.") from error
    if not url.isprintable() or url != url.strip() or not host:
        raise BadTarget("invalid_url", "Expected a URL.")
    is_plain = loopback and parts.scheme == "http" and _is_this_machine(host)
    if parts.scheme != "https" and not is_plain:
        raise BadTarget("not_https", "Expected a URL that begins with https://.")
    if "@" in parts.netloc or parts.fragment or "#" in url:
        raise BadTarget("invalid_url", "Expected a URL without a user and without a fragment.")
    if not is_plain:
        _check_host(host)
    port = port if port is not None else (HTTP_PORT if is_plain else HTTPS_PORT)
    if not is_plain and port not in (HTTPS_PORT, SECOND_PORT) and port <= LAST_PRIVILEGED_PORT:
        raise BadTarget("port_not_allowed", "Expected port 443, or one above 1024.")
    return Target(host=host, port=port, path=_path(parts.path, parts.query), is_plain=is_plain)


def _check_host(host: str) -> None:
    """Raise BadTarget for a host that can be told to be inside, or to be none."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # What looks like a number is one to a resolver, in whatever way it is written.
        last = host.rpartition(".")[2]
        if not _NAME.fullmatch(host) or last.isdigit() or last.startswith("0x"):
            raise BadTarget("invalid_host", "Expected a host name in ASCII.") from None
        if "." not in host or last in ("localhost", "internal", "local"):
            raise BadTarget("not_public", "Expected a host on the public Internet.") from None
        return
    if not is_public(address):
        raise BadTarget("not_public", "Expected a host on the public Internet.")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _path(path: str, query: str) -> str:
    quoted = quote(path or "/", safe=_IN_A_PATH)
    return f"{quoted}?{quote(query, safe=_IN_A_PATH + '?')}" if query else quoted
