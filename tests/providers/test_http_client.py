"""The pooled HTTP client: connection reuse, concurrency, failures, and limits."""

import asyncio
import socket
import sys
import threading
from collections.abc import Awaitable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pycurl
import pytest

from domain.errors import FailureCode, ProviderUnavailableError, TransientError
from notifyproject.platform import event_loop
from providers import http, http_client
from providers.http import Request, Response
from tests.support.fakes import socket_server
from tests.support.fork import become_child
from tests.support.tables import each_case
from tests.support.threads import at_once
from tests.support.waiting import LIMIT, SHORT, ending, lag, until


def post(url: str, *, timeout: float = LIMIT, body: bytes = b"{}") -> http.Response:
    headers = {"Authorization": "Bearer secret", "Content-Type": "application/json"}
    request = Request(url=f"{url}/send", body=body, headers=headers, timeout=timeout)
    return event_loop.run(http_client.send(request))


def failure(handler: socket_server.Handler, *, timeout: float = LIMIT) -> TransientError:
    with socket_server.serving(handler) as server, pytest.raises(TransientError) as error:
        post(server.url, timeout=timeout)
    return error.value


@pytest.fixture
def server() -> Iterator[socket_server.SocketServer]:
    with socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as running:
        yield running


def test_answer_is_returned_with_any_status() -> None:
    for status in (200, 202, 204 + 1, 400, 404, 429, 500, 503):
        sent = socket_server.response(status, b"hello", "X-Id: 7")
        with socket_server.serving(socket_server.answering(sent)) as server:
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


@each_case("status", [202, 503])
def test_connection_is_reused_after_any_answer(status: int) -> None:
    handler = socket_server.KeepAlive(socket_server.response(status, b"{}"))
    with socket_server.serving(handler) as server:
        assert [post(server.url).status for _ in range(5)] == [status] * 5
        assert server.connections == 1
    assert len(handler.requests) == 5


def test_closed_connection_is_replaced() -> None:
    with socket_server.serving(socket_server.answering(socket_server.response(202))) as server:
        assert post(server.url).status == 202
        server.until_idle()
        assert post(server.url).status == 202
        assert server.connections == 2


def test_new_connection_may_have_the_descriptor_of_a_closed_one() -> None:
    answer = socket_server.response(202, b"", "Connection: close")
    with socket_server.serving(socket_server.answering(answer)) as server:
        assert [post(server.url).status for _ in range(5)] == [202] * 5
        assert server.connections == 5


def test_connection_that_its_server_closes_while_idle_is_no_longer_watched() -> None:
    """The loop would spin, since its end stays readable."""

    async def watched() -> set[int]:
        return http_client._current_pool()._registered

    with socket_server.serving(socket_server.answering(socket_server.response(202))) as server:
        post(server.url)
        server.until_idle()
        until(lambda: not event_loop.run(watched()))


ESTABLISHED = "01"
"""A connection's state in /proc/net/tcp."""
KEEPALIVE = "02"
"""A socket's timer in /proc/net/tcp."""


def timers_of_connections_to(port: int) -> list[str]:
    """Return the timers of the open connections to a local port."""
    rows = (line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:])
    return [row[5][:2] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == ESTABLISHED]


def test_idle_connection_has_tcp_keepalive(server: socket_server.SocketServer) -> None:
    post(server.url)
    assert timers_of_connections_to(server.port) == [KEEPALIVE]


def test_threads_send_concurrently() -> None:
    together = threading.Barrier(8, timeout=LIMIT)

    def handle(connection: socket.socket) -> None:
        socket_server.read_request(connection)
        together.wait()
        connection.sendall(socket_server.response(202))

    with socket_server.serving(handler=handle) as server:
        answers = at_once(*[lambda: post(server.url).status] * 8)
    assert answers == [202] * 8


@each_case("status", [301, 302, 303, 307, 308])
def test_redirect_is_not_followed(status: int) -> None:
    elsewhere = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(elsewhere) as other:
        answer = socket_server.response(status, b"", f"Location: {other.url}/steal")
        with socket_server.serving(socket_server.answering(answer)) as server:
            assert post(server.url).status == status
        assert other.connections == 0
    assert elsewhere.requests == []


