"""Push by FCM: whose account it is, what of it is shown, and what is done without one."""

import json
import logging
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
import structlog
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from domain.errors import ProviderError, ProviderUnavailableError
from providers.contract import Provider
from providers.fcm import credentials as fcm_credentials
from providers.fcm.credentials import InvalidCredentialsError, ServiceAccount, read_service_account
from providers.fcm.provider import FCM
from tests.support.factories.records import NOON
from tests.support.providers.fcm import TOKENS, Project, now, push
from tests.support.waiting import LIMIT


def another_kind_of_key() -> str:
    pem = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return pem.decode()


def unavailable(fcm: FCM) -> ProviderUnavailableError:
    with pytest.raises(ProviderError) as error:
        fcm.send(push(), timeout=LIMIT)
    assert isinstance(error.value, ProviderUnavailableError)
    return error.value


def test_it_is_a_channel_that_nobody_reports_to(project: Project) -> None:
    fcm: Provider = project.fcm()
    assert fcm.name == "fcm"
    with pytest.raises(ValueError, match="no webhooks"):
        fcm.parse_receipts({}, b"{}")


# Whose it is.


def test_the_account_is_a_file_or_its_content(project: Project) -> None:
    for credentials in (str(project.sandbox.service_account), f"\n {json.dumps(project.key)}"):
        assert project.fcm(credentials=credentials).send(push(), timeout=LIMIT).provider_id


def test_a_fingerprint_tells_projects_and_service_accounts_apart(project: Project) -> None:
    key = project.key
    accounts = [
        project.fcm(),
        project.fcm(project_id="another"),
        project.fcm(credentials=json.dumps({**key, "client_email": "else@example.com"})),
        project.fcm(credentials="/nowhere"),
        project.fcm(credentials="/nowhere", project_id="another"),
    ]
    names = [one.account for one in accounts]
    assert len(set(names)) == len(names)
    for name in names:
        provider, _, fingerprint = name.partition(":")
        assert provider == "fcm"
        assert len(bytes.fromhex(fingerprint)) == 4
    same = project.fcm(credentials=json.dumps({**key, "private_key_id": "rotated"}))
    assert same.account == names[0], "a new key of the same account is the same account"


def test_pushes_go_to_the_accounts_project_or_to_the_one_that_is_named(project: Project) -> None:
    project.fcm().send(push(), timeout=LIMIT)
    unavailable(project.fcm(project_id="a/b c"))
    assert [request["path"] for request in project.requests()] == [
        "/v1/projects/notify-sandbox/messages:send",
        "/v1/projects/a/b c/messages:send",
    ]


def test_a_new_key_in_the_file_is_used_from_the_next_fetch_on(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcm_credentials, "FAILURE_TTL", fcm_credentials.FAILURE_TTL * 0)
    file = tmp_path / "account.json"
    file.write_text(json.dumps({**project.key, "client_email": "gone@example.com"}))
    fcm = project.fcm(credentials=str(file))
    error = unavailable(fcm)
    assert error.response is not None
    assert error.response.code == "invalid_grant"
    file.write_text(json.dumps(project.key))
    assert fcm.send(push(), timeout=LIMIT).provider_id


# What is done without one.


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"private_key": "none"}, "The configured Firebase service account is invalid."),
        ({"private_key": None}, "The configured Firebase service account is invalid."),
        ({"client_email": ""}, "The configured Firebase service account is invalid."),
        ({"client_email": 7}, "The configured Firebase service account is invalid."),
        ({"project_id": ""}, "No Firebase project is configured."),
    ],
)
def test_an_account_that_is_none_makes_the_channel_unavailable(
    project: Project, changes: dict[str, Any], reason: str
) -> None:
    fcm = project.fcm(credentials=json.dumps({**project.key, **changes}))
    assert unavailable(fcm).reason == reason
    assert fcm.account.startswith("fcm:")
    assert project.requests() == project.requests(TOKENS) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "The Firebase service account's file can't be read."),
        (b"", "The configured Firebase service account is invalid."),
        (b"[]", "The configured Firebase service account is invalid."),
        (b"\xff\xfe", "The configured Firebase service account is invalid."),
        (b'{"a":' * 10_000, "The configured Firebase service account is invalid."),
        (b" " * 100_000, "The configured Firebase service account is invalid."),
    ],
)
def test_a_file_that_holds_no_account_makes_the_channel_unavailable(
    project: Project, tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "account.json"
    if content is not None:
        file.write_bytes(content)
    assert unavailable(project.fcm(credentials=str(file))).reason == reason


@pytest.mark.parametrize("source", ["", "  \n", "a\x00b", "/", "{", '{"client_email": "\ud800"}'])
def test_what_is_no_account_is_said_to_be_none(source: str) -> None:
    with pytest.raises(InvalidCredentialsError):
        read_service_account(source)


def test_a_key_of_another_kind_is_none(project: Project) -> None:
    key = {**project.key, "private_key": another_kind_of_key()}
    with pytest.raises(InvalidCredentialsError):
        read_service_account(json.dumps(key)).assertion(now=NOON)


@pytest.mark.parametrize("uri", ["", "ftp://127.0.0.1/token", "127.0.0.1", "http://[/token"])
def test_a_token_endpoint_that_is_no_address_makes_the_channel_unavailable(
    project: Project, uri: str
) -> None:
    unavailable(project.fcm(credentials=json.dumps({**project.key, "token_uri": uri})))


def test_an_address_of_firebase_that_is_none_makes_the_channel_unavailable(
    project: Project,
) -> None:
    unavailable(project.fcm(base_url="fcm.googleapis.com"))


# What is shown, and what is used.


def test_no_secret_is_shown_or_logged(project: Project, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = "dQw4w9WgXcQ-APA91bH"
    fcm = project.fcm(credentials=json.dumps(project.key))
    with structlog.testing.capture_logs() as events:
        fcm.send(push(token), timeout=LIMIT)
        project.token_endpoint("invalid-grant")
        unavailable(project.fcm(credentials=json.dumps(project.key) + " "))
    access = fcm_credentials.shared_token_cache(fcm.credentials, clock=now)._token
    assert access is not None
    account: ServiceAccount = read_service_account(fcm.credentials)
    said = f"{fcm!r} {vars(fcm)['_client']!r} {access!r} {account!r} {events} {caplog.text}"
    assert [event["event"] for event in events] == ["fcm_token_fetched", "fcm_token_failed"]
    for secret in (token, access.value, project.key["private_key"][40:80], "assertion"):
        assert secret not in said


def test_none_of_the_librarys_own_transport_is_used(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def used(*_: Any, **__: Any) -> None:
        raise AssertionError("pyfcm's own transport is used")

    monkeypatch.setattr(requests.Session, "send", used)
    # The name in that module alone: other threads of this process sleep, too.
    monkeypatch.setattr("pyfcm.baseapi.time", SimpleNamespace(sleep=used))
    fcm = project.fcm()
    fcm.send(push("retry-after-1"), timeout=LIMIT)
    headers = fcm._client.request_headers()
    assert headers["Authorization"].startswith("Bearer ya29.")
    assert len(project.requests(TOKENS)) == 1


def test_a_forked_child_has_access_tokens_of_its_own(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = fcm_credentials.shared_token_cache("source", clock=now)
    assert fcm_credentials.shared_token_cache("source", clock=now) is mine
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert fcm_credentials.shared_token_cache("source", clock=now) is not mine
