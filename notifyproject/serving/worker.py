"""gunicorn worker for the web. Design: docs/decisions/0029-slow-clients.md, 0054-lock-step.md.

One poller receives requests and sends responses for all clients without waiting for any. Threads
only run Django, on complete requests: a thread for one, or for several light ones together.
"""

import errno
import selectors
import time
import uuid
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any

import structlog
from gunicorn.workers.gthread import STOP_KEEPALIVE_LINGER, ThreadWorker

from ..lockstep import LockStep
from ..platform import memory, refusal
from ..settings import environment
from . import refusals
from .connection import Connection, Limits, Phase, raise_file_limit

log = structlog.get_logger(__name__)
SWEEP_SECONDS = 0.5
MAX_BUFFERED = 256 * 1024 * 1024
"""Bytes of memory for incomplete requests and unread responses, in one process."""
MAX_TOGETHER = 32
"""Requests that run together in one thread."""
PATIENCE = 0.05
"""Seconds for which light requests wait for those that run together."""
GATHER_SECONDS = 0.002
"""Seconds after an end in which as many requests as before may come, to run together."""
MIN_RATE = 1_000.0
"""Bytes per second; a slower client is disconnected."""
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class Handled:
    """A connection whose request a thread has handled."""

    connection: Connection
    is_keepalive: bool = False
    error: BaseException | None = None


