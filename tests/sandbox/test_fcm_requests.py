"""Requests to the sandbox's FCM: accepted and refused bodies."""

from typing import Any

import pytest

from sandbox import credentials
from sandbox.log import REQUESTS_FILE, read_records
from tests.support.clients.sandbox import Box
from tests.support.providers.sandbox_fcm import FCMClient, details, error, push, violations
from tests.support.tables import each_case

LIMIT = 4 * 1024 * 1024


@pytest.fixture
def pushes(shared_box: Box) -> FCMClient:
    return FCMClient(box=shared_box)


def test_accepted_push_has_a_name(pushes: FCMClient) -> None:
    answer = pushes.send()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json; charset=UTF-8"
    name = answer.json()["name"]
    assert name.startswith(f"projects/{credentials.FCM_PROJECT_ID}/messages/0:")
    assert pushes.box.requests()[0]["message_id"] == name


def test_push_is_recorded(pushes: FCMClient) -> None:
    body = {"message": push("device-1", reference="ref-7")}
    pushes.post(body)
    record = list(read_records(pushes.box.sandbox.data / REQUESTS_FILE))[-1]
    assert record.json() == body
    assert (record.provider, record.status, record.accepted) == ("fcm", 200, True)
    assert (record.recipients, record.references) == (("device-1",), ("ref-7",))
    assert (record.title, record.is_message) == ("Your order has shipped", True)


def test_push_without_an_access_token_is_refused(pushes: FCMClient) -> None:
    url = f"{pushes.box.sandbox.url}/v1/projects/x/messages:send"
    answer = pushes.box.http.request("POST", url, json={"message": push()})
    assert (answer.status, error(answer)["status"]) == (401, "UNAUTHENTICATED")
    assert details(answer)["ErrorInfo"]["reason"] == "CREDENTIALS_MISSING"
    assert "WWW-Authenticate" in answer.headers


@pytest.mark.parametrize("token", ["other", "ya29.", "ya29.made.up", "ya29.é"])
def test_unknown_access_token_is_refused(pushes: FCMClient, token: str) -> None:
    answer = pushes.post({"message": push()}, Authorization=f"Bearer {token}".encode())
    assert answer.status == 401
    assert details(answer)["ErrorInfo"]["reason"] == "ACCESS_TOKEN_TYPE_UNSUPPORTED"


def test_access_token_for_another_api_is_refused(pushes: FCMClient) -> None:
    token = pushes.sign_in(scope="https://www.googleapis.com/auth/userinfo.email")
    answer = pushes.post({"message": push()}, access=token)
    assert (answer.status, error(answer)["status"]) == (403, "PERMISSION_DENIED")
    assert details(answer)["ErrorInfo"]["reason"] == "ACCESS_TOKEN_SCOPE_INSUFFICIENT"


def test_other_project_is_not_found_without_an_fcm_error(pushes: FCMClient) -> None:
    answer = pushes.post({"message": push()}, project="another")
    assert (answer.status, error(answer)["status"], details(answer)) == (404, "NOT_FOUND", {})


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/v1/projects/{credentials.FCM_PROJECT_ID}/messages:send"),
        ("POST", f"/v1/projects/{credentials.FCM_PROJECT_ID}/messages:sendAll"),
        ("POST", "/v1/projects"),
    ],
)
def test_other_path_returns_a_404_page(pushes: FCMClient, method: str, path: str) -> None:
    answer = pushes.box.http.request(method, pushes.box.sandbox.url + path)
    assert (answer.status, b"Error 404 (Not Found)!!1" in answer.data) == (404, True)
    assert answer.headers["Content-Type"].startswith("text/html")


@pytest.mark.parametrize("raw", [b"", b"{", b"{'a': 1}", b'"\xff"', b"[" * 100_000, b"{} {}"])
def test_body_that_is_not_json_is_refused(pushes: FCMClient, raw: bytes) -> None:
    answer = pushes.post(raw)
    assert (answer.status, error(answer)["status"]) == (400, "INVALID_ARGUMENT")
    assert error(answer)["message"].startswith("Invalid JSON payload received.")
    assert "FcmError" not in details(answer)


def test_form_is_refused(pushes: FCMClient) -> None:
    kind = "application/x-www-form-urlencoded"
    answer = pushes.post(b"token=x", **{"Content-Type": kind})
    assert "Cannot bind query parameter" in error(answer)["message"]


def test_body_over_four_megabytes_is_refused(pushes: FCMClient) -> None:
    answer = pushes.post(b"x" * (LIMIT + 1))
    message = error(answer)["message"]
    assert message == f"Request payload size exceeds the limit: {LIMIT} bytes."


