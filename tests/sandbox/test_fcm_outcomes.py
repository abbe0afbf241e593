"""FCM's magic tokens: raw responses, and results of client libraries."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from typing import Any

import pytest

from sandbox import exchange
from tests.support.clients.sandbox import QUICK, Box
from tests.support.providers.sandbox_fcm import FCMClient, details, error, push, violations
from tests.support.tables import each_case


@pytest.fixture
def pushes(box: Box) -> FCMClient:
    return FCMClient(box=box)


@each_case(
    "token, code, status, fcm_code",
    [
        ("unregistered-1", 404, "NOT_FOUND", "UNREGISTERED"),
        ("unregistered", 404, "NOT_FOUND", "UNREGISTERED"),
        ("UNREGISTERED_1:APA91b" + "x" * 134, 404, "NOT_FOUND", "UNREGISTERED"),
        ("wrong-sender-1", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
        ("invalid-1", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("bad-field-1", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("too-large-1", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
        ("ratelimit-1", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
        ("ratelimit-info-1", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
        ("ratelimit-bare-1", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
        ("third-party-auth-1", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
        ("server-error-1", 500, "INTERNAL", "INTERNAL"),
        ("error-1", 500, "INTERNAL", "INTERNAL"),
        ("unavailable-1", 503, "UNAVAILABLE", "UNAVAILABLE"),
    ],
)
def test_refusal_has_its_status_and_fcm_code(
    pushes: FCMClient, token: str, code: int, status: str, fcm_code: str
) -> None:
    answer = pushes.send(token)
    assert (answer.status, error(answer)["status"]) == (code, status)
    assert details(answer)["FcmError"]["errorCode"] == fcm_code
    recorded = pushes.box.requests()[0]
    assert (recorded["status"], recorded["accepted"]) == (code, False)
    assert recorded["references"] == ["ref-1"]


def test_refusal_may_have_no_fcm_code_or_a_pause_in_its_body(pushes: FCMClient) -> None:
    answer = pushes.send("ratelimit-info-1")
    assert details(answer)["RetryInfo"]["retryDelay"].endswith("s")
    assert "retry-after" not in {name.lower() for name in answer.headers}
    for token, code, status in (("aborted", 409, "ABORTED"), ("no-project", 404, "NOT_FOUND")):
        answer = pushes.send(token)
        assert (answer.status, error(answer)["status"]) == (code, status)
        assert "details" not in error(answer)


def test_token_that_begins_like_a_magic_one_is_accepted(pushes: FCMClient) -> None:
    assert {pushes.send(token).status for token in ("unregistered1", "errors-1", "a-error")} == {
        200
    }


def test_invalid_token_and_invalid_field_name_different_fields(pushes: FCMClient) -> None:
    assert violations(pushes.send("invalid-1")) == ["message.token"]
    assert violations(pushes.send("bad-field-1")) == ["message.android.ttl"]


@each_case(
    "token, code, status, reason",
    [
        ("no-permission-1", 403, "PERMISSION_DENIED", "IAM_PERMISSION_DENIED"),
        ("unauthenticated-1", 401, "UNAUTHENTICATED", "ACCESS_TOKEN_EXPIRED"),
    ],
)
def test_refusal_of_the_account_has_no_fcm_error(
    pushes: FCMClient, token: str, code: int, status: str, reason: str
) -> None:
    answer = pushes.send(token)
    assert (answer.status, error(answer)["status"]) == (code, status)
    assert set(details(answer)) == {"ErrorInfo"}
    assert details(answer)["ErrorInfo"]["reason"] == reason


def test_unknown_project_has_no_details(pushes: FCMClient) -> None:
    answer = pushes.send("wrong-project-1")
    assert (answer.status, details(answer)) == (404, {})
    assert error(answer)["message"] == error(pushes.send("unregistered-1"))["message"]


def test_expired_access_token_stays_refused_and_a_new_one_is_accepted(pushes: FCMClient) -> None:
    old = pushes.sign_in()
    answer = pushes.post({"message": push("expired-token-1")}, access=old)
    assert details(answer)["ErrorInfo"]["reason"] == "ACCESS_TOKEN_EXPIRED"
    assert pushes.post({"message": push("device-1")}, access=old).status == 401
    assert pushes.post({"message": push("expired-token-1")}, access=pushes.sign_in()).status == 200


class Later(datetime):
    """A clock that is ahead by the lifetime of a short-lived token."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> Any:
        return datetime.now(tz) + timedelta(seconds=QUICK.short_lived)


