"""A provider that takes everything at once: an HTTP server that does as little as it can.

``python -m bench.sink PORT``. Every request gets 202 and a new X-Message-Id.
"""

import asyncio
import itertools
import sys

_ids = itertools.count(1)


class _Sink(asyncio.Protocol):
    """Reads requests by their Content-Length and answers each."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (head_end := self._buffer.find(b"\r\n\r\n")) >= 0:
            end = head_end + 4 + _content_length(self._buffer[:head_end])
            if len(self._buffer) < end:
                return
            self._buffer = self._buffer[end:]
            self._transport.write(
                b"HTTP/1.1 202 Accepted\r\nX-Message-Id: %d\r\nContent-Length: 0\r\n\r\n"
                % next(_ids)
            )


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Sink, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
