"""Handling of a request to a provider: decide, log durably, keep in memory, then answer."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from weakref import WeakSet

import msgspec
import structlog
from aiohttp import web

from .config import Timings
from .log import Journal, Record
from .providers.base import IncomingRequest, Provider, RequestResult
from .recent_requests import RecentRequests
from .responses import send_response
from .webhooks import WebhookSender

log = structlog.get_logger(__name__)

SECRET_HEADERS = frozenset(
    {"authorization", "cookie", "proxy-authorization", "x-postmark-server-token"}
)
MAX_TEXT_LENGTH = 2_000
_NO_BODY = msgspec.Raw(b"null")
_NO_LINE_BREAKS = bytes.maketrans(b"\r\n", b"  ")


@dataclass(frozen=True, kw_only=True)
class ProviderRoute:
    """The HTTP handler of one provider."""

    provider: Provider
    webhook_sender: WebhookSender | None
    recent_requests: RecentRequests
    journal: Journal
    ids: Iterator[int]
    timings: Timings
    shutdown: asyncio.Event
    connections: WeakSet[asyncio.Transport]
    """The connections to all providers."""
    _own_connections: WeakSet[asyncio.Transport] = field(default_factory=WeakSet, init=False)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Write the request to the log, then answer as the provider does."""
        self._count_connection(request)
        try:
            body = await self._read_body(request)
        except ConnectionError:
            # The client disconnected in the middle of the request.
            return web.Response(status=HTTPStatus.BAD_REQUEST)
        incoming = IncomingRequest(
            method=request.method,
            path=request.path,
            query=request.query,
            headers={
                # Invalid UTF-8 is replaced, so that it can be logged.
                name.lower(): value.encode(errors="surrogateescape").decode(errors="replace")
                for name, value in request.headers.items()
            },
            body=body,
        )
        now = datetime.now(UTC)
        result = self.provider.handle(incoming, now=now)
        record = self._record(incoming, result, now=now)
        try:
            await self.journal.append(msgspec.json.encode(record))
        except OSError as error:
            log.warning("request_not_logged", request=record.id, reason=str(error))
            text = f"The sandbox cannot write its log: {error}"
            return web.Response(status=HTTPStatus.INSUFFICIENT_STORAGE, text=text)
        self.recent_requests.add(record, self.provider)
        if self.webhook_sender is not None:
            for event in result.events:
                self.webhook_sender.schedule(event, request_id=record.id, now=now)
        response = await send_response(
            request, result.response, timings=self.timings, shutdown=self.shutdown
        )
        if incoming.body is None:
            response.force_close()
        return response

    def _count_connection(self, request: web.Request) -> None:
        transport = request.transport
        if transport is None:
            return
        counts = self.recent_requests.counts
        own_counts = counts.of_provider(self.provider.name)
        for known, counters in ((self.connections, counts), (self._own_connections, own_counts)):
            counters.connections += transport not in known
            known.add(transport)

    async def _read_body(self, request: web.Request) -> bytes | None:
        if (request.content_length or 0) > self.provider.max_body:
            return None
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            return None
        return body if len(body) <= self.provider.max_body else None

    def _record(self, incoming: IncomingRequest, result: RequestResult, *, now: datetime) -> Record:
        raw, is_json = incoming.body or b"", result.is_json
        if result.logged_body is not None:
            raw, is_json = result.logged_body, True
        text = None if is_json else raw[: MAX_TEXT_LENGTH * 4].decode(errors="replace")
        return Record(
            id=next(self.ids),
            time=now,
            provider=self.provider.name,
            method=incoming.method,
            path=incoming.path,
            status=result.response.recorded_status,
            outcome=result.outcome,
            accepted=result.accepted,
            reason=result.reason,
            title=result.title,
            references=result.references,
            recipients=result.recipients,
            message_id=result.message_id,
            headers={
                name: value
                for name, value in incoming.headers.items()
                if name not in SECRET_HEADERS
            },
            # In JSON, line breaks occur only between tokens, where a space is equivalent.
            body=msgspec.Raw(raw.translate(_NO_LINE_BREAKS)) if is_json else _NO_BODY,
            text=text[:MAX_TEXT_LENGTH] if text else None,
            is_message=result.is_message,
        )
