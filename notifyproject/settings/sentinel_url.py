"""REDIS_URL of a Valkey that Sentinels watch: parsing, and the forms that the libraries take."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured
from redis.backoff import NoBackoff
from redis.retry import Retry

SCHEME = "sentinel"
DEFAULT_PORT = 26379
FORMAT = "sentinel://[user:password@]host[:port],host[:port]/database?master=name"


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
        """Return the options of a connection to a Sentinel, which waits ``timeout`` seconds.

        Without retries, because the next Sentinel can be asked at once.
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
        parts = urlsplit(url)
        credentials, _, hosts = parts.netloc.rpartition("@")
        username, _, password = credentials.partition(":")
        options = dict(parse_qsl(parts.query, strict_parsing=True)) if parts.query else {}
        return SentinelAddress(
            hosts=tuple(_host(host) for host in hosts.split(",")),
            master=options.pop("master"),
            database=int(parts.path.strip("/") or 0),
            username=unquote(username) or None,
            password=unquote(password) or None,
            sentinel_password=options.pop("sentinel_password", None),
            **options,
        )
    except (ValueError, KeyError, TypeError):
        # Without the cause, whose text may have the password.
        raise ImproperlyConfigured(f"environment variable REDIS_URL: expected {FORMAT}") from None


def _host(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or parts.path:
        raise ValueError("no host")
    return parts.hostname, parts.port or DEFAULT_PORT


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
