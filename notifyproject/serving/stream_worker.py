"""gunicorn's ASGI worker for streams, which do not end by themselves when they are asked to."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from gunicorn.workers.gasgi import ASGIWorker

from ..settings import environment
from . import refusals
from .connection import HEAD_END, MAX_HEAD, raise_file_limit

ProtocolFactory = Callable[[], asyncio.Protocol]


class StreamWorker(ASGIWorker):
    """Ends its streams at SIGTERM, in order, instead of waiting for them and then cutting them.

    gunicorn sees a connection when a request's head is here: its own worker would wait for one
    for as long as the client likes.
    """

    def init_process(self) -> None:
        """Make room for as many clients as there may be, and run."""
        self._max_files = raise_file_limit()
        super().init_process()

    def handle_exit_signal(self) -> None:
        """Stop taking requests, and end the streams."""
        super().handle_exit_signal()
        self._stop_task = self.loop.create_task(self.asgi.stop())

    def _setup_event_loop(self) -> None:
        env = environment.current()
        self.loop = HeadBufferingLoop(
            seconds=env.WEB_CLIENT_SECONDS, max_waiting=min(env.WEB_CONNECTIONS, self._max_files)
        )
        asyncio.set_event_loop(self.loop)


class HeadBufferingLoop(asyncio.SelectorEventLoop):
    """Gives a server's connections to its protocol when they have sent a request's head."""

    def __init__(self, *, seconds: float, max_waiting: int) -> None:
        super().__init__()
        self.seconds = seconds
        self._max_waiting = max_waiting
        self._waiting: dict[HeadBufferingProtocol, None] = {}

    async def create_server(self, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
        """Start a server as asyncio does."""
        return await super().create_server(
            lambda: HeadBufferingProtocol(loop=self, protocol_factory=protocol_factory),
            *args,
            **kwargs,
        )

    def add(self, connection: "HeadBufferingProtocol") -> None:
        """Count a connection that has sent no head yet; with too many, the oldest goes."""
        self._waiting[connection] = None
        if len(self._waiting) > self._max_waiting:
            next(iter(self._waiting)).abort()

    def remove(self, connection: "HeadBufferingProtocol") -> None:
        """Forget a connection that is over, or has sent its head."""
        self._waiting.pop(connection, None)


class HeadBufferingProtocol(asyncio.Protocol):
    """A connection that has yet to send the head of its first request."""

    def __init__(self, *, loop: HeadBufferingLoop, protocol_factory: ProtocolFactory) -> None:
        self._loop = loop
        self._protocol_factory = protocol_factory
        self._head = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to wait."""
        self._transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(self._loop.seconds, self._refuse)
        self._loop.add(self)

    def data_received(self, data: bytes) -> None:
        """Hand the connection over when the head is complete, or longer than it may be."""
        searched = max(0, len(self._head) - 2)
        self._head += data
        if HEAD_END.search(self._head, searched) or len(self._head) > MAX_HEAD:
            self._stop_waiting()
            protocol = self._protocol_factory()
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(bytes(self._head))

    def connection_lost(self, _error: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()

    def abort(self) -> None:
        """Make room for another."""
        self._stop_waiting()
        self._transport.abort()

    def _refuse(self) -> None:
        self._stop_waiting()
        if self._head:
            refusal = refusals.refusal_of(refusals.ClientTooSlowError())
            request_id = refusals.new_request_id()
            self._transport.write(refusal.as_bytes(request_id=request_id))
        self._transport.close()

    def _stop_waiting(self) -> None:
        self._timer.cancel()
        self._loop.remove(self)
