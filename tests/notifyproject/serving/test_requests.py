"""HTTP/1.1 in the web process: answers, refusals, and connection reuse."""

import json
import socket

import pytest

from notifyproject.serving.connection import MAX_BODY, MAX_HEAD
from tests.support.clients.api import App, request
from tests.support.clients.raw_http import Answers, get, post
from tests.support.clients.slow import Kind, SlowClients
from tests.support.served_program import Serve, Served
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

ENDLESS = (Kind.SILENT, Kind.HEAD, Kind.BODY, Kind.IDLE)
"""Slow clients that never end."""

# For the processes, whose database it is.
pytestmark = pytest.mark.usefixtures("db")


def _body() -> bytes:
    return json.dumps(request()).encode()


def _chunked(body: bytes, *, size: int = 100, extension: str = "", trailer: str = "") -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    chunks = b"".join(b"%x%s\r\n%s\r\n" % (len(p), extension.encode(), p) for p in parts)
    return chunks + f"0\r\n{trailer}\r\n".encode()


def _headers(app: App) -> tuple[str, str]:
    return f"Authorization: Bearer {app.key}", f"Content-Length: {len(_body())}"


def test_pipelined_requests_are_answered_in_order(web: Served, app: App) -> None:
    with web.connect() as client:
        client.sendall(get() + post(*_headers(app), body=_body()) + get("/nowhere") + get())
        answers = Answers(client)
        assert [answers.next().status for _ in range(4)] == [200, 202, 404, 200]


def test_connection_is_kept_alive(web: Served, app: App) -> None:
    with web.connect() as client:
        answers = Answers(client)
        for _ in range(3):
            client.sendall(post(*_headers(app), body=_body()))
            answer = answers.next()
            assert (answer.status, answer.headers["connection"]) == (202, "keep-alive")


@pytest.mark.parametrize("size", [1, 7, 100])
def test_request_may_come_in_pieces(web: Served, app: App, size: int) -> None:
    headers = (f"Authorization: Bearer {app.key}", "Transfer-Encoding: chunked")
    raw = post(*headers, body=_chunked(_body(), size=50, extension=";a=1", trailer="X-A: 1\r\n"))
    with web.connect() as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = Answers(client)
        for start in range(0, len(raw), size):
            client.sendall(raw[start : start + size])
        assert answers.next().status == 202
        client.sendall(get())
        assert answers.next().status == 200


def test_expect_continue_is_answered_once(web: Served, app: App) -> None:
    with web.connect() as client:
        client.sendall(post(*_headers(app), "Expect: 100-continue"))
        answers = Answers(client)
        assert answers.next(has_body=False).status == 100
        client.sendall(_body())
        assert answers.next().status == 202


def test_expect_continue_with_a_body_is_not_answered(web: Served, app: App) -> None:
    with web.connect() as client:
        client.sendall(post(*_headers(app), "Expect: 100-continue", body=_body()))
        assert Answers(client).next().status == 202


def test_head_is_answered_without_a_body(web: Served) -> None:
    with web.connect() as client:
        client.sendall(get(method="HEAD") + get())
        answers = Answers(client)
        head, answer = answers.next(has_body=False), answers.next()
        assert (head.status, answer.status) == (200, 200)
        assert head.headers["content-length"] == str(len(answer.body))


def test_unread_body_is_not_parsed_as_a_request(web: Served) -> None:
    hidden = get("/hidden")
    with web.connect() as client:
        client.sendall(post(f"Content-Length: {len(hidden)}", body=hidden, path="/healthz") + get())
        answers = Answers(client)
        answers.next()
        assert answers.next().status == 200
        client.sendall(get("/nowhere"))
        assert answers.next().status == 404


def test_half_closed_connection_is_answered(web: Served) -> None:
    with web.connect() as client:
        client.sendall(get())
        client.shutdown(socket.SHUT_WR)
        assert Answers(client).next().status == 200


