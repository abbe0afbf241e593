"""Fetching a file over https from a host whose name somebody else chose.

How the host is reached, and that it is nowhere inside: :mod:`notifyproject.outside.connections`.
Nothing is unpacked.
"""

import http.client
import socket
import ssl
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from notifyproject.outside.addresses import NotPublic
from notifyproject.outside.connections import Connection
from notifyproject.outside.deadlines import Deadline

from ..attachments import HTTPS_PORT, host_of
from ..errors import FailureCode, PermanentError, TransientError
from .http import CONNECT_TIMEOUT

UNAVAILABLE = FailureCode.ATTACHMENT_UNAVAILABLE
CHUNK = 64 * 1024
LATER = frozenset({408, 425, 429})
"""Statuses from 400 to 499 that may be others another time."""
FIRST_SERVER_ERROR = 500
HEADERS = {"User-Agent": "notifyproject", "Accept": "*/*", "Connection": "close"}
_IN_A_PATH = "/%:@!$&'()*+,;=~-._"


class DownloadFailed(TransientError):
    """A file could not be fetched just now; nothing of the message has left.

    It says nothing about the provider that the message was to go to.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code=UNAVAILABLE)


def fetch(url: str, *, limit: int, deadline: Deadline) -> bytes:
    """Return what is at an https URL: at least one byte, at most ``limit``.

    The file is whole: its end is its length, its last chunk or, where the response has neither,
    TLS's close_notify. A connection that ends earlier or otherwise is a DownloadFailed.

    Raises DownloadFailed when it may work later, PermanentError when it will not: the code is
    TOO_LARGE for more than ``limit``. Their reasons begin in lower case and hold no part of the
    URL.
    """
    host = host_of(url)
    if host is None:
        raise PermanentError("its address is not one", code=UNAVAILABLE)
    connection = Connection(host, HTTPS_PORT, deadline=deadline, connect_timeout=CONNECT_TIMEOUT)
    try:
        connection.request("GET", _target(url), headers=HEADERS)
        # The answer holds the connection open, too.
        with connection.getresponse() as answer:
            _check(answer, limit)
            return _content(answer, limit)
    except NotPublic as error:
        reason = "its host is not on the public Internet"
        raise PermanentError(reason, code=UNAVAILABLE) from error
    except (OSError, http.client.HTTPException) as error:
        raise DownloadFailed(_reason(error, deadline)) from error
    except ValueError as error:
        raise PermanentError("its address is not one", code=UNAVAILABLE) from error
    finally:
        connection.close()


def _target(url: str) -> str:
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe=_IN_A_PATH)
    return f"{path}?{quote(parts.query, safe=_IN_A_PATH + '?')}" if parts.query else path


def _check(answer: http.client.HTTPResponse, limit: int) -> None:
    """Raise the error an answer is, by its head alone, if it is not the file."""
    status = answer.status
    if status in LATER or status >= FIRST_SERVER_ERROR:
        raise DownloadFailed(f"its server cannot give it now ({status})")
    if status != HTTPStatus.OK:
        raise PermanentError(f"it is not there ({status})", code=UNAVAILABLE)
    if answer.getheader("Content-Encoding", "identity").lower() != "identity":
        raise PermanentError("its server gives it only packed", code=UNAVAILABLE)
    if answer.getheader("Transfer-Encoding", "chunked").lower() != "chunked":
        raise PermanentError("its server gives it only packed", code=UNAVAILABLE)
    if answer.length is None and not answer.chunked and "Content-Length" in answer.headers:
        # http.client reads on to the end of the connection then, as if there were no length.
        raise http.client.HTTPException("its length is no number")
    if answer.length is not None and answer.length > limit:
        raise _too_large()


def _content(answer: http.client.HTTPResponse, limit: int) -> bytes:
    content = bytearray()
    while chunk := answer.read1(CHUNK):
        content += chunk
        if len(content) > limit:
            raise _too_large()
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    if not content:
        raise PermanentError("it is empty", code=UNAVAILABLE)
    return bytes(content)


def _too_large() -> PermanentError:
    return PermanentError("it is larger than is allowed", code=FailureCode.TOO_LARGE)


def _reason(error: Exception, deadline: Deadline) -> str:
    if deadline.is_over:
        return "its server did not give it in time"
    if isinstance(error, socket.gaierror):
        return "its host has no address"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its server's certificate is not valid"
    if isinstance(error, http.client.HTTPException):
        return "its server broke off"
    return "its server cannot be reached or broke off"
