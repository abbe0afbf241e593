"""FCM access tokens: shared, renewed in time, and errors."""

import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from domain.errors import ProviderError, ProviderUnavailableError
from providers.contract import SendResult
from providers.fcm import credentials
from providers.fcm.provider import FCM
from tests.support.factories.notifications import FIXED_NOON
from tests.support.fakes import socket_server
from tests.support.providers.fcm import TOKENS, Project, push
from tests.support.waiting import LIMIT, ending, until

NAME = socket_server.response(200, b'{"name": "projects/shop/messages/1"}')
REFUSED = socket_server.response(401, b'{"error": {"code": 401, "status": "UNAUTHENTICATED"}}')
COLD = 64


def granted(**fields: Any) -> bytes:
    grant = {"access_token": "ya29.one", "expires_in": 3600, "token_type": "Bearer"}
    return socket_server.response(200, json.dumps(grant | fields).encode())


def attempt(fcm: FCM, *, timeout: float = LIMIT) -> SendResult | ProviderError:
    try:
        return fcm.send(push(), timeout=timeout)
    except ProviderError as error:
        return error


def at_once(project: Project, count: int = COLD) -> list[SendResult | ProviderError]:
    """Send from many new threads at once."""
    start = threading.Barrier(count)

    def send(_number: int) -> SendResult | ProviderError:
        fcm = project.fcm()
        start.wait(LIMIT)
        return attempt(fcm)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(send, range(count)))


class Clock:
    def __init__(self) -> None:
        self.now = FIXED_NOON

    def __call__(self) -> datetime:
        return self.now


class Endpoint:
    """Firebase and a token endpoint made of bare sockets, and a clock."""

    def __init__(
        self,
        project: Project,
        google: socket_server.SocketServer,
        firebase: socket_server.SocketServer,
    ) -> None:
        self.google = google
        self.clock = Clock()
        key = {**project.key, "token_uri": f"{google.url}/token"}
        self.fcm = FCM(credentials=json.dumps(key), base_url=firebase.url, clock=self.clock)


@contextmanager
def endpoint(
    project: Project, google: socket_server.Handler, firebase: socket_server.Handler | None = None
) -> Iterator[Endpoint]:
    with (
        socket_server.serving(google) as tokens,
        socket_server.serving(firebase or socket_server.KeepAlive(NAME)) as pushes,
    ):
        yield Endpoint(project, tokens, pushes)


def test_cold_threads_share_one_fetch(project: Project) -> None:
    results = at_once(project)
    assert all(isinstance(result, SendResult) for result in results)
    assert len(project.requests()) == COLD
    assert len(project.requests(TOKENS)) == 1


def test_threads_with_a_refused_token_share_the_next(project: Project) -> None:
    values = iter(["ya29.first", "ya29.second", "ya29.third"])
    authorized = re.compile(rb"Bearer (ya29\.\w+)")

    def google(connection: Any) -> None:
        while socket_server.read_request(connection):
            connection.sendall(granted(access_token=next(values)))

    def firebase(connection: Any) -> None:
        while request := socket_server.read_request(connection):
            found = authorized.search(request)
            taken = found is not None and found[1] == b"ya29.second"
            connection.sendall(NAME if taken else REFUSED)

    with endpoint(project, google, firebase) as one, ThreadPoolExecutor(COLD) as pool:
        results = list(pool.map(lambda _: attempt(one.fcm), range(COLD)))
    assert {type(result) for result in results} == {SendResult}
    assert next(values) == "ya29.third", "two were fetched"


@pytest.mark.parametrize("outcome", ["server-error", "invalid-grant", "unavailable", "no-token"])
def test_failed_fetch_fails_for_all_waiting_threads(project: Project, outcome: str) -> None:
    project.token_endpoint(outcome)
    results = at_once(project)
    assert {type(result) for result in results} == {ProviderUnavailableError}
    assert len({id(result) for result in results}) == COLD, "each has an error of its own"
    assert len(project.requests(TOKENS)) == 1
    assert project.requests() == []


@pytest.mark.parametrize(
    ("outcome", "status", "code"),
    [
        ("server-error", 500, "internal_failure"),
        ("unavailable", 503, "internal_failure"),
        ("bad-gateway", 502, None),
        ("invalid-grant", 400, "invalid_grant"),
        ("account-deleted", 400, "invalid_grant"),
        ("no-token", 200, None),
    ],
)
def test_refused_fetch_makes_fcm_unavailable(
    project: Project, outcome: str, status: int, code: str | None
) -> None:
    project.token_endpoint(outcome)
    error = attempt(project.fcm())
    assert type(error) is ProviderUnavailableError
    assert error.scope is None
    assert error.response is not None
    assert (error.response.status, error.response.code) == (status, code)
    assert project.requests() == []


