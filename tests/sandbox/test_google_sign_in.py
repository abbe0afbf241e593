"""The sandbox's token endpoint, which exchanges assertions for access tokens."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.exceptions import RefreshError
from google.auth.transport.urllib3 import Request
from google.oauth2.service_account import Credentials

from sandbox import credentials
from sandbox.credentials import FCM_PROJECT_ID, UnreadableKeyError
from sandbox.log import REQUESTS_FILE
from tests.support.clients.sandbox import QUICK, Box, RunSandbox
from tests.support.providers.sandbox_fcm import GRANT, SCOPE, FCMClient, encoded, push

EMAIL = credentials.SERVICE_ACCOUNT_EMAIL
SHORT = "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe."
NO_SCOPE = "Invalid OAuth scope or ID token audience provided."


@dataclass(frozen=True)
class FromNow:
    """A time relative to the request: parameters are made when tests are collected."""

    seconds: int


@pytest.fixture
def pushes(box: Box) -> FCMClient:
    return FCMClient(box=box)


def test_google_auth_signs_in_with_the_service_account(box: Box) -> None:
    credentials = Credentials.from_service_account_file(
        str(box.sandbox.service_account), scopes=[SCOPE]
    )
    credentials.refresh(Request(box.http))
    assert credentials.token.startswith("ya29.")
    assert credentials.project_id == FCM_PROJECT_ID
    assert FCMClient(box=box).post({"message": push()}, access=credentials.token).status == 200


def test_valid_assertion_gets_a_token_for_an_hour(pushes: FCMClient) -> None:
    answer = pushes.ask(grant_type=GRANT, assertion=pushes.assertion())
    body = answer.json()
    assert answer.status == 200
    assert (body["expires_in"], body["token_type"]) == (3599, "Bearer")
    assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"


def test_tokens_differ(pushes: FCMClient) -> None:
    assert pushes.sign_in() != pushes.sign_in()


def test_json_parameters_are_accepted(pushes: FCMClient) -> None:
    asked = {"grant_type": GRANT, "assertion": pushes.assertion()}
    answer = pushes.box.http.request("POST", pushes.account["token_uri"], json=asked)
    assert answer.status == 200


@pytest.mark.parametrize(
    ("changes", "status", "error", "words"),
    [
        ({"iss": "other@example.com"}, 400, "invalid_grant", "Invalid grant: account not found"),
        ({"iss": None}, 400, "invalid_grant", "Invalid grant: account not found"),
        ({"aud": "https://example.com/"}, 400, "invalid_grant", "Failed audience check."),
        ({"aud": None}, 400, "invalid_grant", "Failed audience check."),
        ({"exp": FromNow(-10)}, 400, "invalid_grant", SHORT),
        ({"exp": FromNow(7300)}, 400, "invalid_grant", SHORT),
        ({"exp": None}, 400, "invalid_grant", SHORT),
        ({"exp": "soon"}, 400, "invalid_grant", SHORT),
        ({"iat": FromNow(1000)}, 400, "invalid_grant", SHORT),
        ({"iat": None}, 400, "invalid_grant", SHORT),
        ({"scope": None}, 400, "invalid_scope", NO_SCOPE),
        ({"scope": ""}, 400, "invalid_scope", NO_SCOPE),
        ({"scope": "everything"}, 400, "invalid_scope", NO_SCOPE),
        ({"scope": f"{SCOPE} everything"}, 400, "invalid_scope", NO_SCOPE),
        ({"sub": "ada@example.com"}, 401, "unauthorized_client", "Client is unauthorized"),
        ({"header": {"alg": "HS256"}}, 400, "invalid_grant", "Invalid JWT Signature."),
        ({"header": {"alg": "none"}}, 400, "invalid_grant", "Invalid JWT Signature."),
        ({"header": {"kid": "another"}}, 400, "invalid_grant", "Invalid JWT Signature."),
    ],
)
def test_invalid_assertion_is_refused_with_googles_error(
    pushes: FCMClient, changes: dict[str, Any], status: int, error: str, words: str
) -> None:
    now = int(time.time())
    claims = {
        name: now + value.seconds if isinstance(value, FromNow) else value
        for name, value in changes.items()
    }
    answer = pushes.ask(grant_type=GRANT, assertion=pushes.assertion(**claims))
    assert (answer.status, answer.json()["error"]) == (status, error)
    assert words in answer.json()["error_description"]
    [recorded] = pushes.box.requests()
    assert (recorded["outcome"], recorded["status"]) == ("not-granted", status)
    assert recorded["reason"].startswith(f"{error}: ")


def test_signature_of_another_key_is_refused(pushes: FCMClient) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    answer = pushes.ask(grant_type=GRANT, assertion=pushes.assertion(key=other))
    assert answer.json() == {
        "error": "invalid_grant",
        "error_description": "Invalid JWT Signature.",
    }


def test_changed_claim_is_refused(pushes: FCMClient) -> None:
    head, _, signature = pushes.assertion().split(".")
    now = int(time.time())
    claims = {"iss": EMAIL, "aud": pushes.account["token_uri"], "iat": now, "exp": now + 60}
    forged = f"{head}.{encoded(json.dumps(claims))}.{signature}"
    assert pushes.ask(grant_type=GRANT, assertion=forged).status == 400


@pytest.mark.parametrize(
    "assertion",
    ["x", "a.b", "a.b.c", "..", "e30.W10.x", "é.é.é", "e30.e30.e30.e30", "e30.bnVsbA.x"],
)
def test_assertion_that_is_no_jwt_is_refused(pushes: FCMClient, assertion: str) -> None:
    answer = pushes.ask(grant_type=GRANT, assertion=assertion)
    assert (answer.status, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({}, "invalid_request", "Required parameter is missing: grant_type"),
        ({"grant_type": GRANT}, "invalid_request", "Required parameter is missing: assertion"),
        ({"grant_type": "password"}, "unsupported_grant_type", "Invalid grant_type: password"),
    ],
)
def test_invalid_parameters_are_refused(
    pushes: FCMClient, fields: dict[str, str], error: str, words: str
) -> None:
    body = pushes.ask(**fields).json()
    assert body == {"error": error, "error_description": words}


def test_get_of_a_token_returns_404(pushes: FCMClient) -> None:
    assert pushes.box.get("/token").status == 404


@pytest.mark.parametrize(
    ("outcome", "status", "error"),
    [
        ("invalid-grant", 400, "invalid_grant"),
        ("account-deleted", 400, "invalid_grant"),
        ("server-error", 500, "internal_failure"),
        ("unavailable", 503, "internal_failure"),
    ],
)
def test_scripted_failure_is_answered_once(
    pushes: FCMClient, outcome: str, status: int, error: str
) -> None:
    pushes.box.control("PUT", f"/behaviours/{EMAIL}", {"outcome": outcome, "times": 1})
    answer = pushes.ask(grant_type=GRANT, assertion=pushes.assertion())
    assert (answer.status, answer.json()["error"]) == (status, error)
    assert pushes.sign_in()


def test_google_auth_raises_the_reason_of_a_refusal(box: Box) -> None:
    box.control("PUT", f"/behaviours/{EMAIL}", {"outcome": "account-deleted"})
    credentials = Credentials.from_service_account_file(
        str(box.sandbox.service_account), scopes=[SCOPE]
    )
    with pytest.raises(RefreshError, match="account not found"):
        credentials.refresh(Request(box.http))


def test_scripted_token_is_short_lived_or_missing(pushes: FCMClient) -> None:
    for outcome, lifetime in (("short-lived", QUICK.short_lived), ("no-token", None)):
        pushes.box.control("PUT", f"/behaviours/{EMAIL}", {"outcome": outcome})
        answer = pushes.ask(grant_type=GRANT, assertion=pushes.assertion())
        assert answer.json().get("expires_in") == lifetime


def test_script_for_everybody_does_not_apply_to_sign_in(pushes: FCMClient) -> None:
    pushes.box.control("PUT", "/behaviours/*", {"outcome": "server-error"})
    assert pushes.sign_in()
    pushes.box.control("PUT", "/behaviours/google-oauth:*", {"outcome": "server-error"})
    assert pushes.ask(grant_type=GRANT, assertion=pushes.assertion()).status == 500


def test_sign_in_is_counted_and_recorded_without_credentials(pushes: FCMClient) -> None:
    assertion = pushes.assertion()
    token = pushes.ask(grant_type=GRANT, assertion=assertion).json()["access_token"]
    pushes.post({"message": push()}, access=token)
    counters = pushes.box.control("GET", "/counters")
    assert counters["outcomes"] == {"granted": 1, "delivered": 1}
    assert counters["providers"]["google-oauth"]["requests"] == 1
    assert counters["accepted"] == 1
    log = (pushes.box.sandbox.data / REQUESTS_FILE).read_text()
    assert token not in log
    assert assertion.rpartition(".")[2] not in log
    recorded = pushes.box.requests("?provider=google-oauth")[0]
    assert (recorded["recipients"], recorded["is_message"]) == ([EMAIL], False)
    assert recorded["body"]["claims"]["scope"] == SCOPE


def test_account_and_tokens_survive_a_restart(run: RunSandbox) -> None:
    with run() as box:
        pushes = FCMClient(box=box)
        first, token = pushes.account, pushes.sign_in()
    with run() as box:
        pushes = FCMClient(box=box)
        assert pushes.account == {**first, "token_uri": f"{box.sandbox.url}/token"}
        assert pushes.post({"message": push()}, access=token).status == 200


def test_account_is_created_before_the_sandbox_starts(data: Path) -> None:
    path = credentials.ensure_service_account(data, url="http://127.0.0.1:8001/")
    account = json.loads(path.read_text())
    assert path == data / "fcm_service_account.json"
    assert (account["type"], account["token_uri"]) == (
        "service_account",
        "http://127.0.0.1:8001/token",
    )
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("content", ["", "{}", "no key", '{"private_key": "x"}'])
def test_unreadable_account_raises_an_error_with_advice(tmp_path: Path, content: str) -> None:
    (tmp_path / credentials.SERVICE_ACCOUNT_FILE).write_text(content)
    with pytest.raises(UnreadableKeyError, match="delete it to get a new one"):
        credentials.load_service_account(tmp_path)
