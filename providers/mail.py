"""Parts that email providers share: ASCII addresses, extra headers, and attachments.

Attachments are downloaded by HTTPS right before the send. They are not stored or decompressed.
"""

import http.client
import os
import re
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from http import HTTPStatus
from urllib.parse import urlsplit

from email_validator import validate_email

from domain.content import HTTPS_PORT, MAX_ATTACHMENT_BYTES, Attachment, attachment_host
from domain.errors import FailureCode, PermanentError, TransientError
from domain.mailboxes import Mailbox, parse_mailbox
from domain.media_types import MediaType, parse_media_type
from notifyproject.platform import event_loop
from notifyproject.platform.egress import Connection, Deadline, NotPublicError, request_target

from .contract import Message, SendTarget
from .http import CONNECT_TIMEOUT

ATTACHMENT_UNAVAILABLE = FailureCode.ATTACHMENT_UNAVAILABLE
FETCH_TIMEOUT = 10.0
"""Maximum seconds for all attachments of an email. Two thirds of the send's timeout if less."""
MAX_CONCURRENT_MAILS = 4
"""Limit per process, because an email with 10 MB of attachments takes 50 MB of memory."""
CALENDAR = "text/calendar"
MAX_CALENDAR_HEAD = 4096
"""Bytes of a calendar in which its method is searched for: it comes before the events."""
_METHOD = re.compile(rb"^METHOD:([A-Za-z-]{1,20})[ \t]*\r?$", re.MULTILINE | re.IGNORECASE)
CHUNK = 64 * 1024
RETRYABLE_STATUSES = frozenset({408, 425, 429})
FIRST_SERVER_ERROR = 500
REQUEST_HEADERS = {"User-Agent": "notifyproject", "Accept": "*/*", "Connection": "close"}


def ascii_email(address: str) -> str:
    """Return an email address with an ASCII domain. Raises ValueError if it is invalid.

    IDNA 2008 is used: the IDNA 2003 of the standard library and Django maps ß to another domain.
    """
    if address.isascii():
        return address
    validated = validate_email(
        address, check_deliverability=False, allow_smtputf8=False, test_environment=True
    )
    return validated.ascii_email or address


