"""A client's connection to the web: received bytes, the response, and the deadline.

This module finds the end of a request. gunicorn's parser interprets the request.
"""

import io
import re
import resource
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gunicorn.http.body import LengthReader
from gunicorn.http.errors import LimitRequestHeaders, NoMoreData, UnsupportedTransferCoding
from gunicorn.http.parser import RequestParser

from .response_buffer import ResponseBuffer

MAX_HEAD = 64 * 1024
MAX_BODY = 5 * 1024 * 1024
"""Larger than any view's limit, because a view reports its limit more precisely."""
LIGHT_PATH = "/api/v1/notifications"
"""Many POSTs to this path, and GETs of one notification below it, arrive at once, and make the same
round trips."""
_LIGHT_ITEM = re.compile(re.escape(LIGHT_PATH) + "/[0-9a-f]{24}")
MAX_LIGHT_BODY = 16 * 1024
"""A larger body may take so long that other requests should not wait for it."""
MAX_CHUNK_LINE = 8 * 1024
RECEIVE_BYTES = 64 * 1024
KERNEL_SEND_BUFFER = 128 * 1024
"""Unsent bytes in the kernel. More would hide how fast a client reads, and use uncounted memory."""
LINGER_SECONDS = 2.0
"""Seconds in which late input is read and discarded, so that the response reaches the client."""
OTHER_FILES = 256
"""Open files that are not connections of clients: servers, libraries, logs."""
HEAD_END = re.compile(rb"\n\r?\n")
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


def raise_file_limit() -> int:
    """Raise the limit of open files to the hard limit; return how many may be connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = max(soft, 65_536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard - OTHER_FILES


def is_supported(codings: Sequence[str]) -> bool:
    """Return whether a request with these values of Transfer-Encoding can be read.

    gunicorn takes "gzip, chunked", but unpacks nothing: a view would read packed bytes.
    """
    return not codings or [coding.strip(" \t").lower() for coding in codings] == ["chunked"]


class BodyTooLargeError(Exception):
    """The body is larger than MAX_BODY."""


class Phase(StrEnum):
    """State of a connection: the event that it waits for."""

    IDLE = "idle"
    """The first byte of a request."""
    HEAD = "head"
    """The rest of a request's head."""
    BODY = "body"
    """The rest of the request's body."""
    PROCESSING = "processing"
    """A thread, and the thread's response."""
    RESPONSE = "response"
    """The client, to read the response."""
    LINGER = "linger"
    """The client, to close the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Time limits for a client."""

    seconds: float
    """Time for a head. For a body or a response, the time from ``rate`` is added."""
    rate: float
    """Minimum bytes per second of a body or a response."""
    idle: float


