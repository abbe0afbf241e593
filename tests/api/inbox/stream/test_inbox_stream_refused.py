"""Streams that are not begun, and those that cost too much."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from api.inbox.stream.app import StreamTiming
from api.inbox.stream.subscriptions import MAX_PER_INBOX
from domain.time import utc_now
from tests.support.clients.api import App
from tests.support.clients.inbox import Person, forged, token
from tests.support.clients.sse import BY_HINT, REFUSED, Listener, Process, process
from tests.support.fakes.mongo_failpoints import failing
from tests.support.waiting import until

PAGE = "https://app.example.com"


@pytest.fixture
def streams(db: None, broker: Any, settings: Any) -> Iterator[Process]:
    """Give a test a stream process with room for a few."""
    settings.INBOX_STREAMS = MAX_PER_INBOX + 2
    settings.INBOX_ORIGINS = frozenset({PAGE})
    with process(pace=BY_HINT) as one:
        yield one


def refused(stream: Listener) -> tuple[int, str]:
    problem = stream.problem()
    assert stream.headers["content-type"] == "application/problem+json"
    assert stream.headers["x-request-id"] == problem["request_id"]
    assert stream.status == problem["status"]
    return stream.status, problem["code"]


def test_the_web_says_where_streams_are(app: App, settings: Any) -> None:
    """A thread of the web that held a stream would answer nobody else."""
    settings.INBOX_STREAM_URL = "https://stream.example.com"
    answer = Person(app=app).get("/stream")
    assert (answer.status_code, answer.json()["code"]) == (421, "not_here")
    assert "https://stream.example.com/api/v1/inbox/stream" in answer.json()["detail"]
    assert Person(app=app, token="x").get("/stream").status_code == 401


def test_a_token_that_does_not_hold_opens_no_stream(app: App, streams: Process) -> None:
    good = token(app)
    late = token(app, now=utc_now() - timedelta(hours=1))
    for text in ("", "x", app.key, late, forged(good, key="x" * 40), forged(good, aud="admin")):
        with streams.open(text) as stream:
            assert refused(stream) == (401, "unauthenticated")
            assert stream.headers["www-authenticate"] == 'Bearer realm="inbox"'


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        ({"query": b"token=x"}, 400, "unknown_parameter"),
        ({"query": b"access_token=x"}, 400, "unknown_parameter"),
        ({"last_event_id": "x"}, 400, "invalid_event_id"),
        ({"last_event_id": "A" * 24}, 400, "invalid_event_id"),
        ({"last_event_id": '{"$ne": ""}'}, 400, "invalid_event_id"),
        ({"last_event_id": "\u00e9" * 24}, 400, "invalid_event_id"),
        ({"method": "POST"}, 405, "method_not_allowed"),
        ({"method": "DELETE"}, 405, "method_not_allowed"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(
    app: App, streams: Process, how: dict[str, Any], status: int, code: str
) -> None:
    with streams.open(token(app), **how) as stream:
        assert refused(stream) == (status, code)


def test_without_mongodb_it_is_to_be_asked_for_later(app: App, streams: Process) -> None:
    text = token(app)
    with failing("find", "api_clients", REFUSED), streams.open(text) as stream:
        assert refused(stream) == (503, "store_unavailable")
        assert stream.headers["retry-after"]


def test_a_person_has_some_streams_and_others_have_theirs(app: App, streams: Process) -> None:
    with ExitStack() as opened:
        first = opened.enter_context(streams.open(token(app)))
        for _ in range(MAX_PER_INBOX - 1):
            opened.enter_context(streams.open(token(app)))
        with streams.open(token(app)) as one_more:
            assert refused(one_more) == (429, "rate_limited")
            assert one_more.headers["retry-after"]
        with streams.open(token(app, "eve")) as eve:
            assert eve.status == 200
        streams.loop.call_soon_threadsafe(first.leave)
        until(lambda: len(streams.streams._connections) == MAX_PER_INBOX - 1)
        with streams.open(token(app)) as instead:
            assert instead.status == 200


def test_a_process_holds_so_many_and_no_more(app: App, streams: Process) -> None:
    with ExitStack() as opened:
        for n in range(MAX_PER_INBOX + 2):
            opened.enter_context(streams.open(token(app, f"user-{n}")))
        with streams.open(token(app, "one-too-many")) as one_more:
            assert refused(one_more) == (503, "too_many_streams")
    with streams.open(token(app, "one-too-many")) as again:
        assert again.status == 200


def test_to_who_does_not_read_nothing_more_is_written(app: App) -> None:
    """Its place stays taken: it could fill the memory with connections that nobody reads."""
    pace = StreamTiming(heartbeat=0.01, poll=0.01, write_timeout=0.05)
    with process(pace=pace) as streams, streams.open(token(app), is_reading=False) as stream:
        until(lambda: stream.refused == 1)
        with streams.open(token(app)) as other:
            until(lambda: other.body.count(b":\n\n") > 20)
        assert stream.refused == 1
        assert len(streams.streams._connections) == 1
    assert len(streams.streams._connections) == 0


def test_a_page_may_follow_if_it_may_read(app: App, streams: Process) -> None:
    asked = {"origin": PAGE, "access_control_request_method": "GET"}
    with streams.open("", method="OPTIONS", **asked) as stream:
        assert (stream.status, stream.body) == (204, b"")
        assert stream.headers["access-control-allow-origin"] == PAGE
        assert "last-event-id" in stream.headers["access-control-allow-headers"]
    with streams.open(token(app), origin=PAGE) as stream:
        assert (stream.status, stream.headers["access-control-allow-origin"]) == (200, PAGE)
    with streams.open(token(app), origin="https://evil.example") as stream:
        assert "access-control-allow-origin" not in stream.headers
    with streams.open("x", origin=PAGE) as stream:
        assert refused(stream)[0] == 401
        assert stream.headers["access-control-allow-origin"] == PAGE


@pytest.mark.parametrize("path", ["/", "/admin/", "/api/v1/inbox", "/api/v1/inbox/streams"])
def test_a_stream_process_answers_nothing_else(app: App, streams: Process, path: str) -> None:
    with streams.open(token(app), path=path) as stream:
        assert refused(stream) == (421, "not_here")


def test_it_says_that_it_is_alive(streams: Process) -> None:
    with streams.open("", path="/healthz") as stream:
        assert (stream.status, stream.problem()) == (200, {"status": "ok"})
