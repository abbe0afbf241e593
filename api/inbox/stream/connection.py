"""One HTTP connection of a stream, over ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import msgspec
from django.http import HttpRequest
from django.utils.datastructures import CaseInsensitiveMapping

from notifyproject.platform.middleware import HEADER, request_id

from ...http.problems import MEDIA_TYPE, ApiError
from .. import cors

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class StreamConnection:
    """The ASGI request for an inbox stream, and methods that send the response."""

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]
    peer: str
    """IP address of the other end, which may be a proxy."""
    receive: Receive
    send: Send
    write_timeout: float
    request_id: str
    is_disconnected: bool = False

    @classmethod
    def from_scope(
        cls, scope: Scope, receive: Receive, send: Send, write_timeout: float
    ) -> "StreamConnection":
        """Return the connection of an ASGI call."""
        pairs: dict[str, str] = {}
        for raw_name, raw_value in scope["headers"]:
            name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
            pairs[name] = f"{pairs[name]}, {value}" if name in pairs else value
        headers = CaseInsensitiveMapping(pairs)
        return cls(
            method=scope["method"],
            path=scope["path"],
            query=scope["query_string"],
            headers=headers,
            peer=(scope.get("client") or ("",))[0],
            receive=receive,
            send=send,
            write_timeout=write_timeout,
            request_id=request_id(headers.get(HEADER, "")),
        )

    @property
    def meta(self) -> dict[str, str]:
        """The WSGI variables from which the client's address is found."""
        forwarded = self.headers.get("X-Forwarded-For", "")
        return {"REMOTE_ADDR": self.peer, "HTTP_X_FORWARDED_FOR": forwarded}

    async def wait_for_disconnect(self, wakeup: asyncio.Event) -> None:
        """Set ``is_disconnected`` and the wake-up when the client disconnects."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.is_disconnected = True
        wakeup.set()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the response's status and headers."""
        all_headers = {
            **headers,
            **cors.response_headers(self.method, self.headers),
            "Cache-Control": "no-store",
            HEADER: self.request_id,
        }
        pairs = [(name.lower().encode(), value.encode()) for name, value in all_headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})

    async def write(self, body: bytes, *, is_last: bool = False) -> None:
        """Send part of the body. Raises TimeoutError if the client doesn't read."""
        part = {"type": "http.response.body", "body": body, "more_body": not is_last}
        async with asyncio.timeout(self.write_timeout):
            await self.send(part)

    async def send_problem(self, problem: ApiError) -> None:
        """Respond with a problem."""
        request = HttpRequest()
        request.path, request.request_id = self.path, self.request_id
        body = msgspec.json.encode(problem.body(request))
        body_headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body))}
        await self.start(problem.status, {**body_headers, **problem.headers})
        await self.write(body, is_last=True)
