"""HTTP requests to the provider, each with a deadline and a limit of the response's size.

The provider may be in a private network, because the operator chooses it. Redirects aren't
followed. Plain HTTP reaches this machine only.
"""

import http.client
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from notifyproject.platform import egress

from .errors import UnavailableError

CONNECT_TIMEOUT = 2.0
TOTAL_TIMEOUT = 3.5
"""Seconds for one request, from the DNS lookup to the last byte. The three requests of a sign-in
or a check fit into the time that a page has for its reads of the database."""
MAX_RESPONSE_BYTES = 256 * 1024
USER_AGENT = "notifyproject-console"
SERVER_ERRORS = range(500, 600)
TOO_MANY_REQUESTS = 429
_SECURE, _PLAIN = "https", "http"

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete response of the provider that isn't a server error."""

    status: int
    body: bytes


def get(url: str, *, headers: Mapping[str, str] | None = None) -> Answer:
    """Send a GET. Raises UnavailableError."""
    return _request("GET", url, headers=headers or {}, body=None)


def post_form(url: str, fields: Mapping[str, str], *, headers: Mapping[str, str]) -> Answer:
    """Send a form by POST, once. Raises UnavailableError."""
    form = {"Content-Type": "application/x-www-form-urlencoded", **headers}
    return _request("POST", url, headers=form, body=urlencode(fields).encode())


def decode(body: bytes, kind: type[T]) -> T:
    """Decode a JSON body. Raises UnavailableError if it doesn't fit."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise UnavailableError("the response isn't the expected JSON") from error


def is_allowed(url: str, *, issuer: str) -> bool:
    """Return whether a URL is HTTPS, or plain HTTP like a local issuer's."""
    try:
        scheme = urlsplit(url).scheme
    except ValueError:
        return False
    return scheme == _SECURE or (scheme == _PLAIN and urlsplit(issuer).scheme == _PLAIN)


def _request(method: str, url: str, *, headers: Mapping[str, str], body: bytes | None) -> Answer:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UnavailableError("not a URL") from error
    is_plain = parts.scheme == _PLAIN
    kind = egress.PlainConnection if is_plain else egress.ConfiguredConnection
    connection = kind(
        parts.hostname or "",
        port or kind.default_port,
        deadline=egress.Deadline.after(TOTAL_TIMEOUT),
        connect_timeout=CONNECT_TIMEOUT,
    )
    common = {"Accept": "application/json", "User-Agent": USER_AGENT, "Connection": "close"}
    try:
        target = egress.request_target(parts.path, parts.query)
        connection.request(method, target, body=body, headers={**common, **headers})
        with connection.getresponse() as response:
            content = response.read(MAX_RESPONSE_BYTES + 1)
            status = response.status
    except ssl.SSLCertVerificationError as error:
        raise UnavailableError("invalid TLS certificate") from error
    except TimeoutError as error:
        raise UnavailableError("timed out") from error
    except (egress.NotPublicError, OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(f"no valid response: {type(error).__name__}") from error
    finally:
        connection.close()
    if len(content) > MAX_RESPONSE_BYTES:
        raise UnavailableError("the response is larger than allowed")
    if status in SERVER_ERRORS or status == TOO_MANY_REQUESTS:
        raise UnavailableError(f"HTTP {status}")
    return Answer(status=status, body=content)
