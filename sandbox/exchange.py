"""A request on a provider's route: judged, made durable, remembered, then answered."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from http import HTTPStatus
from weakref import WeakSet

import msgspec
import structlog
from aiohttp import web

from .config import Timings
from .copies import cases
from .log import Journal, Record
from .memory import Memory
from .providers.base import Incoming, Provider, Verdict
from .replies import deliver
from .webhooks import Outgoing

log = structlog.get_logger(__name__)

SECRET_HEADERS = frozenset({"authorization", "cookie", "proxy-authorization"})
LONGEST_TEXT = 2_000
"""Characters kept of a body that is not JSON."""
_NO_BODY = msgspec.Raw(b"null")


class ProviderRoute:
    """Everything under one provider's prefix."""

    def __init__(
        self,
        *,
        provider: Provider,
        outgoing: Outgoing | None,
        memory: Memory,
        journal: Journal,
        ids: Iterator[int],
        timings: Timings,
        stopping: asyncio.Event,
        connections: WeakSet[asyncio.Transport],
    ) -> None:
        self._provider = provider
        self._outgoing = outgoing
        self._memory = memory
        self._journal = journal
        self._ids = ids
        self._timings = timings
        self._stopping = stopping
        self._all_connections = connections
        self._connections: WeakSet[asyncio.Transport] = WeakSet()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer as the provider does, once the request is on disk."""
        self._count_connection(request)
        try:
            body = await self._body(request)
        except ConnectionError:
            # Half a request is none, and nobody is left to be answered.
            return web.Response(status=HTTPStatus.BAD_REQUEST)
        incoming = Incoming(
            method=request.method,
            path=request.path,
            query=request.query,
            headers={name.lower(): _text(value) for name, value in request.headers.items()},
            body=body,
        )
        now = datetime.now(UTC)
        verdict = self._provider.judge(incoming, now=now)
        record = self._record(incoming, verdict, now=now)
        try:
            await self._journal.append(msgspec.json.encode(record))
        except OSError as error:
            log.warning("request_not_logged", request=record.id, reason=str(error))
            text = f"The sandbox cannot write its log: {error}"
            return web.Response(status=HTTPStatus.INSUFFICIENT_STORAGE, text=text)
        self._memory.add(record, cases(self._provider, record))
        if self._outgoing is not None:
            for event in verdict.events:
                self._outgoing.plan(event, request_id=record.id, now=now)
        response = await deliver(
            request, verdict.reply, timings=self._timings, stopping=self._stopping
        )
        if incoming.body is None:
            response.force_close()
        return response

    def _count_connection(self, request: web.Request) -> None:
        transport = request.transport
        if transport is None:
            return
        counts = self._memory.counts
        if transport not in self._all_connections:
            self._all_connections.add(transport)
            counts.connections += 1
        if transport not in self._connections:
            self._connections.add(transport)
            counts.at(self._provider.name).connections += 1

    async def _body(self, request: web.Request) -> bytes | None:
        """Return the body; None for one that is larger than the provider takes."""
        if (request.content_length or 0) > self._provider.max_body:
            return None
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return None
        return body if len(body) <= self._provider.max_body else None

    def _record(self, incoming: Incoming, verdict: Verdict, *, now: datetime) -> Record:
        raw = incoming.body or b""
        is_json = verdict.is_json
        if verdict.logged is not None:
            raw, is_json = verdict.logged, True
        return Record(
            id=next(self._ids),
            time=now,
            provider=self._provider.name,
            method=incoming.method,
            path=incoming.path,
            status=verdict.reply.recorded_status,
            outcome=verdict.outcome,
            accepted=verdict.accepted,
            reason=verdict.reason,
            title=verdict.title,
            references=verdict.references,
            recipients=verdict.recipients,
            message_id=verdict.message_id,
            headers={
                name: value
                for name, value in incoming.headers.items()
                if name not in SECRET_HEADERS
            },
            # A line break can only stand between JSON's tokens: a space means the same.
            body=msgspec.Raw(raw.translate(_NO_LINE_BREAKS)) if is_json else _NO_BODY,
            text=None if is_json or not raw else _beginning(raw),
            is_message=verdict.is_message,
        )


_NO_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")


def _text(value: str) -> str:
    """Return a header's value with bytes that are no UTF-8 replaced, so that it can be logged."""
    return (
        value
        if value.isascii()
        else value.encode(errors="surrogateescape").decode("utf-8", "replace")
    )


def _beginning(raw: bytes) -> str:
    return raw[: LONGEST_TEXT * 4].decode(errors="replace")[:LONGEST_TEXT]
