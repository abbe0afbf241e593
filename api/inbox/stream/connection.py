"""One request for a stream and its answer, in the words of ASGI."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
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
    """One request and its answer."""

    method: str
    path: str
    query: bytes
    headers: Mapping[str, str]
    receive: Receive
    send: Send
    patience: float
    request_id: str
    is_left: bool = field(default=False)
    """The client has gone."""

    @classmethod
    def of(cls, scope: Scope, receive: Receive, send: Send, patience: float) -> "StreamConnection":
        """Return the exchange of an ASGI call."""
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
            receive=receive,
            send=send,
            patience=patience,
            request_id=request_id(headers.get(HEADER, "")),
        )

    async def until_left(self, bell: asyncio.Event) -> None:
        """Ring the bell when the client has gone."""
        while (await self.receive())["type"] != "http.disconnect":
            pass
        self.is_left = True
        bell.set()

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Send the head of the answer."""
        shown = {
            **headers,
            **cors.headers(self.method, self.headers),
            "Cache-Control": "no-store",
            HEADER: self.request_id,
        }
        pairs = [(name.lower().encode(), value.encode()) for name, value in shown.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": pairs})

    async def write(self, body: bytes, *, is_last: bool = False) -> None:
        """Send part of the answer; raises TimeoutError if the client does not read."""
        part = {"type": "http.response.body", "body": body, "more_body": not is_last}
        async with asyncio.timeout(self.patience):
            await self.send(part)

    async def refuse(self, problem: ApiError) -> None:
        """Answer with a problem."""
        request = HttpRequest()
        request.path, request.request_id = self.path, self.request_id
        body = msgspec.json.encode(problem.body(request))
        length = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body))}
        await self.start(problem.status, {**length, **problem.headers})
        await self.write(body, is_last=True)
