"""The pooled HTTP client, against servers that behave badly in every way there is."""

import socket
from contextlib import AbstractContextManager

import pytest

from domain.errors import FailureCode, ProviderUnavailableError, TransientError
from providers import http_client
from providers.http import Exchange, Request, Response
from tests.support.fakes import socket_server
from tests.support.fakes.posting import failure, post
from tests.support.waiting import LIMIT, SHORT, ending, lag

PAUSE = 0.05
"""Seconds between two bytes of a dripping answer: it takes longer than the short deadline."""


def at_its_deadline() -> AbstractContextManager[None]:
    """Expect a request with the short deadline to end there, while the other side goes on."""
    return ending(after=SHORT - 0.05)


def test_a_refused_connection_has_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(TransientError) as error:
        post(f"http://127.0.0.1:{port}")
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


def test_a_host_without_an_address_has_been_sent_nothing() -> None:
    with pytest.raises(TransientError) as error:
        post("http://no-such-host.invalid")
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED
    assert "DNS" in error.value.reason


def test_a_connection_that_is_not_taken_in_time_has_sent_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        waiting = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
            waiting.append(one)
        with pytest.raises(TransientError) as error, at_its_deadline():
            post(f"http://127.0.0.1:{port}", timeout=SHORT)
        for one in waiting:
            one.close()
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


def test_a_server_that_does_not_speak_tls_has_been_sent_nothing() -> None:
    with (
        socket_server.serving(
            lambda connection: connection.sendall(b"220 mail.example.com\r\n")
        ) as server,
        pytest.raises(TransientError) as error,
    ):
        post(f"https://127.0.0.1:{server.port}")
    assert not error.value.is_ambiguous
    assert error.value.code is FailureCode.CONNECTION_FAILED


def test_nothing_leaves_after_the_deadline() -> None:
    """A process may be held up for any time; by then somebody else may be sending the same."""

    def held_up() -> Exchange[None]:
        lag(SHORT * 1.2)
        return
        yield

    def asking(url: str) -> Exchange[Response]:
        return (yield Request(url=f"{url}/send", headers={}, body=b"{}", timeout=SHORT))

    server = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(server) as running:
        outcome, _ = http_client.run_exchanges([asking(running.url), held_up()])
    assert isinstance(outcome, TransientError)
    assert not outcome.is_ambiguous
    assert outcome.code is FailureCode.CONNECTION_FAILED
    assert server.requests == []


@pytest.mark.parametrize("key", ["secret\n", "secret\r\nX-Other: 1", "secret\u2028"])
def test_a_key_that_cannot_be_one_is_a_matter_of_the_account(key: str) -> None:
    """The classic: a secret that was mounted from a file with a line break at its end."""
    server = socket_server.KeepAlive(socket_server.response(202))
    with socket_server.serving(server) as running, pytest.raises(ProviderUnavailableError) as error:
        http_client.post(running.url, body=b"{}", headers={"Authorization": key}, timeout=LIMIT)
    assert "secret" not in error.value.reason
    assert server.requests == []


@pytest.mark.parametrize("url", ["", "api.example.com", "ftp://127.0.0.1", "http://", "http://[::"])
def test_an_address_that_cannot_be_one_is_a_matter_of_the_account(url: str) -> None:
    with pytest.raises(ProviderUnavailableError):
        http_client.post(url, body=b"{}", headers={}, timeout=LIMIT)


def drip(text: bytes) -> socket_server.Handler:
    """Return a handler that says ``text`` one byte at a time."""
    return socket_server.answering(*[text[i : i + 1] for i in range(len(text))], pause=PAUSE)


@pytest.mark.parametrize(
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
    ids=[
        *("never answers", "stops in the status line", "stops in the headers"),
        *("stops in the body", "drips headers", "drips everything", "drips a body"),
        "says wait again and again",
    ],
)
def test_a_deadline_is_kept_and_the_outcome_unknown(handler: socket_server.Handler) -> None:
    with (
        socket_server.serving(handler) as server,
        pytest.raises(TransientError) as error,
        at_its_deadline(),
    ):
        post(server.url, timeout=SHORT)
    assert error.value.is_ambiguous
    assert error.value.code is FailureCode.TIMEOUT


def test_a_server_that_does_not_read_is_not_waited_for_beyond_the_deadline() -> None:
    with (
        socket_server.serving(socket_server.unreading) as server,
        pytest.raises(TransientError) as error,
        at_its_deadline(),
    ):
        post(server.url, timeout=SHORT, body=b"x" * 20_000_000)
    assert error.value.is_ambiguous


def close_after_reading(connection: socket.socket) -> None:
    socket_server.read_request(connection)


@pytest.mark.parametrize(
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
    ids=[
        *("reset", "hung up", "truncated", "truncated chunk", "broken chunk", "not HTTP"),
        *("no status", "endless header", "endless headers", "over 64 KB", "endless body"),
        "broken encoding",
    ],
)
def test_after_the_bytes_have_left_a_broken_answer_may_mean_that_it_went(
    handler: socket_server.Handler,
) -> None:
    error = failure(handler)
    assert error.is_ambiguous
    assert error.code is FailureCode.CONNECTION_LOST


def test_an_answer_of_64_kb_is_read() -> None:
    with socket_server.serving(
        socket_server.answering(socket_server.response(200, b"x" * http_client.MAX_BODY))
    ) as server:
        assert len(post(server.url).body) == http_client.MAX_BODY


@pytest.mark.parametrize("status", [302, 400, 503])
def test_a_refusal_of_over_64_kb_is_one_and_its_beginning_is_kept(status: int) -> None:
    """A proxy's error page may be of any length."""
    with socket_server.serving(
        socket_server.answering(socket_server.response(status, b"x" * 300_000))
    ) as server:
        answer = post(server.url)
    assert (answer.status, len(answer.body)) == (status, http_client.MAX_BODY)


def test_an_answer_that_unpacks_to_more_than_64_kb_is_not_read() -> None:
    import gzip

    packed = gzip.compress(b"x" * 50_000_000)
    assert len(packed) < http_client.MAX_BODY
    error = failure(
        socket_server.answering(socket_server.response(200, packed, "Content-Encoding: gzip"))
    )
    assert error.is_ambiguous


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 401 No\r\nContent-Length: 500\r\n\r\nonly this",
        b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        socket_server.response(429, b"not gzip", "Content-Encoding: gzip"),
    ],
    ids=["truncated", "truncated chunk", "broken encoding"],
)
def test_a_refusal_is_one_however_its_body_ends(answer: bytes) -> None:
    with socket_server.serving(socket_server.answering(answer)) as server:
        assert post(server.url).status in (401, 429, 503)