@each_case("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_proxy_environment_is_ignored(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    spy = socket_server.KeepAlive(socket_server.response(202))
    with (
        socket_server.serving(spy) as proxy,
        socket_server.serving(socket_server.KeepAlive(socket_server.response(200))) as server,
    ):
        monkeypatch.setenv(name, proxy.url)
        assert post(server.url).status == 200
        assert proxy.connections == 0


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
    answer = socket_server.response(202, b"", "Connection: close")
    with socket_server.serving(socket_server.answering(answer)) as server:
        post(server.url)
        url = server.url
    with pytest.raises(TransientError) as error:
        post(url)
    assert not error.value.is_ambiguous


def asking(url: str, *, body: bytes = b"{}", timeout: float = LIMIT) -> Awaitable[Response]:
    request = Request(url=f"{url}/send", headers={}, body=body, timeout=timeout)
    return http_client.send(request)


def at_the_same_time(*requests: Awaitable[Response]) -> list[Response | BaseException]:
    """Return the outcome of each."""

    async def gather() -> list[Response | BaseException]:
        return await asyncio.gather(*requests, return_exceptions=True)

    return event_loop.run(gather())


def statuses(outcomes: list[Response | BaseException]) -> list[int]:
    return [outcome.status for outcome in outcomes if isinstance(outcome, Response)]


def test_requests_of_one_thread_run_concurrently() -> None:
    together = threading.Barrier(16, timeout=LIMIT)

    def handle(connection: socket.socket) -> None:
        socket_server.read_request(connection)
        together.wait()
        connection.sendall(socket_server.response(202))

    with socket_server.serving(handle) as server:
        outcomes = at_the_same_time(*[asking(server.url) for _ in range(16)])
    assert statuses(outcomes) == [202] * 16


def test_thousand_requests_are_in_flight_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More than `select` could wait for."""
    monkeypatch.setattr(http_client, "CONNECT_TIMEOUT", LIMIT)
    together = threading.Barrier(1_100, timeout=LIMIT)

    def handle(connection: socket.socket) -> None:
        socket_server.read_request(connection)
        together.wait()
        connection.sendall(socket_server.response(202, b"", "Connection: close"))

    with socket_server.serving(handle) as server:
        outcomes = at_the_same_time(*[asking(server.url) for _ in range(1_100)])
    assert statuses(outcomes) == [202] * 1_100


def test_each_request_gets_its_answer() -> None:
    def echo(connection: socket.socket) -> None:
        body = socket_server.read_request(connection).partition(b"\r\n\r\n")[2]
        connection.sendall(socket_server.response(200, body, "Connection: close"))

    with socket_server.serving(echo) as server:
        bodies = [str(number).encode() for number in range(20)]
        outcomes = at_the_same_time(*[asking(server.url, body=body) for body in bodies])
    assert [outcome.body for outcome in outcomes if isinstance(outcome, Response)] == bodies


def test_connections_are_reused_by_the_next_round(server: socket_server.SocketServer) -> None:
    for _ in range(3):
        at_the_same_time(*[asking(server.url) for _ in range(8)])
    assert server.connections <= 8


@each_case(
    "elsewhere, kind",
    [("http://127.0.0.1:1", TransientError), ("nowhere", ProviderUnavailableError)],
)
def test_failed_or_invalid_request_does_not_affect_the_others(
    server: socket_server.SocketServer, elsewhere: str, kind: type[Exception]
) -> None:
    urls = (server.url, elsewhere, server.url)
    outcomes = at_the_same_time(*[asking(url) for url in urls])
    assert statuses(outcomes) == [202, 202]
    assert type(outcomes[1]) is kind


def test_slow_answer_delays_only_itself() -> None:
    done: list[str] = []

    async def noted(url: str, timeout: float) -> Response:
        try:
            return await asking(url, timeout=timeout)
        finally:
            done.append(url)

    with (
        socket_server.serving(socket_server.stopping()) as silent,
        socket_server.serving(socket_server.KeepAlive(socket_server.response(202))) as quick,
    ):
        outcomes = at_the_same_time(noted(silent.url, SHORT), noted(quick.url, LIMIT))
    assert isinstance(outcomes[0], TransientError)
    assert outcomes[0].is_ambiguous
    assert done == [quick.url, silent.url]


@each_case("pause", [0.0, 1.2])
def test_request_on_a_reused_connection_is_not_repeated(
    pause: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libcurl would repeat it, but the server may have accepted the message and then closed.

    After a second of idleness, the client also checks whether the connection is still open.
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


def test_forked_process_has_its_own_connections(
    server: socket_server.SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    post(server.url)
    become_child(monkeypatch, event_loop)
    post(server.url)
    assert server.connections == 2


def test_request_body_is_released(server: socket_server.SocketServer) -> None:
    """An idle connection must not keep attachments or the key in memory."""
    body = b"x" * 1_000
    before = sys.getrefcount(body)
    post(server.url, body=body)
    assert sys.getrefcount(body) == before


def test_handles_of_a_burst_are_closed(
    server: socket_server.SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[pycurl.Curl] = []

    def new_handle() -> pycurl.Curl:
        made.append(pycurl.Curl())
        return made[-1]

    monkeypatch.setattr(http_client, "new_handle", new_handle)
    at_the_same_time(*[asking(server.url) for _ in range(8)])
    assert all(map(is_open, made))
    monkeypatch.setattr(http_client, "MAX_IDLE_SECONDS", 0)
    assert post(server.url).status == 202
    assert sum(map(is_open, made)) == 1
    assert post(server.url).status == 202


def is_open(handle: pycurl.Curl) -> bool:
    try:
        handle.getinfo(pycurl.RESPONSE_CODE)
    except pycurl.error:
        return False
    return True


def test_connection_dropped_while_others_are_in_use_is_not_reused() -> None:
    """Its server restarts: a request on it would end with an unknown outcome."""
    release = threading.Event()

    def handle(connection: socket.socket) -> None:
        request = socket_server.read_request(connection)
        if b"wait" in request:
            release.wait(LIMIT)
        connection.sendall(socket_server.response(202))

    with socket_server.serving(handle) as server:

        async def post_beside_a_slow_one() -> list[int]:
            slow = asyncio.ensure_future(asking(server.url, body=b"wait"))
            first = await asking(server.url)
            await asyncio.to_thread(server.until_closed, 1)
            second = await asking(server.url)
            release.set()
            return [first.status, second.status, (await slow).status]

        assert event_loop.run(post_beside_a_slow_one()) == [202] * 3


PAUSE = 0.05
"""Seconds between two bytes. A dripping answer takes longer than SHORT."""


def at_its_deadline() -> AbstractContextManager[None]:
    return ending(after=SHORT - 0.05)


def test_refused_connection_is_not_ambiguous() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TransientError) as error:
        post(f"http://127.0.0.1:{port}")
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


def test_unknown_host_is_not_ambiguous() -> None:
    with pytest.raises(TransientError) as error:
        post("http://no-such-host.invalid")
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED
    assert "DNS" in error.value.reason


def test_connection_timeout_is_not_ambiguous() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = []
        for _ in range(4):
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
            waiting.append(connection)
        with pytest.raises(TransientError) as error, at_its_deadline():
            post(f"http://127.0.0.1:{port}", timeout=SHORT)
        for connection in waiting:
            connection.close()
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


def test_failed_tls_handshake_is_not_ambiguous() -> None:
    with (
        socket_server.serving(
            lambda connection: connection.sendall(b"220 mail.example.com\r\n")
        ) as server,
        pytest.raises(TransientError) as error,
    ):
        post(f"https://127.0.0.1:{server.port}")
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


async def hold_up_the_loop(seconds: float) -> Response:
    lag(seconds)
    return Response(status=0, headers={}, body=b"")


@each_case("earlier", [0, 1])
def test_nothing_is_sent_after_the_deadline(earlier: int) -> None:
    """A suspended process may continue when another worker is sending."""
    server = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(server) as running:
        for _ in range(earlier):
            post(running.url)
        outcome, _ = at_the_same_time(
            asking(running.url, timeout=SHORT), hold_up_the_loop(SHORT * 1.2)
        )
    assert isinstance(outcome, TransientError)
    assert not outcome.is_ambiguous
    assert outcome.code is FailureCode.CONNECTION_FAILED
    assert len(server.requests) == earlier


def test_deadline_counts_from_the_call_if_the_loop_is_held_up_before_the_request_begins() -> None:
    ended: list[str] = []

    async def ask_until_it_fails(name: str, timeout: float) -> Response:
        try:
            return await asking(stopping.url, timeout=timeout)
        finally:
            ended.append(name)

    async def ask_after_the_hold_up() -> Response:
        await hold_up_the_loop(SHORT * 0.7)
        # Ends 1.3 x SHORT after the call of the first, which ends after 1, or 1.7 if counted later.
        return await ask_until_it_fails("later", SHORT * 0.6)

    with socket_server.serving(socket_server.stopping()) as stopping:
        at_the_same_time(ask_until_it_fails("first", SHORT), ask_after_the_hold_up())
    assert ended == ["first", "later"]


@each_case("key", ["secret\n", "secret\r\nX-Other: 1", "secret\u2028"])
def test_invalid_key_is_about_the_account(key: str) -> None:
    """Mounted secrets often end with a line break, which no header may contain."""
    server = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(server) as running:
        request = Request(url=running.url, body=b"{}", headers={"Authorization": key})
        with pytest.raises(ProviderUnavailableError) as error:
            event_loop.run(http_client.send(request))
    assert "secret" not in error.value.reason
    assert server.requests == []


@each_case("url", ["", "api.example.com", "ftp://127.0.0.1", "http://", "http://[::"])
def test_invalid_url_is_about_the_account(url: str) -> None:
    with pytest.raises(ProviderUnavailableError):
        event_loop.run(http_client.send(Request(url=url, body=b"{}", headers={})))


def drip(text: bytes) -> socket_server.Handler:
    return socket_server.answering(*[text[i : i + 1] for i in range(len(text))], pause=PAUSE)


@each_case(
    "handler",
    [
        socket_server.stopping(),
        socket_server.stopping(b"HTTP/1.1 202 Accep"),
        socket_server.stopping(b"HTTP/1.1 202 Accepted\r\n", b"X-A: 1\r\n"),
        socket_server.stopping(b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nab"),
        drip(b"HTTP/1.1 202 Accepted\r\nContent-Length: 500\r\n\r\n"),
        drip(b"HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nabcde"),
        socket_server.answering(
            b"HTTP/1.1 202 OK\r\nContent-Length: 90\r\n\r\n", *[b"x"] * 90, pause=PAUSE
        ),
        socket_server.answering(*[b"HTTP/1.1 100 Continue\r\n\r\n"] * 40, pause=PAUSE),
    ],
)
def test_deadline_is_kept_and_ambiguous(handler: socket_server.Handler) -> None:
    with (
        socket_server.serving(handler) as server,
        pytest.raises(TransientError) as error,
        at_its_deadline(),
    ):
        post(server.url, timeout=SHORT)
    assert error.value.is_ambiguous
    assert error.value.code is FailureCode.TIMEOUT


def test_unreading_server_is_bounded_by_the_deadline() -> None:
    with (
        socket_server.serving(socket_server.unreading) as server,
        pytest.raises(TransientError) as error,
        at_its_deadline(),
    ):
        post(server.url, timeout=SHORT, body=b"x" * 20_000_000)
    assert error.value.is_ambiguous


def close_after_reading(connection: socket.socket) -> None:
    socket_server.read_request(connection)


@each_case(
    "handler",
    [
        socket_server.resetting,
        close_after_reading,
        socket_server.answering(b"HTTP/1.1 202 Accepted\r\nContent-Length: 500\r\n\r\nonly this"),
        socket_server.answering(
            b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"
        ),
        socket_server.answering(
            b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        ),
        socket_server.answering(b"\x00\x01\x02 this is not HTTP at all\r\n\r\n"),
        socket_server.answering(b"HTTP/1.1 abc Accepted\r\n\r\n"),
        socket_server.answering(b"HTTP/1.1 202 OK\r\nX-Long: " + b"a" * 100_000 + b"\r\n\r\n"),
        socket_server.answering(b"HTTP/1.1 202 OK\r\n" + b"X-A: b\r\n" * 1_000 + b"\r\n"),
        socket_server.answering(socket_server.response(202, b"x" * (http_client.MAX_BODY + 1))),
        socket_server.answering(b"HTTP/1.1 202 OK\r\n\r\n" + b"x" * 10_000_000),
        socket_server.answering(socket_server.response(202, b"not gzip", "Content-Encoding: gzip")),
    ],
)
def test_broken_answer_is_ambiguous(handler: socket_server.Handler) -> None:
    error = failure(handler)
    assert error.is_ambiguous
    assert error.code is FailureCode.CONNECTION_LOST


def test_answer_of_64_kb_is_read() -> None:
    answer = socket_server.response(200, b"x" * http_client.MAX_BODY)
    with socket_server.serving(socket_server.answering(answer)) as server:
        assert len(post(server.url).body) == http_client.MAX_BODY


@each_case("status", [302, 400, 503])
def test_large_error_answer_is_truncated(status: int) -> None:
    large = socket_server.response(status, b"x" * 300_000)
    with socket_server.serving(socket_server.answering(large)) as server:
        answer = post(server.url)
    assert (answer.status, len(answer.body)) == (status, http_client.MAX_BODY)


def test_compressed_answer_above_64_kb_is_ambiguous() -> None:
    import gzip

    packed = gzip.compress(b"x" * 50_000_000)
    assert len(packed) < http_client.MAX_BODY
    error = failure(
        socket_server.answering(socket_server.response(200, packed, "Content-Encoding: gzip"))
    )
    assert error.is_ambiguous


@each_case(
    "answer",
    [
        b"HTTP/1.1 401 No\r\nContent-Length: 500\r\n\r\nonly this",
        b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        socket_server.response(429, b"not gzip", "Content-Encoding: gzip"),
    ],
)
def test_broken_error_answer_keeps_its_status(answer: bytes) -> None:
    with socket_server.serving(socket_server.answering(answer)) as server:
        assert post(server.url).status in (401, 429, 503)


def test_socket_closed_by_an_earlier_event_of_the_same_poll_ends_nothing() -> None:
    """libcurl may close an idle connection while it handles another one's event."""

    async def both_are_ready() -> list[int]:
        pool = http_client._ConnectionPool(asyncio.get_running_loop())
        (active, peer), (idle, other_peer) = socket.socketpair(), socket.socketpair()
        handled: list[int] = []

        def proceed(number: int, _events: int) -> None:
            handled.append(number)
            idle.close()

        with active, peer, other_peer, pytest.MonkeyPatch.context() as patch:
            patch.setattr(pool, "_proceed", proceed)
            pool._watch(pycurl.POLL_IN, active.fileno(), None, None)
            pool._watch(pycurl.POLL_IN, idle.fileno(), None, None)
            pool._watch(pycurl.POLL_REMOVE, idle.fileno(), None, None)
            peer.send(b"1")
            other_peer.send(b"1")
            pool._handle_events()
            pool._epoll.unregister(active.fileno())
        pool.close_when_idle()
        return handled

    assert len(event_loop.run(both_are_ready())) == 1


def test_request_connects_to_given_addresses_and_keeps_its_host() -> None:
    handler = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(handler) as server:
        for addresses in (("127.0.0.1",), ("::1",), ("::1", "127.0.0.1")):
            request = Request(
                url=f"http://rooms.example:{server.port}/send",
                body=b"{}",
                headers={},
                timeout=LIMIT,
                connect_to=addresses,
            )
            if "127.0.0.1" in addresses:
                assert event_loop.run(http_client.send(request)).status == 202
            else:
                with pytest.raises(TransientError) as error:
                    event_loop.run(http_client.send(request))
                assert error.value.code is FailureCode.CONNECTION_FAILED
        # The addresses belong to their request: a handle doesn't keep it.
        assert post(server.url).status == 202
    assert f"\r\nHost: rooms.example:{server.port}\r\n".encode() in handler.requests[0]
