"""Responses of providers, sent whole or with a network fault."""

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

MAX_STALL = 600.0
POLL_INTERVAL = 0.2
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class ResponseMode(StrEnum):
    """How a response reaches the client."""

    COMPLETE = "whole"
    SLOW = "slow"
    DRIPPING = "dripping"
    TRUNCATED = "truncated"
    STALLED = "stalled"
    RESET = "reset"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderResponse:
    """A provider's response."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    mode: ResponseMode = ResponseMode.COMPLETE

    @property
    def recorded_status(self) -> int | Literal["stalled", "reset"]:
        """The status as the request log records it."""
        if self.mode is ResponseMode.STALLED:
            return "stalled"
        return "reset" if self.mode is ResponseMode.RESET else self.status


async def send_response(
    request: web.Request, response: ProviderResponse, *, timings: Timings, shutdown: asyncio.Event
) -> web.Response:
    """Apply a response's mode; return the response, which aiohttp sends if still connected."""
    http_response = web.Response(
        status=response.status, body=response.body, headers=response.headers
    )
    transport = request.transport
    if transport is None:
        return http_response
    if timings.response:
        await _pause(timings.response, transport, shutdown)
    if response.mode is ResponseMode.COMPLETE:
        return http_response
    if response.mode is ResponseMode.SLOW:
        await _pause(timings.slow, transport, shutdown)
    elif response.mode is ResponseMode.STALLED:
        await _pause(MAX_STALL, transport, shutdown)
        transport.abort()
    elif response.mode is ResponseMode.RESET:
        connection: socket.socket = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        transport.abort()
    elif response.mode is ResponseMode.TRUNCATED:
        transport.write(_raw_response(response, missing_bytes=64))
        transport.close()
    elif response.mode is ResponseMode.DRIPPING:
        await _drip(
            _raw_response(response, missing_bytes=0), transport, timings=timings, shutdown=shutdown
        )
        transport.close()
    return http_response


async def _drip(
    raw: bytes, transport: asyncio.Transport, *, timings: Timings, shutdown: asyncio.Event
) -> None:
    for byte in raw:
        if transport.is_closing() or shutdown.is_set():
            return
        transport.write(bytes((byte,)))
        await _pause(timings.drip, transport, shutdown)


async def _pause(seconds: float, transport: asyncio.Transport, shutdown: asyncio.Event) -> None:
    """Wait until the time is over, the client disconnects, or the sandbox stops."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while not transport.is_closing() and not shutdown.is_set():
        left = end - loop.time()
        if left <= 0:
            return
        await asyncio.sleep(min(left, POLL_INTERVAL))


def _raw_response(response: ProviderResponse, *, missing_bytes: int) -> bytes:
    """Return an HTTP response as bytes, with a Content-Length ``missing_bytes`` too high."""
    lines = [
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}",
        *(f"{name}: {value}" for name, value in response.headers.items()),
        f"Content-Length: {len(response.body) + missing_bytes}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + response.body
