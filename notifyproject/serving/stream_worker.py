"""gunicorn worker for ASGI streams. It ends streams at shutdown."""

import asyncio
import uuid
from http import HTTPStatus
from typing import Any, cast

import structlog
from gunicorn.asgi.parser import UnsupportedTransferCoding
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers.gasgi import ASGIWorker

from ..platform import refusal
from ..settings import environment
from . import refusals
from .connection import HEAD_END, MAX_HEAD, is_supported, raise_file_limit

log = structlog.get_logger(__name__)


class StreamWorker(ASGIWorker):
    """Closes its streams at SIGTERM. Handles a connection from the head of its first request on."""

    def init_process(self) -> None:
        """Raise the limit of open files, and run."""
        self._max_files = raise_file_limit()
        super().init_process()

    def handle_exit_signal(self) -> None:
        """Stop accepting requests, and close the streams."""
        super().handle_exit_signal()
        self._stop_task = self.loop.create_task(self.asgi.stop())

    def _setup_event_loop(self) -> None:
        with refusal.shown_alone():
            env = environment.current()
        self.loop = HeadBufferingLoop(
            worker=self,
            seconds=env.WEB_CLIENT_SECONDS,
            max_waiting=min(env.WEB_CONNECTIONS, self._max_files),
        )
        asyncio.set_event_loop(self.loop)


class HeadBufferingLoop(asyncio.SelectorEventLoop):
    """Passes a connection to its protocol once the head of its first request is complete."""

    def __init__(self, *, worker: StreamWorker, seconds: float, max_waiting: int) -> None:
        super().__init__()
        self.worker = worker
        self.seconds = seconds
        self._max_waiting = max_waiting
        self._waiting: dict[HeadBufferingProtocol, None] = {}

    async def create_server(self, protocol_factory: Any, *args: Any, **kwargs: Any) -> Any:
        """Start a server whose connections buffer the head first."""
        return await super().create_server(
            lambda: HeadBufferingProtocol(loop=self), *args, **kwargs
        )

    def add(self, connection: "HeadBufferingProtocol") -> None:
        """Add a connection without a complete head; beyond the limit, drop the oldest."""
        self._waiting[connection] = None
        if len(self._waiting) > self._max_waiting:
            next(iter(self._waiting)).abort()

    def remove(self, connection: "HeadBufferingProtocol") -> None:
        """Stop waiting for the head of a request: it is complete, or its connection is closed."""
        self._waiting.pop(connection, None)


class HeadBufferingProtocol(asyncio.Protocol):
    """Buffers a connection until the head of its first request is complete."""

    def __init__(self, *, loop: HeadBufferingLoop) -> None:
        self._loop = loop
        self._head = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the timer."""
        self._transport = cast("asyncio.Transport", transport)
        self._timer = self._loop.call_later(self._loop.seconds, self._read_once_more)
        self._loop.add(self)

    def data_received(self, data: bytes) -> None:
        """Pass the connection on when the head is complete or too long."""
        searched = max(0, len(self._head) - 2)
        self._head += data
        if HEAD_END.search(self._head, searched) or len(self._head) > MAX_HEAD:
            self._stop_waiting()
            protocol = StreamProtocol(self._loop.worker)
            self._transport.set_protocol(protocol)
            protocol.connection_made(self._transport)
            protocol.data_received(bytes(self._head))

    def connection_lost(self, _error: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()

    def abort(self) -> None:
        """Drop the connection in favor of another."""
        self._stop_waiting()
        self._transport.abort()

    def _read_once_more(self) -> None:
        # After a pause of the process, the time is over before the loop has read what came.
        self._timer = self._loop.call_later(0, self._refuse)

    def _refuse(self) -> None:
        self._stop_waiting()
        if self._head:
            self._transport.write(_refuse(refusals.refusal_of(refusals.ClientTooSlowError())))
        self._transport.close()

    def _stop_waiting(self) -> None:
        self._timer.cancel()
        self._loop.remove(self)


class StreamProtocol(ASGIProtocol):
    """Answers errors of a request as problem documents, and speaks no WebSocket."""

    def _on_headers_complete(self) -> bool:
        headers = self._callback_parser.headers
        codings = [v.decode("latin-1") for name, v in headers if name == b"transfer-encoding"]
        if not is_supported(codings):
            raise UnsupportedTransferCoding(", ".join(codings))
        return bool(super()._on_headers_complete())

    def _send_error_response(self, status: int, message: str, extra_headers: Any = ()) -> None:
        self._safe_write(_refuse(refusals.refusal_with(status)))

    def _is_websocket_upgrade(self, request: Any) -> bool:
        # Servers may ignore an upgrade. The app then answers an ordinary request.
        return False


def _refuse(refusal: refusals.Refusal) -> bytes:
    """Log a refusal and return the response."""
    request_id, status, reason = uuid.uuid4().hex, refusal.status, refusal.code
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        # gunicorn logs the traceback, just before or after.
        log.error("web_request_failed", request_id=request_id, status=status, reason=reason)
    else:
        log.info("web_request_refused", request_id=request_id, status=status, reason=reason)
    return refusal.as_bytes(request_id=request_id)
