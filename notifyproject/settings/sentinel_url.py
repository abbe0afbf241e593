"""REDIS_URL of a Valkey that Sentinels watch: parsing, and the forms that the libraries take."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry

SCHEME = "sentinel"
DEFAULT_PORT = 26379
MAX_PORT = 65_535
FORMAT = "sentinel://[user:password@]host[:port],host[:port]/database?master=name"

_URL = re.compile(
    rf"{SCHEME}://(?P<authority>[^/?#\s]*)(?P<path>[^?#\s]*)(?:\?(?P<query>[^#\s]*))?", re.ASCII
)
_HOST = re.compile(
    r"(?:\[(?P<address>[^\]]+)\]|(?P<name>[a-z0-9._-]+))(?::(?P<port>\d{0,5}))?", re.I
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SentinelAddress:
    """The Sentinels, and what they and their primary require."""

    hosts: tuple[tuple[str, int], ...]
    """Name or address, and port, of each Sentinel."""
    master: str
    """The name under which the Sentinels watch the primary."""
    database: int = 0
    username: str | None = None
    password: str | None = None
    """Password of the primary and its replicas."""
    sentinel_password: str | None = None
    """Password of the Sentinels."""

    def broker_url(self) -> str:
        """Return the address as Celery takes it: one URL for each Sentinel."""
        user = quote(self.username or "", safe="")
        secret = f":{quote(self.password, safe='')}" if self.password else ""
        at = "@" if user or secret else ""
        return ";".join(
            f"{SCHEME}://{user}{secret}{at}{_bracketed(host)}:{port}/{self.database}"
            for host, port in self.hosts
        )

    def transport_options(self, *, timeout: float) -> dict[str, Any]:
        """Return Celery's transport options; see :meth:`sentinel_options`."""
        return {
            "master_name": self.master,
            "sentinel_kwargs": self.sentinel_options(timeout=timeout),
        }

    def sentinel_options(self, *, timeout: float) -> dict[str, Any]:
        """Return the options for a connection to a Sentinel.

        It waits at most ``timeout`` seconds and doesn't retry, because the next Sentinel can be
        asked at once.
        """
        return {
            "password": self.sentinel_password,
            "socket_connect_timeout": timeout,
            "socket_timeout": timeout,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
        }


def parse(url: str) -> SentinelAddress | None:
    """Parse REDIS_URL; None without Sentinels. Raises ImproperlyConfigured, without the URL."""
    if not url.startswith(f"{SCHEME}://"):
        return None
    try:
        credentials, hosts, path, query = _split(url)
        username, _, password = credentials.partition(":")
        options = dict(parse_qsl(query, strict_parsing=True)) if query else {}
        return SentinelAddress(
            hosts=tuple(_host(host) for host in hosts.split(",")),
            master=options.pop("master"),
            database=int(path.strip("/") or 0),
            username=unquote(username) or None,
            password=unquote(password) or None,
            sentinel_password=options.pop("sentinel_password", None),
            **options,
        )
    except (ValueError, KeyError, TypeError):
        # Without the cause, whose text may have the password.
        raise ImproperlyConfigured(f"environment variable REDIS_URL: expected {FORMAT}") from None


def _split(url: str) -> tuple[str, str, str, str]:
    """Return credentials, hosts, path, and query. Raises ValueError."""
    # Not by urlsplit: since Python 3.11.12, and earlier in Debian's, it refuses a list of hosts
    # with an IPv6 address, because such a text isn't one host.
    match = _URL.fullmatch(url)
    if match is None:
        raise ValueError("no URL")
    credentials, _, hosts = match["authority"].rpartition("@")
    return credentials, hosts, match["path"], match["query"] or ""


def _host(text: str) -> tuple[str, int]:
    match = _HOST.fullmatch(text)
    port = int(match["port"] or DEFAULT_PORT) if match else 0
    if match is None or not 0 < port <= MAX_PORT:
        raise ValueError("no host")
    if match["address"]:
        return str(IPv6Address(match["address"])), port
    return match["name"].lower(), port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
