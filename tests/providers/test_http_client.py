"""The pooled HTTP client: connection reuse, concurrency, failures, and limits."""

import os
import socket
import sys
import threading
from collections.abc import Callable

import pytest

from domain.errors import ProviderUnavailableError, TransientError
from providers import http_client
from providers.http import Exchange, Request, Response
from tests.support.fakes import socket_server
from tests.support.fakes.posting import post
from tests.support.waiting import LIMIT, SHORT, lag


def asking(url: str, *, body: bytes = b"{}", timeout: float = LIMIT) -> Exchange[Response]:
    return (yield Request(url=f"{url}/send", headers={}, body=body, timeout=timeout))


def statuses(outcomes: list[Response | Exception]) -> list[int]:
    return [one.status for one in outcomes if isinstance(one, Response)]


def test_requests_of_one_thread_run_concurrently() -> None:
    together = threading.Barrier(16, timeout=LIMIT)

    def handle(connection: socket.socket) -> None:
        socket_server.read_request(connection)
        together.wait()
        connection.sendall(socket_server.response(202))

    with socket_server.serving(handle) as server:
        assert (
            statuses(http_client.run_exchanges(asking(server.url) for _ in range(16))) == [202] * 16
        )


def test_each_request_gets_its_answer() -> None:
    def echo(connection: socket.socket) -> None:
        body = socket_server.read_request(connection).partition(b"\r\n\r\n")[2]
        connection.sendall(socket_server.response(200, body, "Connection: close"))

    with socket_server.serving(echo) as server:
        bodies = [str(number).encode() for number in range(20)]
        outcomes = http_client.run_exchanges(asking(server.url, body=body) for body in bodies)
    assert [one.body for one in outcomes if isinstance(one, Response)] == bodies


def test_connections_are_reused_by_the_next_round() -> None:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        for _ in range(3):
            http_client.run_exchanges(asking(server.url) for _ in range(8))
        assert server.connections <= 8


def test_failed_request_does_not_affect_the_others() -> None:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        url = server.url
        outcomes = http_client.run_exchanges(
            [asking(url), asking("http://127.0.0.1:1"), asking(url)]
        )
    assert statuses(outcomes) == [202, 202]
    assert isinstance(outcomes[1], TransientError)


def test_invalid_request_does_not_affect_the_others() -> None:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        outcomes = http_client.run_exchanges([asking("nowhere"), asking(server.url)])
    assert isinstance(outcomes[0], ProviderUnavailableError)
    assert statuses(outcomes) == [202]


def test_slow_answer_delays_only_itself() -> None:
    done: list[str] = []

    def noted(url: str, timeout: float) -> Exchange[Response]:
        try:
            return (yield from asking(url, timeout=timeout))
        finally:
            done.append(url)

    with (
        socket_server.serving(socket_server.stopping()) as silent,
        socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as quick,
    ):
        outcomes = http_client.run_exchanges([noted(silent.url, SHORT), noted(quick.url, LIMIT)])
    assert isinstance(outcomes[0], TransientError)
    assert outcomes[0].is_ambiguous
    assert done == [quick.url, silent.url]


def test_exchange_may_send_several_requests() -> None:
    def stubborn(url: str) -> Exchange[list[int]]:
        seen = []
        try:
            yield Request(url="http://127.0.0.1:1", headers={}, body=b"")
        except TransientError:
            seen.append(0)
        for _ in range(2):
            answer = yield from asking(url)
            seen.append(answer.status)
        return seen

    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        assert http_client.run_exchange(stubborn(server.url)) == [0, 202, 202]


def test_exchange_without_requests_needs_no_connection() -> None:
    def silent() -> Exchange[str]:
        return "nothing to ask"
        yield

    assert http_client.run_exchange(silent()) == "nothing to ask"
    assert not http_client._pools[os.getpid()]


def test_defect_is_the_outcome_of_its_exchange() -> None:
    def broken(url: str) -> Exchange[Response]:
        yield from asking(url)
        raise KeyError("ours")

    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        outcomes = http_client.run_exchanges([broken(server.url), asking(server.url)])
    assert isinstance(outcomes[0], KeyError)
    assert statuses(outcomes) == [202]


@pytest.mark.parametrize("pause", [0.0, 1.2])
def test_request_on_a_reused_connection_is_not_repeated(
    pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libcurl would repeat it, but the server may have accepted the message before it hung up.

    After a second of idleness the client also checks that the connection is open.
    """
    monkeypatch.setattr(http_client, "UNCHECKED_SECONDS", LIMIT)
    requests: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        requests.append(socket_server.read_request(connection))
        connection.sendall(socket_server.response(202))
        requests.append(socket_server.read_request(connection))

    with socket_server.serving(handle) as server:
        post(server.url)
        lag(pause)
        with pytest.raises(TransientError) as error:
            post(server.url)
        assert error.value.is_ambiguous
        assert (len(requests), server.connections) == (2, 1)


def test_warm_connections_are_lent_first_and_to_one_thread() -> None:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        post(server.url)
        (warm,) = http_client._pools[os.getpid()]
        both = threading.Barrier(2, timeout=LIMIT)

        def meet(url: str) -> Exchange[Response]:
            answer = yield from asking(url)
            both.wait()
            return answer

        def run(talk: Callable[[], object]) -> threading.Thread:
            thread = threading.Thread(target=talk)
            thread.start()
            return thread

        for thread in [run(lambda: http_client.run_exchange(meet(server.url))) for _ in range(2)]:
            thread.join()
        assert len(http_client._pools[os.getpid()]) == 2
        assert warm in http_client._pools[os.getpid()]


def test_forked_process_has_its_own_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        post(server.url)
        monkeypatch.setattr("os.getpid", lambda: 4711)
        post(server.url)
        assert server.connections == 2
        http_client.close_idle_connections()


def test_request_body_is_released() -> None:
    """An idle connection must not keep attachments or the key in memory."""
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        body = b"x" * 1_000
        before = sys.getrefcount(body)
        post(server.url, body=body)
        assert sys.getrefcount(body) == before


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as server:
        idle = http_client._pools[os.getpid()]
        post(server.url)
        left = idle.pop()
        post(server.url)
        idle.appendleft(left)
        monkeypatch.setattr(
            left, "_last_used_at", left._last_used_at - http_client.MAX_IDLE_SECONDS - 1
        )
        post(server.url)
        assert left not in idle
        assert len(idle) == 1
