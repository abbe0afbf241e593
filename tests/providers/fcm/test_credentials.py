"""FCM's service account and access tokens."""

import json
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import structlog
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from domain.errors import ProviderError, ProviderUnavailableError
from notifyproject.platform.event_loop import run
from providers.contract import SendResult
from providers.fcm import credentials as fcm_credentials
from providers.fcm.credentials import InvalidCredentialsError, ServiceAccount, read_service_account
from providers.fcm.provider import FCM
from tests.support.factories.notifications import FIXED_NOON
from tests.support.fakes import socket_server
from tests.support.fork import become_child
from tests.support.providers.fcm import TOKENS, Project, now, push
from tests.support.tables import each_case
from tests.support.threads import at_once
from tests.support.waiting import LIMIT, ending, until


def another_kind_of_key() -> str:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem.decode()


def unavailable(fcm: FCM) -> ProviderUnavailableError:
    with pytest.raises(ProviderError) as error:
        run(fcm.send(push(), timeout=LIMIT))
    assert isinstance(error.value, ProviderUnavailableError)
    return error.value


def test_service_account_is_a_file_or_its_content(project: Project) -> None:
    for credentials in (str(project.sandbox.service_account), f"\n {json.dumps(project.key)}"):
        assert run(project.fcm(credentials=credentials).send(push(), timeout=LIMIT)).provider_id


def test_account_name_distinguishes_projects_and_service_accounts(project: Project) -> None:
    key = project.key
    accounts = [
        project.fcm(),
        project.fcm(project_id="another"),
        project.fcm(credentials=json.dumps({**key, "client_email": "else@example.com"})),
        project.fcm(credentials="/nowhere"),
        project.fcm(credentials="/nowhere", project_id="another"),
    ]
    names = [account.account for account in accounts]
    assert len(set(names)) == len(names)
    for name in names:
        provider, _, fingerprint = name.partition(":")
        assert provider == "fcm"
        assert len(bytes.fromhex(fingerprint)) == 4
    same = project.fcm(credentials=json.dumps({**key, "private_key_id": "rotated"}))
    assert same.account == names[0], "a new key of the same account is the same account"


def test_pushes_go_to_the_configured_project(project: Project) -> None:
    run(project.fcm().send(push(), timeout=LIMIT))
    unavailable(project.fcm(project_id="a/b c"))
    assert [request["path"] for request in project.requests()] == [
        "/v1/projects/notify-sandbox/messages:send",
        "/v1/projects/a/b c/messages:send",
    ]
    assert project.requests()[0]["body"]["validate_only"] is False


def test_new_key_in_the_file_is_used_at_the_next_fetch(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcm_credentials, "FAILURE_TTL", fcm_credentials.FAILURE_TTL * 0)
    file = tmp_path / "account.json"
    file.write_text(json.dumps({**project.key, "client_email": "gone@example.com"}))
    fcm = project.fcm(credentials=str(file))
    error = unavailable(fcm)
    assert error.response.code == "invalid_grant"
    file.write_text(json.dumps(project.key))
    assert run(fcm.send(push(), timeout=LIMIT)).provider_id


@each_case(
    "changes, reason",
    [
        ({"private_key": "none"}, "The configured Firebase service account is invalid."),
        ({"private_key": None}, "The configured Firebase service account is invalid."),
        ({"client_email": ""}, "The configured Firebase service account is invalid."),
        ({"client_email": 7}, "The configured Firebase service account is invalid."),
        ({"project_id": ""}, "No Firebase project is configured."),
    ],
)
def test_invalid_service_account_makes_fcm_unavailable(
    project: Project, changes: dict[str, Any], reason: str
) -> None:
    fcm = project.fcm(credentials=json.dumps({**project.key, **changes}))
    assert unavailable(fcm).reason.startswith(reason)
    assert fcm.account.startswith("fcm:")
    assert project.requests() == project.requests(TOKENS) == []