def test_http_1_0_is_answered_and_closed(web: Served) -> None:
    with web.connect() as client:
        client.sendall(b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        answers = Answers(client)
        assert answers.next().status == 200
        assert answers.is_over()


LONG = "x" * 5_000
BOTH = ("Content-Length: 4", "Transfer-Encoding: chunked")
LARGE_CHUNKS = _chunked(b"x" * (MAX_BODY + 1), size=1_000_000)


MALFORMED = (
    b"nonsense\r\n\r\n",
    b"\r\n\r\n\r\n",
    b"GET /healthz HTTP/1.1\nHost: x\n\n",
    get("/healthz", "Bad Name: 1"),
    get("/healthz", "A: 1\r\n folded"),
    post("Content-Length: -1"),
    post("Content-Length: 1", "Content-Length: 2"),
    post("Content-Length: 5", "Content-Length: 5", body=b"0\r\n\r\n"),
    post("Content-Length: 5, 5", body=b"0\r\n\r\n"),
    post("Content-Length: +5", body=b"0\r\n\r\n"),
    post("Content-Length: 5_0", body=b"0\r\n\r\n"),
    post("Content-Length : 5", body=b"0\r\n\r\n"),
    post(BOTH[1], BOTH[0], body=b"0\r\n\r\n"),
    post(BOTH[1], BOTH[1], body=b"0\r\n\r\n"),
    post("Transfer-Encoding : chunked", body=b"0\r\n\r\n"),
    post("Transfer-Encoding: chunked, chunked", body=b"0\r\n\r\n"),
    post("Transfer-Encoding:\r\n chunked", body=b"0\r\n\r\n"),
    post("A: 1\nTransfer-Encoding: chunked", body=b"0\r\n\r\n"),
    post("A: 1\rB: 2"),
    post(BOTH[1], body=b"0x2\r\nab\r\n0\r\n\r\n"),
    post(BOTH[1], body=b"2\nab\n0\n\n\r\n"),
    get(method="GE T"),
    post(*BOTH, body=b"0\r\n\r\n"),
    post(BOTH[1], body=b"zz\r\n"),
    post(BOTH[1], body=b"-1\r\n"),
    post(BOTH[1], body=b"2\r\nabc\r\n0\r\n\r\n"),
    post(BOTH[1], body=b"5;" + b"x" * 20_000),
)
REFUSED = (
    *((raw, 400, "malformed_request") for raw in MALFORMED),
    (post("Transfer-Encoding: br"), 501, "unsupported_transfer_coding"),
    *(
        (
            post(f"Transfer-Encoding: {coding}", body=b"0\r\n\r\n"),
            501,
            "unsupported_transfer_coding",
        )
        for coding in ("gzip, chunked", "identity, chunked", "deflate,chunked", "chunked, ")
    ),
    (get("/" + LONG), 414, "uri_too_long"),
    (b"GET /" + b"x" * 2 * MAX_HEAD, 414, "uri_too_long"),
    (get("/healthz", f"A: {LONG * 2}"), 431, "headers_too_large"),
    (get("/healthz", *(f"A{n}: 1" for n in range(200))), 431, "headers_too_large"),
    (get()[:-2] + b"A: 1\r\n" * MAX_HEAD, 431, "headers_too_large"),
)
REFUSED_BY_WEB = (
    (post("Content-Length: 2", "Expect: more"), 417, "expectation_failed"),
    (post(f"Content-Length: {MAX_BODY + 1}"), 413, "too_large"),
    (post(f"Content-Length: {MAX_BODY + 1}", "Expect: 100-continue"), 413, "too_large"),
    (post(BOTH[1], body=LARGE_CHUNKS[:-5]), 413, "too_large"),
)


@each_case("raw, status, code", (*REFUSED, *REFUSED_BY_WEB))
def test_invalid_request_is_refused_as_a_problem(
    web: Served, raw: bytes, status: int, code: str
) -> None:
    refused(web, raw, status, code)


@each_case("raw, status, code", REFUSED)
def test_invalid_request_of_a_stream_is_refused_as_a_problem(
    stream: Served, raw: bytes, status: int, code: str
) -> None:
    refused(stream, raw, status, code)


def refused(served: Served, raw: bytes, status: int, code: str) -> None:
    with served.connect() as client:
        client.sendall(raw)
        answers = Answers(client)
        answer = answers.next()
        assert (answer.status, answer.problem()["code"]) == (status, code)
        assert answer.headers["connection"] == "close"
        assert answers.is_over()


def test_stream_answers_an_upgrade_to_websocket_as_a_request(stream: Served) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 1")
    with stream.connect() as client:
        client.sendall(get("/api/v1/inbox/stream", *upgrade))
        answer = Answers(client).next()
        assert (answer.status, answer.problem()["code"]) == (401, "unauthenticated")


@pytest.mark.parametrize("served", ["impatient", "stream"], indirect=True)
def test_refusal_is_logged_in_one_line(served: Served) -> None:
    with served.connect() as client:
        client.sendall(get("/healthz", "Bad Name: ada@example.com"))
        problem = Answers(client).next().problem()
    log = served.log.read_text()
    (line,) = [text for text in log.splitlines() if problem["request_id"] in text]
    assert "refused" in line
    assert "ada@" not in log, log
    assert "Logging error" not in log, log


def test_started_request_is_answered_before_shutdown(serve: Serve, app: App) -> None:
    web = serve()
    with SlowClients(target=web.target, kinds=ENDLESS, count=20), web.connect() as client:
        answers = Answers(client)
        client.sendall(get("/healthz"))
        assert answers.next().status == 200  # so the process has accepted the connection
        client.sendall(post(*_headers(app), body=_body()[:50]))
        web.process.terminate()
        client.sendall(_body()[50:])
        assert answers.next().status == 202
    assert web.process.wait(timeout=LIMIT) == 0