@pytest.mark.parametrize(
    "changes",
    [
        {"data": []},
        {"android": "high"},
        {"android": {"ttl": 5}},
        {"apns": {"payload": "x"}},
        {"token": 5},
    ],
)
def test_value_of_a_wrong_type_is_refused_without_an_fcm_error(
    pushes: FCMClient, changes: dict[str, Any]
) -> None:
    answer = pushes.post({"message": push(**changes)})
    assert (answer.status, error(answer)["status"]) == (400, "INVALID_ARGUMENT")
    assert set(details(answer)) == {"BadRequest"}


@pytest.mark.parametrize("body", [[], "text", 5, None, {}, {"message": "text"}])
def test_body_without_a_message_is_refused(pushes: FCMClient, body: Any) -> None:
    assert error(pushes.post(body))["message"].startswith("Invalid JSON payload received.")


@each_case(
    "changes, field",
    [
        ({"token": None}, "message"),
        ({"token": ""}, "message"),
        ({"token": "has spaces"}, "message.token"),
        ({"token": "x" * 4097}, "message.token"),
        ({"token": None, "topic": "no topic"}, "message.topic"),
        ({"data": {"from": "x"}}, "message.data"),
        ({"data": {"google.x": "x"}}, "message.data"),
        ({"data": {"gcm_id": "x"}}, "message.data"),
        ({"android": {"data": {"message_type": "x"}}}, "message.android.data"),
        ({"android": {"ttl": "-1s"}}, "message.android.ttl"),
        ({"android": {"ttl": "2419201s"}}, "message.android.ttl"),
        ({"android": {"notification": {"color": "red"}}}, "message.android.notification.color"),
        ({"apns": {"headers": {"apns-priority": "7"}}}, "message.apns.headers"),
        ({"apns": {"headers": {"apns-expiration": "soon"}}}, "message.apns.headers"),
        ({"apns": {"headers": {"apns-collapse-id": "x" * 65}}}, "message.apns.headers"),
        ({"apns": {"payload": {"aps": "x"}}}, "message.apns.payload.aps"),
        (
            {"webpush": {"fcm_options": {"link": "http://example.com"}}},
            "message.webpush.fcm_options.link",
        ),
        ({"topic": "news"}, "message"),
        ({"data": {"x": "x" * 4096}}, "message"),
        ({"notification": {"body": "é" * 2048}, "data": {"x": "y"}}, "message"),
        ({"apns": {"payload": {"aps": {"alert": "x" * 4096}}}}, "message"),
        ({"token": None, "topic": "news", "data": {"x": "x" * 2048}}, "message"),
    ],
)
def test_invalid_message_is_refused_with_an_fcm_error(
    pushes: FCMClient, changes: dict[str, Any], field: str
) -> None:
    answer = pushes.post({"message": push(**changes)})
    assert (answer.status, violations(answer)) == (400, [field])
    assert details(answer)["FcmError"]["errorCode"] == "INVALID_ARGUMENT"
    assert not pushes.box.requests()[0]["accepted"]


@each_case(
    "changes",
    [
        {"data": {"x": "x" * 4000}, "notification": None},
        {"token": None, "topic": "news"},
        {"token": None, "topic": "/topics/news"},
        {"notification": None, "data": {"only": "data"}},
        {"notification": None, "data": None},
        {"android": {"priority": "high", "ttl": "3.5s", "collapse_key": "orders"}},
        {
            "android": {
                "notification": {
                    "tag": "t",
                    "color": "#ff0000",
                    "notification_priority": "PRIORITY_MAX",
                    "visibility": "PRIVATE",
                    "notification_count": 3,
                    "event_time": "2026-01-01T12:00:00Z",
                    "vibrate_timings": ["0.5s"],
                    "title_loc_args": ["a"],
                    "light_settings": {"color": {"red": 1, "alpha": 0.5}},
                }
            }
        },
        {
            "apns": {
                "headers": {"apns-priority": "5", "apns-collapse-id": "x" * 64},
                "payload": {"aps": {"alert": {"title": "T"}, "badge": 3}, "own": [1, None]},
            }
        },
        {"webpush": {"notification": {"actions": [1]}, "fcm_options": {"link": "https://a.b"}}},
    ],
)
def test_unusual_message_is_accepted(pushes: FCMClient, changes: dict[str, Any]) -> None:
    answer = pushes.post({"message": push(**changes)})
    assert answer.status == 200, answer.data


def test_validate_only_sends_nothing(pushes: FCMClient) -> None:
    answer = pushes.post({"message": push(), "validate_only": True})
    assert answer.json()["name"].endswith("/messages/fake_message_id")
    [recorded, *_] = pushes.box.requests()
    assert (recorded["outcome"], recorded["accepted"]) == ("only-checked", False)
    wrong = {"message": push("unregistered-1"), "validate_only": True}
    assert pushes.post(wrong).status == 404
