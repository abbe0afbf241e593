"""One request to a receiver: who is reached, how long it may take, and what is kept of its answer.

Nothing but a public address is connected to, and it is the address that was looked at: see
:mod:`notifyproject.outside.connections`. Only a status from 200 to 299 is success; a redirect is
not followed, for it may lead anywhere.
"""

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from notifyproject.outside.addresses import NotPublic
from notifyproject.outside.connections import Connection, PlainConnection
from notifyproject.outside.deadlines import Deadline

from .models import EXCERPT_LENGTH
from .targets import Target

CONNECT_TIMEOUT = 5.0
TOTAL_TIMEOUT = 15.0
MAX_ANSWER = 64 * 1024
"""Of an answer, this many bytes are read."""
CHUNK = 8 * 1024
AGENT = "notifyproject-callbacks"
SUCCESS = range(200, 300)
REDIRECTS = range(300, 400)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a request. Without a status, ``error`` says why there is none."""

    status: int | None
    error: str | None
    excerpt: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    duration_ms: int


def post(
    target: Target, *, body: bytes, headers: Mapping[str, str], timeout: float = TOTAL_TIMEOUT
) -> Answer:
    """Send a POST and return what came of it; it raises nothing that a receiver can cause."""
    began = time.monotonic()
    deadline = Deadline.after(timeout)
    status, error, excerpt, received = None, None, None, dict[str, str]()
    kind = PlainConnection if target.is_plain else Connection
    connection = kind(
        target.host,
        target.port,
        deadline=deadline,
        connect_timeout=min(CONNECT_TIMEOUT, timeout),
    )
    sent = {
        "Host": target.authority,
        "Content-Type": "application/json",
        "User-Agent": AGENT,
        "Accept": "*/*",
        "Connection": "close",
        **headers,
    }
    try:
        connection.request("POST", target.path, body=body, headers=sent)
        with connection.getresponse() as answer:
            status = answer.status
            received = {name.lower(): value for name, value in answer.getheaders()}
            excerpt = _excerpt(answer)
    except (NotPublic, OSError, http.client.HTTPException, ValueError) as problem:
        error = _reason(problem, deadline)
    finally:
        connection.close()
    if status is not None:
        # Its head says it all; the rest may break off.
        error = _refusal(status)
    return Answer(
        status=status,
        error=error,
        excerpt=excerpt,
        headers=received,
        duration_ms=round((time.monotonic() - began) * 1000),
    )


def _excerpt(answer: http.client.HTTPResponse) -> str | None:
    """Return the beginning of an answer as text; what breaks off is what came so far."""
    content = bytearray()
    with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
        while len(content) < MAX_ANSWER and (chunk := answer.read1(CHUNK)):
            content += chunk
    text = bytes(content[: 4 * EXCERPT_LENGTH]).decode(errors="replace")
    shown = "".join(c if c.isprintable() else " " for c in text).strip()
    return shown[:EXCERPT_LENGTH] or None


def _refusal(status: int) -> str | None:
    if status in SUCCESS:
        return None
    if status in REDIRECTS:
        return f"It answered {status}: redirects are not followed."
    return f"It answered {status}."


_REASONS: Sequence[tuple[type[Exception], str]] = (
    (NotPublic, "Its host is not on the public Internet."),
    (TimeoutError, "It did not answer in time."),
    (socket.gaierror, "Its host has no address."),
    (ssl.SSLCertVerificationError, "Its certificate is not valid."),
    (ssl.SSLError, "No secure connection to it."),
    (ConnectionRefusedError, "It refused the connection."),
)
"""What is said of an error: of the first kind that it is."""


def _reason(error: Exception, deadline: Deadline) -> str:
    if deadline.is_over and not isinstance(error, NotPublic):
        return "It did not answer in time."
    found = (reason for kind, reason in _REASONS if isinstance(error, kind))
    return next(found, "It broke off, or its answer was none.")
