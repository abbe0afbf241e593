"""The wake-up subscriber: pings, reconnects, and the connection limit."""

import socket
import threading
from typing import Any

import pytest
import redis

from api.http.problems import ApiError
from api.inbox.stream import subscriptions
from api.inbox.stream.subscriptions import CLIENT_NAME, ConnectionLimiter
from tests.support.clients.api import App
from tests.support.clients.inbox import token
from tests.support.clients.sse import BY_WAKEUP, process
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "PING_AFTER", 0.02)
    monkeypatch.setattr(subscriptions, "RECONNECT_DELAY", 0.02)


class SilentValkey:
    """A Valkey that answers a subscription and then nothing more."""

    def __init__(self) -> None:
        self.connections = 0
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listening.getsockname()[1]}/0"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        kept = []
        while True:
            connection, _ = self._listening.accept()
            kept.append(connection)
            self.connections += 1
            threading.Thread(target=self._talk, args=[connection], daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        while asked := connection.recv(4_096):
            if b"SUBSCRIBE" in asked:
                connection.sendall(b"*3\r\n$9\r\nsubscribe\r\n$5\r\ninbox\r\n:1\r\n")
            elif b"PING" not in asked:
                connection.sendall(b"+OK\r\n" * asked.count(b"*"))


def test_idle_connection_is_pinged(app: App, broker: redis.Redis) -> None:
    def last_commands() -> set[str]:
        return {client["cmd"] for client in broker.client_list() if client["name"] == CLIENT_NAME}

    with process(timing=BY_WAKEUP) as streams, streams.open(token(app)):
        streams.connected()
        until(lambda: "ping" in last_commands())
        streams.connected()


def test_silent_valkey_is_reconnected(app: App, settings: Any) -> None:
    silent = SilentValkey()
    settings.REDIS_URL = silent.url
    with process(timing=BY_WAKEUP) as streams, streams.open(token(app)):
        streams.connected()
        until(lambda: silent.connections >= 3)


@pytest.fixture
def limiter() -> ConnectionLimiter:
    return ConnectionLimiter(max_connections=3)


def test_released_place_is_reused(limiter: ConnectionLimiter) -> None:
    with limiter.acquire("a"), limiter.acquire("b"):
        with limiter.acquire("a"):
            for user in ("a", "c"):
                with pytest.raises(ApiError) as refused, limiter.acquire(user):
                    pass
                assert refused.value.code == "too_many_streams"
        with limiter.acquire("c"):
            pass
    assert not limiter._in_use, "no user is kept"


def test_failed_block_releases_its_place(limiter: ConnectionLimiter) -> None:
    for _ in range(5):
        with pytest.raises(ValueError, match="broken"), limiter.acquire("a"):
            raise ValueError("broken")
