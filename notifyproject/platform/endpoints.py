"""Validates the URLs of receivers that others name, and sends POST requests to them."""

import contextlib
import http.client
import ipaddress
import re
import socket
import ssl
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from domain.hosts import is_loopback, is_private_name

from . import egress

HTTPS_PORT = 443
HTTP_PORT = 80
LAST_PRIVILEGED_PORT = 1024
"""Lower ports belong to other protocols, whose servers might interpret a request."""
_NAME = re.compile(
    r"(?=.{1,253}\Z)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?",
    re.ASCII,
)
EXCERPT_LENGTH = 500
"""Characters of a response that are kept."""
CONNECT_TIMEOUT = 5.0
TOTAL_TIMEOUT = 15.0
MAX_RESPONSE_BYTES = 64 * 1024
CHUNK = 8 * 1024
USER_AGENT = "notifyproject-callbacks"
SUCCESS = range(200, 300)
REDIRECTS = range(300, 400)
_ANY_HEADER = zlib.MAX_WBITS + 32
"""Detects the header of gzip and zlib."""
_REASONS: Sequence[tuple[type[Exception], str]] = (
    (egress.NotPublicError, "The host is not on the public Internet."),
    (TimeoutError, "Timed out."),
    (socket.gaierror, "DNS lookup failed."),
    (ssl.SSLCertVerificationError, "Invalid TLS certificate."),
    (ssl.SSLError, "TLS connection failed."),
    (ConnectionRefusedError, "Connection refused."),
)
"""Reasons by exception class; the first match applies."""


class InvalidUrlError(ValueError):
    """A URL that isn't allowed. The message gives the reason, without any part of the URL."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A parsed URL."""

    host: str
    port: int
    path: str
    """Including the query."""
    is_plain: bool = False

    @property
    def authority(self) -> str:
        """The value of the Host header: the host, and the port if it isn't the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = HTTP_PORT if self.is_plain else HTTPS_PORT
        return host if self.port == usual else f"{host}:{self.port}"


def parse_url(url: str, *, allow_loopback: bool) -> Endpoint:
    """Parse a URL. Plain HTTP is only for this machine. Raises InvalidUrlError."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError as error:
        raise InvalidUrlError("invalid_url", "Expected a URL.") from error
    if not url.isprintable() or url != url.strip() or not host:
        raise InvalidUrlError("invalid_url", "Expected a URL.")
    is_plain = allow_loopback and parts.scheme == "http" and is_loopback(host)
    if parts.scheme != "https" and not is_plain:
        raise InvalidUrlError("not_https", "Expected a URL that begins with https://.")
    if "@" in parts.netloc or parts.fragment or "#" in url:
        detail = "Expected a URL without a user and without a fragment."
        raise InvalidUrlError("invalid_url", detail)
    if not is_plain:
        _check_host(host)
    port = port if port is not None else (HTTP_PORT if is_plain else HTTPS_PORT)
    if not is_plain and port != HTTPS_PORT and port <= LAST_PRIVILEGED_PORT:
        raise InvalidUrlError("port_not_allowed", "Expected port 443, or one above 1024.")
    return Endpoint(
        host=host, port=port, path=egress.request_target(parts.path, parts.query), is_plain=is_plain
    )


def _check_host(host: str) -> None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        # A resolver accepts an IP address in any numeric notation.
        last = host.rpartition(".")[2]
        if not _NAME.fullmatch(host) or last.isdigit() or last.startswith("0x"):
            raise InvalidUrlError("invalid_host", "Expected a host name in ASCII.") from None
        if is_private_name(host):
            raise InvalidUrlError("not_public", "Expected a host on the public Internet.") from None
        return
    if not egress.is_public(address):
        raise InvalidUrlError("not_public", "Expected a host on the public Internet.")


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointResponse:
    """The response to a POST. If there was none, ``error`` has the reason."""

    status: int | None
    error: str | None
    excerpt: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    duration_ms: int


def post(
    endpoint: Endpoint, *, body: bytes, headers: Mapping[str, str], timeout: float = TOTAL_TIMEOUT
) -> EndpointResponse:
    """Send a POST and return the response. Failures are returned as ``error``, not raised."""
    started = time.monotonic()
    deadline = egress.Deadline.after(timeout)
    status, error, excerpt, response_headers = None, None, None, dict[str, str]()
    connection_class = egress.PlainConnection if endpoint.is_plain else egress.Connection
    connection = connection_class(
        endpoint.host,
        endpoint.port,
        deadline=deadline,
        connect_timeout=min(CONNECT_TIMEOUT, timeout),
    )
    request_headers = {
        "Host": endpoint.authority,
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Connection": "close",
        **headers,
    }
    try:
        connection.request("POST", endpoint.path, body=body, headers=request_headers)
        with connection.getresponse() as response:
            status = response.status
            response_headers = {name.lower(): value for name, value in response.getheaders()}
            excerpt = _read_excerpt(response)
    except (egress.NotPublicError, OSError, http.client.HTTPException, ValueError) as problem:
        error = _failure_reason(problem, deadline)
    finally:
        connection.close()
    if status is not None:
        # The status decides; the body may be incomplete.
        error = None if status in SUCCESS else f"HTTP {status}."
        if status in REDIRECTS:
            error = f"HTTP {status}: redirects aren't followed."
    return EndpointResponse(
        status=status,
        error=error,
        excerpt=excerpt,
        headers=response_headers,
        duration_ms=round((time.monotonic() - started) * 1000),
    )


def _read_excerpt(response: http.client.HTTPResponse) -> str | None:
    content = bytearray()
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        while len(content) < MAX_RESPONSE_BYTES and (chunk := response.read1(CHUNK)):
            content += chunk
    plain = _decompress(bytes(content), response.getheader("Content-Encoding", ""))
    text = plain[: 4 * EXCERPT_LENGTH].decode(errors="replace")
    printable = "".join(c if c.isprintable() else " " for c in text).strip()
    return printable[:EXCERPT_LENGTH] or None


def _decompress(content: bytes, encoding: str) -> bytes:
    """Return the beginning of a body that was compressed although nobody asked for it."""
    match encoding.strip().lower():
        case "" | "identity":
            return content
        case "gzip" | "x-gzip" | "deflate":
            try:
                return zlib.decompressobj(_ANY_HEADER).decompress(content, MAX_RESPONSE_BYTES)
            except zlib.error:
                # Some servers only say that it is compressed.
                return content
        case _:
            return b""


def _failure_reason(error: Exception, deadline: egress.Deadline) -> str:
    if deadline.is_expired and not isinstance(error, egress.NotPublicError):
        return "Timed out."
    reasons = (reason for kind, reason in _REASONS if isinstance(error, kind))
    return next(reasons, "Connection closed, or invalid response.")
