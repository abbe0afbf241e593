"""Inbox streams over HTTP, for a browser."""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from notifyproject.stack.servers import HOST
from tests.support.clients.sse import BY_WAKEUP, Process, process


@contextmanager
def served_streams() -> Iterator[str]:
    """Serve the streams at a free port. Yield the origin."""
    with process(timing=BY_WAKEUP) as streams:

        async def listen() -> asyncio.Server:
            return await asyncio.start_server(
                lambda reader, writer: _serve(streams, reader, writer), HOST, 0
            )

        server = streams.run(listen())
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        streams.loop.call_soon_threadsafe(server.close)


async def _serve(
    streams: Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    path, _, query = target.partition("?")
    fields = [line.partition(":") for line in head[1:] if line]
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "client": writer.get_extra_info("peername"),
        "headers": [(n.lower().encode(), v.strip().encode("latin-1")) for n, _, v in fields],
    }

    async def receive() -> dict[str, Any]:
        await reader.read()
        return {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            writer.write(f"HTTP/1.1 {message['status']} -\r\nConnection: close\r\n".encode())
            for name, value in message["headers"]:
                writer.write(name + b": " + value + b"\r\n")
            writer.write(b"\r\n")
        else:
            writer.write(message["body"])
        await writer.drain()

    with contextlib.suppress(ConnectionError):
        await streams.streams(scope, receive, send)
        writer.close()
