"""Answers, and the ways a network or a provider can spoil them."""

import asyncio
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from http import HTTPStatus
from typing import Literal

from aiohttp import web

from .config import Timings

LONGEST_STALL = 600.0
"""A client that waits without end is let go after this many seconds."""
LOOK_AGAIN = 0.2
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Manner(StrEnum):
    """How an answer reaches the client."""

    WHOLE = "whole"
    SLOW = "slow"
    DRIPPING = "dripping"
    TRUNCATED = "truncated"
    STALLED = "stalled"
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer as the provider would give it."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    manner: Manner = Manner.WHOLE

    @property
    def recorded_status(self) -> int | Literal["stalled", "reset"]:
        """What the log says the client got."""
        if self.manner is Manner.STALLED:
            return "stalled"
        return "reset" if self.manner is Manner.RESET else self.status


async def deliver(
    request: web.Request, reply: Reply, *, timings: Timings, stopping: asyncio.Event
) -> web.Response:
    """Answer a request in the reply's own manner.

    Where the connection is gone afterwards, the response that is returned goes nowhere.
    """
    response = web.Response(status=reply.status, body=reply.body, headers=reply.headers)
    transport = request.transport
    if reply.manner is Manner.WHOLE or transport is None:
        return response
    if reply.manner is Manner.SLOW:
        await _pause(timings.slow, transport, stopping)
    elif reply.manner is Manner.STALLED:
        await _pause(LONGEST_STALL, transport, stopping)
        transport.abort()
    elif reply.manner is Manner.RESET:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()
    elif reply.manner is Manner.TRUNCATED:
        transport.write(_raw(reply, promised=64))
        transport.close()
    elif reply.manner is Manner.DRIPPING:
        await _drip(_raw(reply, promised=0), transport, timings=timings, stopping=stopping)
        transport.close()
    return response


async def _drip(
    raw: bytes, transport: asyncio.Transport, *, timings: Timings, stopping: asyncio.Event
) -> None:
    for byte in raw:
        if transport.is_closing() or stopping.is_set():
            return
        transport.write(bytes((byte,)))
        await _pause(timings.drip, transport, stopping)


async def _pause(seconds: float, transport: asyncio.Transport, stopping: asyncio.Event) -> None:
    """Wait, but not for a client that has gone nor when the sandbox stops."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not transport.is_closing() and not stopping.is_set():
        left = end - loop.time()
        if left <= 0:
            return
        await asyncio.sleep(min(left, LOOK_AGAIN))


def _raw(reply: Reply, *, promised: int) -> bytes:
    """Return the answer's bytes, with a length that promises ``promised`` more than there are."""
    lines = [
        f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}",
        *(f"{name}: {value}" for name, value in reply.headers.items()),
        f"Content-Length: {len(reply.body) + promised}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + reply.body