def extra_headers(message: Message) -> Mapping[str, str]:
    """Return the headers against automatic answers, and for one-click unsubscribe.

    RFC 3834, 5, and RFC 8058. Raises ValueError for a bad URL.
    """
    headers = {"Auto-Submitted": "auto-generated"}
    url = message.unsubscribe_url
    if url is None:
        return headers
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError("the URL must be ASCII without spaces")
    headers["List-Unsubscribe"] = f"<{url}>"
    headers["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    return headers


def cannot_build() -> PermanentError:
    """Return the error for an email that can't be encoded, such as one with an invalid address."""
    return PermanentError("Can't build the email.", code=FailureCode.RENDER_FAILED)


def sender_of(message: Message, *, default: str) -> Mailbox:
    """Return From, which is the envelope's sender, too: that of the brand or the default."""
    return message.sender or parse_mailbox(default)


def reply_to(message: Message, *, default: str | None) -> tuple[str, str] | None:
    """Return Reply-To as name and address, or None to reply to the sender. Raises ValueError.

    Replies to the sender of a brand never go to the default, which may be of another company.
    """
    text = message.reply_to or (default if message.sender is None else None)
    if not text:
        return None
    if "<" not in text:
        return "", ascii_email(text)
    mailbox = parse_mailbox(text)
    return mailbox.name, mailbox.address


class SenderScopes:
    """A provider whose scopes are the senders of brands; see :class:`.contract.ScopedProvider`.

    A sender that it doesn't let send concerns the messages of the brand alone. That of the
    installation concerns all others, as the account does.
    """

    def scope(self, target: SendTarget) -> str:
        """Return the sender that the target's brand has."""
        return target.sender


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachmentFile:
    """A downloaded attachment."""

    filename: str
    content_type: str
    content: bytes = field(repr=False)


@asynccontextmanager
async def attachment_files(
    attachments: Sequence[Attachment], *, hosts: AbstractSet[str], deadline: Deadline
) -> AsyncIterator[tuple[AttachmentFile, ...]]:
    """Download an email's attachments in a thread; see :func:`fetch_attachments`."""
    if not attachments:
        yield ()
        return

    def fetch() -> tuple[AbstractContextManager[object], tuple[AttachmentFile, ...]]:
        # Computed in the thread: the email may have waited for it.
        timeout = max(deadline.seconds_left, 0)
        files = fetch_attachments(attachments, hosts=hosts, timeout=timeout)
        return files, files.__enter__()

    files, fetched = await event_loop.run_blocking(fetch, pool="attachments")
    try:
        yield fetched
    finally:
        files.__exit__(None, None, None)


@contextmanager
def fetch_attachments(
    attachments: Sequence[Attachment], *, hosts: AbstractSet[str], timeout: float
) -> Iterator[tuple[AttachmentFile, ...]]:
    """Download an email's attachments within two thirds of ``timeout`` seconds.

    Raises DownloadError if a retry may help. Raises PermanentError if a file doesn't exist, a host
    is not public or not in ``hosts``, or the total exceeds MAX_ATTACHMENT_BYTES.
    """
    if not attachments:
        yield ()
        return
    seconds = max(0.0, min(FETCH_TIMEOUT, timeout * 2 / 3))
    deadline = Deadline.after(seconds)
    slots = _attachment_slots(os.getpid())
    if not slots.acquire(timeout=seconds):
        raise DownloadError("Too many concurrent emails with attachments.")
    try:
        yield _fetch_files(attachments, hosts, deadline)
    finally:
        slots.release()


def _fetch_files(
    attachments: Sequence[Attachment], hosts: AbstractSet[str], deadline: Deadline
) -> tuple[AttachmentFile, ...]:
    bytes_left = MAX_ATTACHMENT_BYTES
    files = []
    for number, attachment in enumerate(attachments, start=1):
        try:
            content = _fetch_attachment(attachment, hosts, bytes_left, deadline)
        except PermanentError as error:
            reason = f"Attachment {number} cannot be sent: {error.reason}."
            raise PermanentError(reason, code=error.code) from error
        except DownloadError as error:
            reason = f"Attachment {number} could not be fetched: {error.reason}."
            raise DownloadError(reason) from error
        bytes_left -= len(content)
        name, kind = attachment.filename, _complete_type(attachment.content_type, content)
        files.append(AttachmentFile(filename=name, content_type=kind, content=content))
    return tuple(files)


def _complete_type(content_type: str, content: bytes) -> str:
    """Return a type with the method of an invitation, which mail programs look for there.

    RFC 5545, 8.1 and RFC 6047, 2.4: it equals that of the calendar.
    """
    kind = parse_media_type(content_type)
    if kind is None or kind.name != CALENDAR or "method" in dict(kind.parameters):
        return content_type
    found = _METHOD.search(content[:MAX_CALENDAR_HEAD].split(b"BEGIN:VEVENT")[0])
    if found is None:
        return content_type
    method = ("method", found[1].decode("ascii").upper())
    return str(MediaType(kind.name, (*kind.parameters, method)))


def _fetch_attachment(
    attachment: Attachment, hosts: AbstractSet[str], bytes_left: int, deadline: Deadline
) -> bytes:
    # Checked at acceptance too, but the settings may have changed.
    if attachment_host(attachment.url) not in hosts:
        raise PermanentError("its host is not allowed here", code=ATTACHMENT_UNAVAILABLE)
    return download(attachment.url, limit=bytes_left, deadline=deadline)


@cache
def _attachment_slots(_process_id: int) -> threading.BoundedSemaphore:
    """Return the semaphore that limits concurrent emails with attachments in this process."""
    return threading.BoundedSemaphore(MAX_CONCURRENT_MAILS)


class DownloadError(TransientError):
    """A failed download. Nothing was sent, and the error says nothing about the email provider."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, code=ATTACHMENT_UNAVAILABLE)


def download(url: str, *, limit: int, deadline: Deadline) -> bytes:
    """Download the content of an HTTPS URL: at least one byte, at most ``limit``.

    The content is complete by its length, by its last chunk, or, without either, by TLS's
    close_notify. Otherwise, or if a retry may help, DownloadError is raised. Other failures raise
    PermanentError, with TOO_LARGE for more than ``limit``. Error reasons continue a sentence and
    contain no URL.
    """
    host = attachment_host(url)
    if host is None:
        raise PermanentError("its address is not one", code=ATTACHMENT_UNAVAILABLE)
    parts = urlsplit(url)
    connection = Connection(host, HTTPS_PORT, deadline=deadline, connect_timeout=CONNECT_TIMEOUT)
    try:
        connection.request("GET", request_target(parts.path, parts.query), headers=REQUEST_HEADERS)
        # The response holds the connection open, too.
        with connection.getresponse() as response:
            _check_response(response, limit)
            return _read_content(response, limit)
    except NotPublicError as error:
        reason = "its host is not on the public Internet"
        raise PermanentError(reason, code=ATTACHMENT_UNAVAILABLE) from error
    except (OSError, http.client.HTTPException) as error:
        raise DownloadError(_failure_reason(error, deadline)) from error
    except ValueError as error:
        raise PermanentError("its address is not one", code=ATTACHMENT_UNAVAILABLE) from error
    finally:
        connection.close()


def _check_response(response: http.client.HTTPResponse, limit: int) -> None:
    status = response.status
    if status in RETRYABLE_STATUSES or status >= FIRST_SERVER_ERROR:
        raise DownloadError(f"its server cannot give it now ({status})")
    if status != HTTPStatus.OK:
        raise PermanentError(f"it is not there ({status})", code=ATTACHMENT_UNAVAILABLE)
    for header, expected in (("Content-Encoding", "identity"), ("Transfer-Encoding", "chunked")):
        if response.getheader(header, expected).lower() != expected:
            raise PermanentError("its server gives it only packed", code=ATTACHMENT_UNAVAILABLE)
    if response.length is None and not response.chunked and "Content-Length" in response.headers:
        # http.client would read until the end of the connection.
        raise http.client.HTTPException("its length is no number")
    if response.length is not None and response.length > limit:
        raise _too_large()


def _read_content(response: http.client.HTTPResponse, limit: int) -> bytes:
    content = bytearray()
    while chunk := response.read1(CHUNK):
        content += chunk
        if len(content) > limit:
            raise _too_large()
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    if not content:
        raise PermanentError("it is empty", code=ATTACHMENT_UNAVAILABLE)
    return bytes(content)


def _too_large() -> PermanentError:
    return PermanentError("it is larger than is allowed", code=FailureCode.TOO_LARGE)


def _failure_reason(error: Exception, deadline: Deadline) -> str:
    if deadline.is_expired:
        return "its server did not give it in time"
    if isinstance(error, socket.gaierror):
        return "its host has no address"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "its server's certificate is not valid"
    if isinstance(error, http.client.HTTPException):
        return "its server broke off"
    return "its server cannot be reached or broke off"
