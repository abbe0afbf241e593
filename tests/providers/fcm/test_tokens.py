"""Access tokens for FCM: one fetch for everybody, in time, and no device blamed for a failure."""

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
from tests.support.factories.records import NOON
from tests.support.fakes import socket_server
from tests.support.providers.fcm import TOKENS, Project, push
from tests.support.waiting import LIMIT, ending, until

NAME = socket_server.response(200, b'{"name": "projects/shop/messages/1"}')


REFUSED = socket_server.response(401, b'{"error": {"code": 401, "status": "UNAUTHENTICATED"}}')


COLD = 64


def granted(**fields: Any) -> bytes:
    """Return the token endpoint's answer."""
    grant = {"access_token": "ya29.one", "expires_in": 3600, "token_type": "Bearer"}
    return socket_server.response(200, json.dumps(grant | fields).encode())


def attempt(fcm: FCM, *, timeout: float = LIMIT) -> SendResult | ProviderError:
    try:
        return fcm.send(push(), timeout=timeout)
    except ProviderError as error:
        return error


def at_once(project: Project, count: int = COLD) -> list[SendResult | ProviderError]:
    """Send from many threads that have never sent before, each with an account of its own."""
    start = threading.Barrier(count)

    def send(_number: int) -> SendResult | ProviderError:
        fcm = project.fcm()
        start.wait(LIMIT)
        return attempt(fcm)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(send, range(count)))


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = NOON

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


# One for all.


def test_sixty_four_cold_threads_fetch_one_access_token(project: Project) -> None:
    results = at_once(project)
    assert all(isinstance(result, SendResult) for result in results)
    assert len(project.requests()) == COLD
    assert len(project.requests(TOKENS)) == 1


def test_sixty_four_threads_whose_token_is_refused_share_the_next_one(project: Project) -> None:
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
def test_a_fetch_that_fails_fails_for_everybody_who_waits_for_it(
    project: Project, outcome: str
) -> None:
    project.token_endpoint(outcome)
    results = at_once(project)
    assert {type(result) for result in results} == {ProviderUnavailableError}
    assert len({id(result) for result in results}) == COLD, "each has an error of its own"
    assert len(project.requests(TOKENS)) == 1
    assert project.requests() == []


# No device is blamed.


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
def test_no_access_token_makes_the_channel_unavailable(
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
def test_a_token_endpoint_that_breaks_makes_the_channel_unavailable(
    project: Project, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if outcome == "timeout":
        monkeypatch.setattr(credentials, "FETCH_TIMEOUT", 0.3)
    project.token_endpoint(outcome)
    error = attempt(project.fcm())
    assert type(error) is ProviderUnavailableError
    assert error.reason.startswith("No access token from Google. ")
    assert project.requests() == []


def test_nobody_waits_for_a_slow_token_longer_than_the_send_may_take(project: Project) -> None:
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
def test_an_answer_that_is_no_access_token_is_none(project: Project, body: bytes) -> None:
    with endpoint(project, socket_server.KeepAlive(socket_server.response(200, body))) as one:
        error = attempt(one.fcm)
    assert type(error) is ProviderUnavailableError
    assert "secret" not in f"{error!r} {error.response!r}"


def test_a_token_endpoint_may_say_when_to_come_again_and_redirects_nobody(project: Project) -> None:
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


# In time.


def test_a_token_is_used_until_it_is_near_its_end(project: Project) -> None:
    google = socket_server.KeepAlive(granted())
    with endpoint(project, google) as one:
        for minutes in (0, 30, 54):
            one.clock.now = NOON + timedelta(minutes=minutes)
            assert isinstance(attempt(one.fcm), SendResult)
        assert len(google.requests) == 1


def test_a_token_near_its_end_is_renewed_while_it_is_used(project: Project) -> None:
    google = socket_server.KeepAlive(granted())
    with endpoint(project, google) as one:
        attempt(one.fcm)
        one.clock.now = NOON + timedelta(minutes=56)
        assert isinstance(attempt(one.fcm), SendResult)
        until(lambda: len(google.requests) == 2)
        one.clock.now = NOON + timedelta(minutes=100)
        assert isinstance(attempt(one.fcm), SendResult)
        assert len(google.requests) == 2, "the second token has an hour of its own"


def test_an_endpoint_that_is_away_is_not_noticed_while_a_token_is_good(project: Project) -> None:
    answers = [granted()]

    def google(connection: Any) -> None:
        while socket_server.read_request(connection):
            connection.sendall(answers.pop() if answers else socket_server.response(503))

    with endpoint(project, google) as one:
        attempt(one.fcm)
        for minutes, kind in ((56, SendResult), (58, SendResult), (59.1, ProviderUnavailableError)):
            one.clock.now = NOON + timedelta(minutes=minutes)
            assert type(attempt(one.fcm)) is kind
        answers.append(granted())
        one.clock.now += credentials.FAILURE_TTL
        assert isinstance(attempt(one.fcm), SendResult)


def test_a_token_is_not_used_in_the_last_minute_before_its_end(project: Project) -> None:
    answers = [granted()]

    def google(connection: Any) -> None:
        while socket_server.read_request(connection) and answers:
            connection.sendall(answers.pop())
        connection.recv(1)

    with endpoint(project, google) as one:
        attempt(one.fcm)
        for seconds, kind in ((3539, SendResult), (3540, ProviderUnavailableError)):
            one.clock.now = NOON + timedelta(seconds=seconds)
            timeout = LIMIT if kind is SendResult else 0.3
            assert type(attempt(one.fcm, timeout=timeout)) is kind


def test_a_short_token_serves_for_half_of_its_life(project: Project) -> None:
    google = socket_server.KeepAlive(granted(expires_in=10))
    with endpoint(project, google) as one:
        for seconds, fetches in ((0, 1), (4, 1), (5, 2), (9, 2), (10, 3)):
            one.clock.now = NOON + timedelta(seconds=seconds)
            assert isinstance(attempt(one.fcm), SendResult)
            assert len(google.requests) == fetches


def test_a_failure_is_remembered_for_seconds_and_not_by_a_clock_set_back(project: Project) -> None:
    google = socket_server.KeepAlive(socket_server.response(500))
    with endpoint(project, google) as one:
        for seconds, fetches in ((0, 1), (4, 1), (5, 2), (9, 2), (3, 3)):
            one.clock.now = NOON + timedelta(seconds=seconds)
            assert isinstance(attempt(one.fcm), ProviderUnavailableError)
            assert len(google.requests) == fetches