class Connection:
    """A client's connection, used either by the poller or by the thread with its request."""

    def __init__(
        self, *, client: socket.socket, address: Any, server: Any, config: Any, limits: Limits
    ) -> None:
        client.setblocking(False)
        if hasattr(socket, "TCP_NOTSENT_LOWAT") and client.family != socket.AF_UNIX:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, KERNEL_SEND_BUFFER)
        self.socket = client
        # gunicorn uses the next three names.
        self.sock = ResponseBuffer(client, seconds=limits.seconds)
        self.client = address
        self.server = server
        self.request: Any = None
        self.events = 0
        self.is_keepalive = False
        self.hard_deadline = float("inf")
        """Monotonic time at which the connection closes in any state."""
        self._limits = limits
        self._parser = RequestParser(config, self._read_received(), address)
        self._received = bytearray()
        self._searched = 0
        self._chunks = ChunkedBody()
        self.phase = Phase.IDLE
        self._since = 0.0
        self._transferred = 0

    def enter(self, phase: Phase, *, now: float) -> None:
        """Enter a state."""
        self.phase, self._since = phase, now
        self._transferred = self.sock.sent if phase is Phase.RESPONSE else 0

    @property
    def buffered(self) -> int:
        """Bytes of memory that the connection uses."""
        return len(self._received) + self.sock.buffered

    def deadline(self) -> float:
        """Return the monotonic time at which the client is too slow."""
        limits = self._limits
        match self.phase:
            case Phase.PROCESSING:
                return float("inf")
            case Phase.IDLE:
                allowed = limits.idle if self.request else limits.seconds
            case Phase.HEAD:
                allowed = limits.seconds
            case Phase.BODY:
                allowed = limits.seconds + self._transferred / limits.rate
            case Phase.RESPONSE:
                allowed = limits.seconds + (self.sock.sent - self._transferred) / limits.rate
            case Phase.LINGER:
                allowed = LINGER_SECONDS
        return min(self._since + allowed, self.hard_deadline)

    def receive(self) -> int:
        """Receive bytes; return their number, or 0 at the end. Raises OSError."""
        data = self.socket.recv(RECEIVE_BYTES)
        if self.phase is not Phase.LINGER:
            self._received += data
            self._transferred += len(data)
        return len(data)

    def has_request(self, *, now: float) -> bool:
        """Return whether a request is complete. Raises the errors of gunicorn's parser."""
        if self.phase is Phase.IDLE and self._received:
            self.enter(Phase.HEAD, now=now)
        if self.phase is Phase.HEAD:
            start, self._searched = max(0, self._searched - 2), len(self._received)
            if HEAD_END.search(self._received, start) or self._searched > MAX_HEAD:
                self._parse()
                self.enter(Phase.BODY, now=now)
        return self.phase is Phase.BODY and self._has_body()

    def is_light(self) -> bool:
        """Return whether the request may run together with others in one thread."""
        request, reader = self.request, self.request.body.reader
        if not isinstance(reader, LengthReader) or reader.length > MAX_LIGHT_BODY:
            return False
        if request.method == "POST":
            return bool(request.path == LIGHT_PATH)
        return request.method == "GET" and _LIGHT_ITEM.fullmatch(request.path) is not None

    def read_body(self) -> None:
        """Parse the body, which is complete. Raises the errors of gunicorn's parser."""
        self.request.body = io.BytesIO(self.request.body.read())

    def begin_next(self, *, now: float) -> None:
        """Wait for the next request. A part of it may already be received."""
        self._received[:0] = self._parser.unreader.take_buffered()
        self._searched = 0
        self.enter(Phase.IDLE, now=now)

    def _parse(self) -> None:
        size = len(self._received)
        try:
            self.request = next(self._parser)
        except (NoMoreData, StopIteration) as error:
            if size > MAX_HEAD:
                raise LimitRequestHeaders("max buffer headers") from error
            raise
        self._received[:0] = self._parser.unreader.take_buffered()
        codings = [value for name, value in self.request.headers if name == "TRANSFER-ENCODING"]
        if not is_supported(codings):
            raise UnsupportedTransferCoding(", ".join(codings))
        self._chunks = ChunkedBody()

    def _has_body(self) -> bool:
        reader = self.request.body.reader
        if isinstance(reader, LengthReader):
            size = reader.length
            is_complete = len(self._received) >= size
        else:
            is_complete = self._chunks.is_complete(self._received)
            size = 0 if is_complete else len(self._received)
        if size > MAX_BODY:
            raise BodyTooLargeError
        if self.request._expected_100_continue:
            # Sent here, so that gunicorn does not send it again.
            self.request._expected_100_continue = False
            if not is_complete:
                self.socket.send(_CONTINUE)
        return is_complete

    def _read_received(self) -> Iterator[bytes]:
        """Yield received bytes to the parser, for which empty bytes mean the end."""
        while True:
            data = bytes(self._received)
            self._received.clear()
            yield data


class ChunkedBody:
    """Finds the end of a chunked body. A malformed body is left to the parser to reject."""

    def __init__(self) -> None:
        self._next_chunk = 0
        """Offset of the next chunk, even if it isn't received yet."""

    def is_complete(self, data: bytearray) -> bool:
        """Return whether the parser needs no more bytes."""
        while self._next_chunk < len(data):
            end = data.find(b"\r\n", self._next_chunk)
            if end < 0:
                return len(data) - self._next_chunk > MAX_CHUNK_LINE
            digits = bytes(data[self._next_chunk : end]).partition(b";")[0].strip(b" \t")
            if not re.fullmatch(rb"[0-9A-Fa-f]{1,16}", digits):
                return True
            size = int(digits, 16)
            if size == 0:
                return data.find(b"\r\n\r\n", end) >= 0 or len(data) - end > MAX_HEAD
            self._next_chunk = end + 2 + size + 2
        return False