class WebWorker(ThreadWorker):
    """Receives and sends for all clients without waiting for any."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        with refusal.shown_alone():
            env = environment.current()
        self._max_connections = env.WEB_CONNECTIONS
        self._limits = Limits(
            seconds=env.WEB_CLIENT_SECONDS, rate=MIN_RATE, idle=float(self.cfg.keepalive)
        )
        self._waiting: dict[Connection, None] = {}
        """Connections without a thread, longest wait first."""
        self._sweep_at = 0.0
        self._gathered: deque[Connection] = deque()
        """Complete light requests without a thread."""
        self._step = 0
        """Number of the newest requests that run together."""
        self._is_stepping = False
        self._step_began = self._step_ended = 0.0
        self._expected = 1
        """Requests that may come soon: as many as last, or a little less than before."""

    @classmethod
    def check_config(cls, cfg: Any, log: Any) -> None:
        """Reject TLS and other protocols, which a proxy handles. Raises ValueError."""
        super().check_config(cfg, log)
        if cfg.is_ssl or cfg.protocol != "http":
            raise ValueError("The web speaks plain HTTP: TLS is for the proxy in front of it.")

    def init_process(self) -> None:
        """Raise the limit of open files, and run."""
        # Here, because a fork of the arbiter has none of its threads.
        memory.start_releasing()
        # A response from a file uses two open files.
        self.worker_connections = min(self._max_connections, raise_file_limit() // 2)
        super().init_process()

    def accept(self, listener: Any) -> None:
        """Accept a client; at the limit, drop the one that has waited longest."""
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno in OUT_OF_FILES:
                self._drop_oldest()
            elif error.errno not in (errno.EAGAIN, errno.ECONNABORTED):
                raise
            return
        self.nr_conns += 1
        connection = Connection(
            client=client,
            address=address,
            server=listener.getsockname(),
            config=self.cfg,
            limits=self._limits,
        )
        self._wait_for(connection, Phase.IDLE, selectors.EVENT_READ)
        # Stay below gunicorn's limit, at which gunicorn stops accepting.
        if self.nr_conns >= self.worker_connections:
            self._drop_oldest()

    def wait_for_and_dispatch_events(self, timeout: float) -> None:
        """Poll once, and run the light requests that are complete by now."""
        wait = self._gathering_seconds() if self._gathered else timeout
        super().wait_for_and_dispatch_events(min(timeout, wait))
        while self._gathered and not self._gathering_seconds():
            count = min(len(self._gathered), MAX_TOGETHER)
            self._run_together([self._gathered.popleft() for _ in range(count)])

    def _gathering_seconds(self) -> float:
        """Return for how long the gathered requests may wait for others."""
        if self._is_stepping:
            ends_at = self._step_began + PATIENCE
        elif len(self._gathered) < self._expected:
            ends_at = self._step_ended + GATHER_SECONDS
        else:
            return 0.0
        return max(ends_at - time.monotonic(), 0.0)

    def _run_together(self, connections: list[Connection]) -> None:
        self._step += 1
        self._is_stepping, self._step_began = True, time.monotonic()
        self._expected = max(len(connections), self._expected - 1)
        self.tpool.submit(self._handle_together, connections, self._step)

    def _handle_together(self, connections: list[Connection], number: int) -> None:
        """Handle requests in a thread, and return their connections to the poller.

        The poller sends the responses of several. Sent from here, each would bring the next
        request, and with it the poller, in the middle of the others.
        """
        respond = self._respond if len(connections) > 1 else self.handle
        handled: list[Handled] = []

        def handle(connection: Connection) -> None:
            try:
                request = Handled(connection, is_keepalive=respond(connection))
            except BaseException as error:
                request = Handled(connection, error=error)
            handled.append(request)

        if len(connections) == 1:
            handle(connections[0])
        else:
            step = LockStep([partial(handle, connection) for connection in connections])
            try:
                while step.run():
                    # Those that rest take longer.
                    self.method_queue.defer(self._finish, handled)
                    handled = []
            except Exception:
                log.exception("web_step_failed", requests=len(connections))
                step.run_alone()
        self.method_queue.defer(self._finish, handled, number)

    def _finish(self, handled: list[Handled], number: int | None = None) -> None:
        """Send responses, and note that a step has ended. Called in the poller."""
        if number == self._step:
            self._is_stepping, self._step_ended = False, time.monotonic()
        for request in handled:
            self._finish_one(request)

    def handle(self, conn: Connection) -> bool:
        """Handle a request in a thread; return whether the connection stays open."""
        is_keepalive = self._respond(conn)
        conn.sock.flush()
        return is_keepalive

    def _respond(self, conn: Connection) -> bool:
        """Put the response into the connection's buffer."""
        try:
            conn.read_body()
            return self.handle_request(conn.request, conn)
        except StopIteration:
            # The request failed after the response had started, which gunicorn has logged.
            return False
        except OSError as error:
            log.info("web_client_disconnected", reason=type(error).__name__)
            return False
        except Exception as error:
            self.handle_error(conn.request, conn.sock, conn.client, error)
            return False

    def handle_error(self, req: Any, client: Any, addr: Any, exc: BaseException) -> None:
        """Send an error response. gunicorn passes the parameters by name."""
        refusal = refusals.refusal_of(exc)
        request_id, status, reason = uuid.uuid4().hex, refusal.status, type(exc).__name__
        if refusal.status == HTTPStatus.INTERNAL_SERVER_ERROR:
            log.error(
                "web_request_failed",
                request_id=request_id,
                status=status,
                reason=reason,
                exc_info=exc,
            )
        else:
            log.info("web_request_refused", request_id=request_id, status=status, reason=reason)
        client.sendall(refusal.as_bytes(request_id=request_id))

    def finish_request(self, conn: Connection, fs: Future[bool]) -> None:
        """Send the response of a thread. Called in the poller."""
        if fs.cancelled():
            self._close(conn)
        elif (error := fs.exception()) is not None:
            self._finish_one(Handled(conn, error=error))
        else:
            self._finish_one(Handled(conn, is_keepalive=fs.result()))

    def _finish_one(self, handled: Handled) -> None:
        connection, error = handled.connection, handled.error
        if error is not None:
            if not isinstance(error, OSError):
                log.error("web_request_failed", reason=type(error).__name__, exc_info=error)
            self._close(connection)
            return
        connection.is_keepalive = handled.is_keepalive
        self._send(connection)

    def murder_keepalived(self, force: bool = False) -> None:
        """Close expired connections, or all. gunicorn calls this after each poll."""
        now = time.monotonic()
        if now < self._sweep_at and not force:
            return
        self._sweep_at = now + SWEEP_SECONDS
        for connection in [
            connection for connection in self._waiting if force or connection.deadline() <= now
        ]:
            if not force:
                # What came since the poll counts: the process may have been paused in between.
                self._on_event(connection, None)
                if connection not in self._waiting or connection.deadline() > now:
                    continue
            is_partial = connection.phase in (Phase.HEAD, Phase.BODY)
            if is_partial and not force and self.alive:
                self._refuse(connection, refusals.ClientTooSlowError())
            else:
                self._close(connection)
        self._free_memory()

    def _cap_keepalive(self, deadline: float) -> None:
        """At shutdown, set a deadline for connections that aren't sending a response."""
        for connection in self._waiting:
            if connection.phase is not Phase.RESPONSE:
                connection.hard_deadline = deadline

    def _on_event(self, connection: Connection, _file: Any) -> None:
        # The connection may have closed since the poll.
        if connection not in self._waiting:
            return
        if connection.phase is Phase.RESPONSE:
            self._send(connection)
        else:
            self._receive(connection)

    def _receive(self, connection: Connection) -> None:
        try:
            size = connection.receive()
        except BlockingIOError:
            return
        except OSError:
            size = 0
        if not size:
            self._close(connection)
        elif connection.phase is not Phase.LINGER:
            self._proceed(connection)

    def _proceed(self, connection: Connection) -> None:
        phase = connection.phase
        try:
            is_complete = connection.has_request(now=time.monotonic())
        except refusals.REFUSED as error:
            self._refuse(connection, error)
        except OSError:
            self._close(connection)
        except Exception as error:
            # A defect must not end the process for all other clients.
            self._refuse(connection, error)
        else:
            if is_complete:
                self._stop_polling(connection)
                connection.enter(Phase.PROCESSING, now=time.monotonic())
                if connection.is_light():
                    self._gathered.append(connection)
                else:
                    self.enqueue_req(connection)
            elif connection.phase is not phase or not connection.events:
                self._poll_for(connection, selectors.EVENT_READ)

    def _refuse(self, connection: Connection, error: BaseException) -> None:
        connection.is_keepalive = False
        self.handle_error(None, connection.sock, connection.client, error)
        self._send(connection)

    def _send(self, connection: Connection) -> None:
        try:
            is_sent = connection.sock.flush()
        except OSError:
            self._close(connection)
            return
        if not is_sent:
            if connection.phase is not Phase.RESPONSE:
                self._wait_for(connection, Phase.RESPONSE, selectors.EVENT_WRITE)
        elif connection.is_keepalive:
            now = time.monotonic()
            connection.begin_next(now=now)
            if not self.alive:
                connection.hard_deadline = now + STOP_KEEPALIVE_LINGER
            self._proceed(connection)
        else:
            self._linger(connection)

    def _linger(self, connection: Connection) -> None:
        """Half-close: otherwise a client that still sends would lose the response."""
        try:
            connection.socket.shutdown(1)
        except OSError:
            self._close(connection)
            return
        self._wait_for(connection, Phase.LINGER, selectors.EVENT_READ)

    def _wait_for(self, connection: Connection, phase: Phase, events: int) -> None:
        connection.enter(phase, now=time.monotonic())
        self._poll_for(connection, events)

    def _poll_for(self, connection: Connection, events: int) -> None:
        self._waiting.pop(connection, None)
        self._waiting[connection] = None
        if connection.events == events:
            return
        callback: Callable[[Any], None] = partial(self._on_event, connection)
        if connection.events:
            self.poller.modify(connection.socket, events, callback)
        else:
            self.poller.register(connection.socket, events, callback)
        connection.events = events

    def _stop_polling(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)
        if connection.events:
            self.poller.unregister(connection.socket)
            connection.events = 0

    def _close(self, connection: Connection) -> None:
        self._stop_polling(connection)
        self.nr_conns -= 1
        connection.socket.close()

    def _drop_oldest(self) -> None:
        if self._waiting:
            self._close(next(iter(self._waiting)))

    def _free_memory(self) -> None:
        buffered = {
            connection: connection.buffered for connection in self._waiting if connection.buffered
        }
        total = sum(buffered.values())
        for connection in sorted(buffered, key=buffered.__getitem__, reverse=True):
            if total <= MAX_BUFFERED:
                return
            total -= buffered[connection]
            self._close(connection)