@each_case(
    "content, reason",
    [
        (None, "The Firebase service account's file can't be read."),
        (b"", "The configured Firebase service account is invalid."),
        (b"[]", "The configured Firebase service account is invalid."),
        (b"\xff\xfe", "The configured Firebase service account is invalid."),
        (b'{"a":' * 10_000, "The configured Firebase service account is invalid."),
        (b" " * 100_000, "The configured Firebase service account is invalid."),
    ],
)
def test_invalid_file_makes_fcm_unavailable(
    project: Project, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "account.json"
    if content is not None:
        file.write_bytes(content)
    assert unavailable(project.fcm(credentials=str(file))).reason.startswith(reason)


@each_case("source", ["", "  \n", "a\x00b", "/", "{", '{"client_email": "\ud800"}'])
def test_invalid_source_is_refused(source: str) -> None:
    with pytest.raises(InvalidCredentialsError):
        read_service_account(source)


def test_other_key_type_is_refused(project: Project) -> None:
    key = {**project.key, "private_key": another_kind_of_key()}
    with pytest.raises(InvalidCredentialsError):
        read_service_account(json.dumps(key)).assertion(now=FIXED_NOON)


@each_case("uri", ["", "ftp://127.0.0.1/token", "127.0.0.1", "http://[/token"])
def test_invalid_token_uri_makes_fcm_unavailable(project: Project, uri: str) -> None:
    unavailable(project.fcm(credentials=json.dumps({**project.key, "token_uri": uri})))


def test_invalid_base_url_makes_fcm_unavailable(project: Project) -> None:
    unavailable(project.fcm(base_url="fcm.googleapis.com"))


def test_no_secret_is_shown_or_logged(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = "dQw4w9WgXcQ-APA91bH"
    fcm = project.fcm(credentials=json.dumps(project.key))
    with structlog.testing.capture_logs() as events:
        run(fcm.send(push(token), timeout=LIMIT))
        project.token_endpoint("invalid-grant")
        unavailable(project.fcm(credentials=json.dumps(project.key) + " "))
    access = fcm_credentials.shared_token_cache(fcm.credentials, clock=now)._token
    assert access is not None
    account: ServiceAccount = read_service_account(fcm.credentials)
    shown = f"{fcm!r} {vars(fcm)['_client']!r} {access!r} {account!r} {events} {caplog.text}"
    assert [event["event"] for event in events] == ["fcm_token_fetched", "fcm_token_failed"]
    for secret in (token, access.value, project.key["private_key"][40:80], "assertion"):
        assert secret not in shown


def test_transport_of_the_library_is_unused(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used(*_: Any, **__: Any) -> None:
        raise AssertionError("pyfcm's own transport is used")

    monkeypatch.setattr(requests.Session, "send", used)
    # The name in that module alone: other threads of this process sleep, too.
    monkeypatch.setattr("pyfcm.baseapi.time", SimpleNamespace(sleep=used))
    fcm = project.fcm()
    run(fcm.send(push("retry-after-1"), timeout=LIMIT))
    assert len(project.requests(TOKENS)) == 1


def test_forked_child_has_its_own_token_cache(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = fcm_credentials.shared_token_cache("source", clock=now)
    assert fcm_credentials.shared_token_cache("source", clock=now) is mine
    become_child(monkeypatch, fcm_credentials)
    assert fcm_credentials.shared_token_cache("source", clock=now) is not mine


NAME = socket_server.response(200, b'{"name": "projects/shop/messages/1"}')
REFUSED = socket_server.response(401, b'{"error": {"code": 401, "status": "UNAUTHENTICATED"}}')
COLD = 64


def granted(**fields: Any) -> bytes:
    grant = {"access_token": "ya29.one", "expires_in": 3600, "token_type": "Bearer"}
    return socket_server.response(200, json.dumps(grant | fields).encode())


def attempt(fcm: FCM, *, timeout: float = LIMIT) -> SendResult | ProviderError:
    try:
        return run(fcm.send(push(), timeout=timeout))
    except ProviderError as error:
        return error


def from_cold_threads(project: Project) -> list[SendResult | ProviderError]:
    return at_once(*[lambda: attempt(project.fcm())] * COLD)


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
    results = from_cold_threads(project)
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

    with endpoint(project, google, firebase) as served, ThreadPoolExecutor(COLD) as pool:
        results = list(pool.map(lambda _: attempt(served.fcm), range(COLD)))
    assert {type(result) for result in results} == {SendResult}
    assert next(values) == "ya29.third", "two were fetched"


@pytest.mark.parametrize("outcome", ["server-error", "invalid-grant", "unavailable", "no-token"])
def test_failed_fetch_fails_for_all_waiting_threads(project: Project, outcome: str) -> None:
    project.token_endpoint(outcome)
    results = from_cold_threads(project)
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
    assert (error.response.status, error.response.code) == (status, code)
    assert project.requests() == []


@each_case("outcome", ["timeout", "reset", "truncated"])
def test_broken_token_endpoint_makes_fcm_unavailable(
    project: Project, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if outcome == "timeout":
        monkeypatch.setattr(fcm_credentials, "FETCH_TIMEOUT", 0.3)
    project.token_endpoint(outcome)
    error = attempt(project.fcm())
    assert type(error) is ProviderUnavailableError
    assert error.reason.startswith("No access token from Google. ")
    assert project.requests() == []


def test_slow_token_respects_the_send_timeout(project: Project) -> None:
    with endpoint(project, socket_server.stopping()) as served, ending():
        error = attempt(served.fcm, timeout=0.3)
    assert type(error) is ProviderUnavailableError
    assert error.reason == fcm_credentials.GOOGLE_TIMEOUT_REASON


@each_case(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b"\xff",
        b"[" * 10_000,
        b'{"access_token": ""}',
        b'{"access_token": 7}',
        b'{"access_token": "a b"}',
        b'{"access_token": "a\\r\\nX: 1"}',
        b'{"access_token": "a\\n"}',
        b'{"access_token": "secret", "expires_in": 0}',
        b'{"access_token": "secret", "expires_in": -1}',
        b'{"access_token": "secret", "expires_in": "soon"}',
        b'{"access_token": "secret", "expires_in": 1e400}',
    ],
)
def test_invalid_token_answer_makes_fcm_unavailable(project: Project, body: bytes) -> None:
    with endpoint(project, socket_server.KeepAlive(socket_server.response(200, body))) as served:
        error = attempt(served.fcm)
    assert type(error) is ProviderUnavailableError
    assert "secret" not in f"{error!r} {error.response!r}"


def test_token_endpoint_retry_after_is_kept_and_redirect_refused(project: Project) -> None:
    busy = socket_server.response(429, b'{"error": "rate_limited"}', "Retry-After: 30")
    with endpoint(project, socket_server.KeepAlive(busy)) as served:
        error = attempt(served.fcm)
    assert isinstance(error, ProviderUnavailableError)
    assert error.retry_after == 30.0
    elsewhere = socket_server.KeepAlive(granted())
    with socket_server.serving(elsewhere) as other:
        moved = socket_server.response(307, b"", f"Location: {other.url}/token")
        with endpoint(project, socket_server.KeepAlive(moved)) as served:
            assert isinstance(attempt(served.fcm), ProviderUnavailableError)
        assert other.connections == 0


def test_token_is_reused_until_near_its_end(project: Project) -> None:
    google = socket_server.KeepAlive(granted())
    with endpoint(project, google) as served:
        for minutes in (0, 30, 54):
            served.clock.now = FIXED_NOON + timedelta(minutes=minutes)
            assert isinstance(attempt(served.fcm), SendResult)
        assert len(google.requests) == 1


def test_token_near_its_end_is_renewed_in_the_background(project: Project) -> None:
    google = socket_server.KeepAlive(granted())
    with endpoint(project, google) as served:
        attempt(served.fcm)
        served.clock.now = FIXED_NOON + timedelta(minutes=56)
        assert isinstance(attempt(served.fcm), SendResult)
        until(lambda: len(google.requests) == 2)
        served.clock.now = FIXED_NOON + timedelta(minutes=100)
        assert isinstance(attempt(served.fcm), SendResult)
        assert len(google.requests) == 2, "the second token has an hour of its own"


def test_failing_endpoint_is_unnoticed_while_the_token_is_valid(project: Project) -> None:
    answers = [granted()]

    def google(connection: Any) -> None:
        while socket_server.read_request(connection):
            connection.sendall(answers.pop() if answers else socket_server.response(503))

    with endpoint(project, google) as served:
        attempt(served.fcm)
        for minutes, kind in ((56, SendResult), (58, SendResult), (59.1, ProviderUnavailableError)):
            served.clock.now = FIXED_NOON + timedelta(minutes=minutes)
            assert type(attempt(served.fcm)) is kind
        answers.append(granted())
        served.clock.now += fcm_credentials.FAILURE_TTL
        assert isinstance(attempt(served.fcm), SendResult)


def test_token_is_unused_in_its_last_minute(project: Project) -> None:
    answers = [granted()]

    def google(connection: Any) -> None:
        while socket_server.read_request(connection) and answers:
            connection.sendall(answers.pop())
        connection.recv(1)

    with endpoint(project, google) as served:
        attempt(served.fcm)
        for seconds, kind in ((3539, SendResult), (3540, ProviderUnavailableError)):
            served.clock.now = FIXED_NOON + timedelta(seconds=seconds)
            timeout = LIMIT if kind is SendResult else 0.3
            assert type(attempt(served.fcm, timeout=timeout)) is kind


def test_short_token_is_used_for_half_its_life(project: Project) -> None:
    google = socket_server.KeepAlive(granted(expires_in=10))
    with endpoint(project, google) as served:
        for seconds, fetches in ((0, 1), (4, 1), (5, 2), (9, 2), (10, 3)):
            served.clock.now = FIXED_NOON + timedelta(seconds=seconds)
            assert isinstance(attempt(served.fcm), SendResult)
            assert len(google.requests) == fetches


def test_failure_is_cached_for_seconds(project: Project) -> None:
    google = socket_server.KeepAlive(socket_server.response(500))
    with endpoint(project, google) as served:
        for seconds, fetches in ((0, 1), (4, 1), (5, 2), (9, 2), (3, 3)):
            served.clock.now = FIXED_NOON + timedelta(seconds=seconds)
            assert isinstance(attempt(served.fcm), ProviderUnavailableError)
            assert len(google.requests) == fetches
