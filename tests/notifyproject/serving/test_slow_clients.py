"""Hundreds of slow clients don't delay others."""

import json
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
import urllib3

from tests.support.clients.api import App, request
from tests.support.clients.raw_http import Answers, get, post
from tests.support.clients.slow import Kind, SlowClients
from tests.support.served_program import LARGE, Serve, Served
from tests.support.subprocess import children, paused
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, lag

# For the processes, whose database it is.
pytestmark = pytest.mark.usefixtures("db")
HUNDREDS = 200


def _is_accepted(served: Served, app: App) -> bool:
    try:
        answer = urllib3.request(
            "POST",
            f"{served.url}/api/v1/notifications",
            body=json.dumps(request()).encode(),
            headers={"Authorization": f"Bearer {app.key}", "Content-Type": "application/json"},
            retries=False,
            timeout=LIMIT,
        )
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == 202


@pytest.mark.parametrize("kind", Kind)
def test_slow_clients_delay_nobody(web: Served, app: App, kind: Kind) -> None:
    with SlowClients(target=web.target, kinds=(kind,), count=HUNDREDS, pause=1.0):
        for _ in range(3):
            assert web.is_healthy()
            assert _is_accepted(web, app)
            lag(0.2)


def test_connection_limit_replaces_the_oldest(serve: Serve, app: App) -> None:
    web = serve(WEB_CONNECTIONS="100", WEB_CLIENT_SECONDS="600")
    with SlowClients(
        target=web.target, kinds=(Kind.SILENT, Kind.HEAD, Kind.BODY), count=HUNDREDS
    ) as clients:
        for _ in range(5):
            # Beyond the limit a client may be the oldest before it has sent anything.
            assert any(web.is_healthy() for _ in range(5))
            assert any(_is_accepted(web, app) for _ in range(5))
        assert clients.opened > 3 * HUNDREDS


BEGUN = {
    "head": get()[:-3],
    "body": post("Content-Length: 1000", body=b"{"),
    "chunk": post("Transfer-Encoding: chunked", body=b"5\r\n{"),
    "trailer": post("Transfer-Encoding: chunked", body=b"0\r\nX-Trailer: 1\r\n"),
}


def begun_request_is_answered_408(web: Served, _app: App) -> None:
    with ExitStack() as stack:
        clients = [stack.enter_context(web.connect()) for _ in BEGUN]
        silent = stack.enter_context(web.connect())
        for client, begun in zip(clients, BEGUN.values(), strict=True):
            client.sendall(begun)
        for client in clients:
            is_answered_408(client)
        assert Answers(silent).is_over()


def is_answered_408(client: socket.socket) -> None:
    answers = Answers(client)
    answer = answers.next()
    assert (answer.status, answer.problem()["code"]) == (408, "request_timeout")
    assert answer.headers["connection"] == "close"
    assert answers.is_over()


def trickling_bytes_do_not_extend_the_time(web: Served, _app: App) -> None:
    is_over = threading.Event()

    def trickle(client: socket.socket) -> None:
        while not is_over.wait(0.1):
            client.send(b"x")

    with web.connect() as client:
        client.sendall(post("Content-Length: 1000"))
        trickling = threading.Thread(target=trickle, args=(client,))
        trickling.start()
        assert Answers(client).next().status == 408
        is_over.set()
        trickling.join()


def large_body_gets_more_time(web: Served, app: App) -> None:
    body = json.dumps(request()).encode().ljust(40_000)
    headers = (f"Authorization: Bearer {app.key}", f"Content-Length: {len(body)}")
    with web.connect() as client:
        client.sendall(post(*headers))
        for start in range(0, len(body), 5_000):
            lag(0.5)
            client.sendall(body[start : start + 5_000])
        assert Answers(client).next().status == 202


def unread_response_is_cut_off(web: Served, _app: App) -> None:
    with web.connect() as client:
        client.sendall(get(LARGE) * 4)
        lag(4.5)
        total = 0
        while data := _received(client):
            total += len(data)
        assert total < 4_000_000


def slow_steady_reader_gets_everything(web: Served, _app: App) -> None:
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        client.settimeout(LIMIT)
        client.connect((web.target.host, web.port))
        client.sendall(get(LARGE, "Connection: close"))
        received = bytearray()
        while data := client.recv(65_536):
            received += data
            lag(0.05)
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    assert body == _bundle()


@each_case(
    "happens",
    [
        begun_request_is_answered_408,
        trickling_bytes_do_not_extend_the_time,
        large_body_gets_more_time,
        unread_response_is_cut_off,
        slow_steady_reader_gets_everything,
    ],
    at_once=True,
)
def test_client_has_its_time_limit(
    impatient: Served, app: App, happens: Callable[[Served, App], None]
) -> None:
    happens(impatient, app)


def answers_what_came_while_paused(served: Served, whole: bytes, sizes: Sequence[int]) -> None:
    (worker,) = children(served.process.pid)
    with ExitStack() as stack:
        begun = [(stack.enter_context(served.connect()), size) for size in sizes]
        slow = stack.enter_context(served.connect())
        for client, size in (*begun, (slow, 40)):
            client.sendall(whole[:size])
        # It has read those, since it answers what came later.
        assert served.is_healthy()
        with paused(worker):
            for client, size in begun:
                client.sendall(whole[size:])
            lag(3.5)
        for client, _ in begun:
            assert Answers(client).next().status in (200, 202)
        is_answered_408(slow)


def test_what_came_while_the_web_was_paused_is_in_time(impatient: Served, app: App) -> None:
    body = json.dumps(request()).encode()
    head = post(f"Authorization: Bearer {app.key}", f"Content-Length: {len(body)}")
    answers_what_came_while_paused(impatient, head + body, (0, 40, len(head) + 9))


def test_what_came_while_the_stream_was_paused_is_in_time(stream: Served) -> None:
    answers_what_came_while_paused(stream, get("/healthz", f"A: {'x' * 40}"), (0, 40))


def test_slow_request_of_a_stream_is_answered_408(stream: Served) -> None:
    with stream.connect() as client, stream.connect() as silent:
        client.sendall(BEGUN["head"])
        is_answered_408(client)
        assert Answers(silent).is_over()


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(65_536)
    except ConnectionResetError:
        return b""


def _bundle() -> bytes:
    from django.contrib.staticfiles import finders

    return Path(finders.find(LARGE.removeprefix("/static/"))).read_bytes()


def test_head_may_come_in_pieces(stream: Served) -> None:
    with stream.connect() as client:
        for byte in get():
            client.sendall(bytes([byte]))
        assert Answers(client).next().status == 200


def test_large_head_is_refused(stream: Served) -> None:
    with stream.connect() as client:
        client.sendall(get("/healthz", f"A: {'x' * 100_000}"))
        assert Answers(client).next().status == 431


def test_slow_stream_clients_delay_nobody(stream: Served) -> None:
    kinds = (Kind.SILENT, Kind.HEAD)
    with SlowClients(target=stream.target, kinds=kinds, count=300) as clients:
        for _ in range(5):
            # Beyond the limit a client may be the oldest before it has sent anything.
            assert any(stream.is_healthy() for _ in range(5))
        assert clients.opened > 600
