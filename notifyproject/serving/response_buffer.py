"""Response buffer for a client that may read slowly."""

import mmap
import select
import socket
from collections import deque
from typing import Any

FLUSH_BYTES = 64 * 1024
"""Bytes that are sent together. Fewer wait for the end of the response."""
MAX_UNSENT = 1024 * 1024
"""Unsent bytes of a streamed response, beyond which the thread waits for the client."""


class ResponseBuffer:
    """The object that gunicorn writes a response to, in place of the socket."""

    def __init__(self, client: socket.socket, *, seconds: float) -> None:
        self._socket = client
        self._seconds = seconds
        self._parts: deque[memoryview] = deque()
        self.buffered = 0
        self.sent = 0

    def sendall(self, data: bytes) -> None:
        """Buffer bytes; wait for the client only if too many are unsent."""
        if not data:
            return
        if self.buffered > MAX_UNSENT:
            self._wait_for_client()
        self._parts.append(memoryview(data))
        self.buffered += len(data)
        if self.buffered >= FLUSH_BYTES:
            self.flush()

    def sendfile(self, file: Any, offset: int = 0, count: int | None = None) -> None:
        """Buffer a part of a file, mapped from the page cache that all clients share."""
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._parts.append(memoryview(mapped)[offset : None if count is None else offset + count])

    def flush(self) -> bool:
        """Send as much as the kernel accepts; return whether nothing is left. Raises OSError."""
        while self._parts:
            parts = [self._parts[index] for index in range(min(len(self._parts), 16))]
            try:
                sent = self._socket.sendmsg(parts)
            except BlockingIOError:
                return False
            self._discard_sent(sent)
        return True

    def _discard_sent(self, count: int) -> None:
        self.sent += count
        while count:
            part = self._parts.popleft()
            rest = part[count:]
            count -= len(part) - len(rest)
            is_mapped = isinstance(part.obj, mmap.mmap)
            if not is_mapped:
                self.buffered -= len(part) - len(rest)
            if len(rest):
                self._parts.appendleft(rest)

    def _wait_for_client(self) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLOUT)
        while not self.flush() and self.buffered > MAX_UNSENT:
            if not poll.poll(self._seconds * 1_000):
                raise TimeoutError("the client does not read its response")

    def recv(self, _size: int) -> bytes:
        """Return the end of input: the request is complete before a thread handles it."""
        return b""

    def gettimeout(self, *_args: Any) -> None:
        """Do nothing: :class:`.connection.Connection` controls the socket."""

    settimeout = setblocking = shutdown = close = gettimeout
