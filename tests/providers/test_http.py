import socket
import threading
from pathlib import Path

import pytest

from domain.errors import TransientError
from tests.support.fakes import socket_server
from tests.support.fakes.posting import failure, post
from tests.support.waiting import LIMIT, SHORT, lag


def test_answer_is_returned_with_any_status() -> None:
    for status in (200, 202, 204 + 1, 400, 404, 429, 500, 503):
        with socket_server.serving(
            socket_server.answering(socket_server.response(status, b"hello", "X-Id: 7"))
        ) as server:
            answer = post(server.url)
        assert (answer.status, answer.body, answer.headers["x-id"]) == (status, b"hello", "7")


def test_request_is_sent_once_with_headers_and_body() -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as server:
        post(server.url, body=b'{"a": 1}')
    (request,) = handler.requests
    assert request.startswith(b"POST /send HTTP/1.1\r\n")
    assert b"\r\nAuthorization: Bearer secret\r\n" in request
    assert request.endswith(b'\r\n\r\n{"a": 1}')


def test_connection_is_reused() -> None:
    handler = socket_server.KeepAlive(socket_server.response(202, b"{}"))
    with socket_server.serving(handler) as server:
        for _ in range(5):
            post(server.url)
        assert server.connections == 1
    assert len(handler.requests) == 5


def test_connection_is_reused_after_an_error_answer() -> None:
    handler = socket_server.KeepAlive(socket_server.response(503, b"busy"))
    with socket_server.serving(handler) as server:
        for _ in range(3):
            assert post(server.url).status == 503
        assert server.connections == 1


def test_closed_connection_is_replaced() -> None:
    with socket_server.serving(socket_server.answering(socket_server.response(202))) as server:
        assert post(server.url).status == 202
        server.until_idle()
        assert post(server.url).status == 202
        assert server.connections == 2


ESTABLISHED = "01"
"""A connection's state in /proc/net/tcp."""
KEEPALIVE = "02"
"""A socket's timer in /proc/net/tcp."""


def timers_of_connections_to(port: int) -> list[str]:
    """Return the timers of the open connections to a local port."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return [row[5][:2] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == ESTABLISHED]


def test_idle_connection_has_tcp_keepalive() -> None:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        post(server.url)
        assert timers_of_connections_to(server.port) == [KEEPALIVE]


def test_threads_send_concurrently() -> None:
    together = threading.Barrier(8, timeout=LIMIT)

    def handle(connection: socket.socket) -> None:
        socket_server.read_request(connection)
        together.wait()
        connection.sendall(socket_server.response(202))

    with socket_server.serving(handler=handle) as server:
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda: answers.append(post(server.url).status))
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == [202] * 8


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(status: int) -> None:
    elsewhere = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(elsewhere) as other:
        answer = socket_server.response(status, b"", f"Location: {other.url}/steal")
        with socket_server.serving(socket_server.answering(answer)) as server:
            assert post(server.url).status == status
        assert other.connections == 0
    assert elsewhere.requests == []


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_proxy_environment_is_ignored(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    spy = socket_server.KeepAlive(socket_server.response(202))
    with (
        socket_server.serving(spy) as proxy,
        socket_server.serving(socket_server.KeepAlive(socket_server.response(200))) as server,
    ):
        monkeypatch.setenv(name, proxy.url)
        assert post(server.url).status == 200
        assert proxy.connections == 0


def test_request_is_never_repeated() -> None:
    requests: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        requests.append(socket_server.read_request(connection))

    assert failure(handle).is_ambiguous
    assert len(requests) == 1


def test_failed_connection_is_not_reused() -> None:
    answers = iter([b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nrest of an old answer"])

    def handle(connection: socket.socket) -> None:
        socket_server.read_request(connection)
        connection.sendall(next(answers, socket_server.response(200, b"new")))

    with socket_server.serving(handle) as server:
        with pytest.raises(TransientError):
            post(server.url)
        assert post(server.url).body == b"new"


def test_deadline_applies_to_one_request() -> None:
    def handle(connection: socket.socket) -> None:
        for pause in (0.0, SHORT + 0.2):
            socket_server.read_request(connection)
            lag(pause)
            connection.sendall(socket_server.response(202))

    with socket_server.serving(handle) as server:
        post(server.url, timeout=SHORT)
        assert post(server.url, timeout=LIMIT).status == 202
        assert server.connections == 1


def test_refused_connection_after_a_success_is_not_ambiguous() -> None:
    with socket_server.serving(
        socket_server.answering(socket_server.response(202, b"", "Connection: close"))
    ) as server:
        post(server.url)
        url = server.url
    with pytest.raises(TransientError) as error:
        post(url)
    assert not error.value.is_ambiguous