@pytest.mark.parametrize("outcome", ["timeout", "reset", "truncated"])
def test_broken_token_endpoint_makes_fcm_unavailable(
    project: Project, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if outcome == "timeout":
        monkeypatch.setattr(credentials, "FETCH_TIMEOUT", 0.3)
    project.token_endpoint(outcome)
    error = attempt(project.fcm())
    assert type(error) is ProviderUnavailableError
    assert error.reason.startswith("No access token from Google. ")
    assert project.requests() == []


def test_slow_token_respects_the_send_timeout(project: Project) -> None:
    with endpoint(project, socket_server.stopping()) as one, ending():
        error = attempt(one.fcm, timeout=0.3)
    assert type(error) is ProviderUnavailableError
    assert error.reason == credentials.GOOGLE_TIMEOUT_REASON


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"<html>", b"[]", b"null", b"\xff", b"[" * 10_000, b'{"access_token": ""}'),
        *(b'{"access_token": 7}', b'{"access_token": "a b"}', b'{"access_token": "a\\r\\nX: 1"}'),
        b'{"access_token": "a\\n"}',
        b'{"access_token": "secret", "expires_in": 0}',
        b'{"access_token": "secret", "expires_in": -1}',
        b'{"access_token": "secret", "expires_in": "soon"}',
        b'{"access_token": "secret", "expires_in": 1e400}',
    ],
)
def test_invalid_token_answer_makes_fcm_unavailable(project: Project, body: bytes) -> None:
    with endpoint(project, socket_server.KeepAlive(socket_server.response(200, body))) as one:
        error = attempt(one.fcm)
    assert type(error) is ProviderUnavailableError
    assert "secret" not in f"{error!r} {error.response!r}"


def test_token_endpoint_retry_after_is_kept_and_redirect_refused(project: Project) -> None:
    busy = socket_server.response(429, b'{"error": "rate_limited"}', "Retry-After: 30")
    with endpoint(project, socket_server.KeepAlive(busy)) as one:
        error = attempt(one.fcm)
    assert isinstance(error, ProviderUnavailableError)
    assert error.retry_after == 30.0
    elsewhere = socket_server.KeepAlive(granted())
    with socket_server.serving(elsewhere) as other:
        moved = socket_server.response(307, b"", f"Location: {other.url}/token")
        with endpoint(project, socket_server.KeepAlive(moved)) as one:
            assert isinstance(attempt(one.fcm), ProviderUnavailableError)
        assert other.connections == 0


def test_token_is_reused_until_near_its_end(project: Project) -> None:
    google = socket_server.KeepAlive(granted())
    with endpoint(project, google) as one:
        for minutes in (0, 30, 54):
            one.clock.now = FIXED_NOON + timedelta(minutes=minutes)
            assert isinstance(attempt(one.fcm), SendResult)
        assert len(google.requests) == 1


def test_token_near_its_end_is_renewed_in_the_background(project: Project) -> None:
    google = socket_server.KeepAlive(granted())
    with endpoint(project, google) as one:
        attempt(one.fcm)
        one.clock.now = FIXED_NOON + timedelta(minutes=56)
        assert isinstance(attempt(one.fcm), SendResult)
        until(lambda: len(google.requests) == 2)
        one.clock.now = FIXED_NOON + timedelta(minutes=100)
        assert isinstance(attempt(one.fcm), SendResult)
        assert len(google.requests) == 2, "the second token has an hour of its own"


def test_failing_endpoint_is_unnoticed_while_the_token_is_valid(project: Project) -> None:
    answers = [granted()]

    def google(connection: Any) -> None:
        while socket_server.read_request(connection):
            connection.sendall(answers.pop() if answers else socket_server.response(503))

    with endpoint(project, google) as one:
        attempt(one.fcm)
        for minutes, kind in ((56, SendResult), (58, SendResult), (59.1, ProviderUnavailableError)):
            one.clock.now = FIXED_NOON + timedelta(minutes=minutes)
            assert type(attempt(one.fcm)) is kind
        answers.append(granted())
        one.clock.now += credentials.FAILURE_TTL
        assert isinstance(attempt(one.fcm), SendResult)


def test_token_is_unused_in_its_last_minute(project: Project) -> None:
    answers = [granted()]

    def google(connection: Any) -> None:
        while socket_server.read_request(connection) and answers:
            connection.sendall(answers.pop())
        connection.recv(1)

    with endpoint(project, google) as one:
        attempt(one.fcm)
        for seconds, kind in ((3539, SendResult), (3540, ProviderUnavailableError)):
            one.clock.now = FIXED_NOON + timedelta(seconds=seconds)
            timeout = LIMIT if kind is SendResult else 0.3
            assert type(attempt(one.fcm, timeout=timeout)) is kind


def test_short_token_is_used_for_half_its_life(project: Project) -> None:
    google = socket_server.KeepAlive(granted(expires_in=10))
    with endpoint(project, google) as one:
        for seconds, fetches in ((0, 1), (4, 1), (5, 2), (9, 2), (10, 3)):
            one.clock.now = FIXED_NOON + timedelta(seconds=seconds)
            assert isinstance(attempt(one.fcm), SendResult)
            assert len(google.requests) == fetches


def test_failure_is_cached_for_seconds(project: Project) -> None:
    google = socket_server.KeepAlive(socket_server.response(500))
    with endpoint(project, google) as one:
        for seconds, fetches in ((0, 1), (4, 1), (5, 2), (9, 2), (3, 3)):
            one.clock.now = FIXED_NOON + timedelta(seconds=seconds)
            assert isinstance(attempt(one.fcm), ProviderUnavailableError)
            assert len(google.requests) == fetches
