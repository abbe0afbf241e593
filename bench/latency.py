"""A SendGrid, SES, Postmark, Twilio, or push service that accepts every request after a latency.

``python -m bench.latency PORT SECONDS PROVIDER`` runs it.
"""

import asyncio
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from notifyproject.stack import servers
from notifyproject.stack.servers import HOST, Server

BACKLOG = 4_096
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
ACCEPTED = {
    "sendgrid": b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nX-Message-Id: %b\r\n\r\n",
    "ses": b'HTTP/1.1 200 OK\r\nContent-Length: 38\r\n\r\n{"MessageId":"%b"}',
    "postmark": b"HTTP/1.1 200 OK\r\nContent-Length: 95\r\n\r\n"
    b'{"ErrorCode":0,"Message":"OK","MessageID":"%b","To":"somebody@example.com"}',
    "webpush": b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n"
    b"Location: https://push.example.com/m/%b\r\n\r\n",
    "twilio": b"HTTP/1.1 201 Created\r\nContent-Length: 62\r\n\r\n"
    b'{"sid":"SM0000000000%b","status":"queued"}',
}
"""The acceptance of each provider, with a message ID of 22 characters."""


@contextmanager
def run_sink(folder: Path, *, seconds: float, provider: str = "sendgrid") -> Iterator[str]:
    """Run the sink during the block; yield its URL."""
    port = servers.free_port()
    server = Server(
        name="latency-sink",
        command=[sys.executable, "-m", "bench.latency", str(port), str(seconds), provider],
        data_dir=folder,
        port=port,
        is_ready=lambda: not servers.is_free(port),
    )
    server.start()
    try:
        yield f"http://{HOST}:{port}"
    finally:
        server.stop()


class _Connection(asyncio.Protocol):
    """A connection to the sink; requests have a Content-Length."""

    def __init__(self, seconds: float, accepted: bytes) -> None:
        self._seconds, self._accepted = seconds, accepted
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            found = LENGTH.search(self._received, 0, end)
            size = end + 4 + (int(found[1]) if found else 0)
            if len(self._received) < size:
                return
            self._received = self._received[size:]
            asyncio.get_running_loop().call_later(self._seconds, self._answer)

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(self._accepted % secrets.token_hex(11).encode())


async def _serve(port: int, seconds: float, accepted: bytes) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Connection(seconds, accepted), HOST, port, backlog=BACKLOG
    )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1]), float(sys.argv[2]), ACCEPTED[sys.argv[3]]))