def test_short_lived_access_token_expires(
    pushes: FCMClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = pushes.account["client_email"]
    pushes.box.control("PUT", f"/behaviours/{email}", {"outcome": "short-lived"})
    token = pushes.sign_in()
    assert pushes.post({"message": push()}, access=token).status == 200
    monkeypatch.setattr(exchange, "datetime", Later)
    assert pushes.post({"message": push()}, access=token).status == 401


def test_rate_limit_has_retry_after_in_seconds(pushes: FCMClient) -> None:
    assert pushes.send("ratelimit-1").headers["Retry-After"] == str(QUICK.rate_limit)


def test_rate_limit_may_have_retry_after_as_a_date(pushes: FCMClient) -> None:
    before = int(time.time())
    date = parsedate_to_datetime(pushes.send("ratelimit-date-1").headers["Retry-After"])
    after = time.time()
    assert before <= date.timestamp() - QUICK.rate_limit <= after + 1


def test_rate_limit_may_have_no_retry_after(pushes: FCMClient) -> None:
    assert "Retry-After" not in pushes.send("ratelimit-bare-1").headers


def test_script_lets_a_token_recover_after_its_number_of_failures(pushes: FCMClient) -> None:
    pushes.box.control("PUT", "/behaviours/Device-1", {"outcome": "unavailable", "times": 4})
    assert [pushes.send().status for _ in range(6)] == [503, 503, 503, 503, 200, 200]


def test_magic_topic_chooses_the_outcome(pushes: FCMClient) -> None:
    message = {"topic": "unavailable-news", "notification": {"title": "T"}}
    assert pushes.post({"message": message}).status == 503
    assert pushes.box.requests()[0]["recipients"] == ["/topics/unavailable-news"]


@each_case(
    "token, body, headers",
    [
        ("not-json-1", b"<html></html>", {"Content-Type": "text/html; charset=UTF-8"}),
        ("no-name-1", b"{}\n", {}),
        ("retry-after-1", None, {"Retry-After": "1"}),
    ],
)
def test_odd_acceptance_has_its_body_and_headers(
    pushes: FCMClient, token: str, body: bytes | None, headers: Mapping[str, str]
) -> None:
    answer = pushes.send(token)
    assert answer.status == 200
    assert body in (None, answer.data)
    assert headers.items() <= dict(answer.headers).items()
    assert pushes.box.requests()[0]["accepted"]


def test_event_of_a_push_is_refused(pushes: FCMClient) -> None:
    pushes.send()
    answer = pushes.box.refused("POST", "/events", {"reference": "ref-1", "kind": "delivered"})
    assert (answer.status, "There are: none" in answer.json()["detail"]) == (400, True)


def test_concurrent_pushes_are_counted_one_by_one(pushes: FCMClient) -> None:
    access = pushes.sign_in()
    with ThreadPoolExecutor(64) as pool:
        bodies = [{"message": push(f"device-{n}", reference=f"ref-{n}")} for n in range(64)]
        answers = list(pool.map(lambda body: pushes.post(body, access=access), bodies))
    assert {answer.status for answer in answers} == {200}
    counts = pushes.box.control("GET", "/counters")["providers"]
    assert (counts["google-oauth"]["requests"], counts["fcm"]["accepted"]) == (1, 64)
    assert counts["fcm"]["connections"] > 1
