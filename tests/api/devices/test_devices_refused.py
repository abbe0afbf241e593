"""What about a device cannot be so, and what the app is told."""

from typing import Any

import pytest

from devices import queries
from notifyproject.db.collections import collection
from tests.api.devices.test_views import AWAKE, ID, ONE, TOKEN, call, device, register
from tests.support.clients.api import App, pointers
from tests.support.fakes.mongo_failpoints import failing

NO_DISK = {"errorCode": 14031}
PREFERENCES, HEARTBEAT = f"{ONE}/preferences", f"{ONE}/heartbeat"

BAD_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"user_id": ...}, "/user_id", "required"),
    ({"user_id": ""}, "/user_id", "out_of_range"),
    ({"user_id": "u" * 129}, "/user_id", "out_of_range"),
    ({"user_id": 7}, "/user_id", "wrong_type"),
    ({"user_id": None}, "/user_id", "wrong_type"),
    ({"user_id": {"$gt": ""}}, "/user_id", "wrong_type"),
    ({"user_id": "a\x00"}, "/user_id", "nul_character"),
    ({"device_token": ...}, "/device_token", "required"),
    ({"device_token": ""}, "/device_token", "invalid_token"),
    ({"device_token": "a b"}, "/device_token", "invalid_token"),
    ({"device_token": "token\n"}, "/device_token", "invalid_token"),
    ({"device_token": "tok\u00e9n"}, "/device_token", "invalid_token"),
    ({"device_token": "x" * 4097}, "/device_token", "invalid_token"),
    ({"device_token": ["x"]}, "/device_token", "wrong_type"),
    ({"platform": ...}, "/platform", "required"),
    ({"platform": "fax"}, "/platform", "unknown_platform"),
    ({"platform": ""}, "/platform", "unknown_platform"),
    ({"platform": "Ios"}, "/platform", "unknown_platform"),
    ({"app_version": "v" * 41}, "/app_version", "out_of_range"),
    ({"app_version": 3}, "/app_version", "wrong_type"),
    ({"app_version": "1\r\n2"}, "/app_version", "control_characters"),
    ({"device_model": "m" * 121}, "/device_model", "out_of_range"),
    ({"device_model": "\x1b[31m"}, "/device_model", "control_characters"),
    ({"os_version": "o" * 41}, "/os_version", "out_of_range"),
    ({"language": "portuguese please"}, "/language", "invalid_language"),
    ({"language": ""}, "/language", "invalid_language"),
    ({"language": "p" * 36}, "/language", "out_of_range"),
    ({"timezone": "Mars/Olympus"}, "/timezone", "unknown_timezone"),
    ({"timezone": "../etc/passwd"}, "/timezone", "unknown_timezone"),
    ({"is_active": True}, "/is_active", "unknown_field"),
    ({"suspicions": 0}, "/suspicions", "unknown_field"),
]


@pytest.mark.parametrize(("fields", "pointer", "code"), BAD_FIELDS)
def test_a_registration_that_makes_no_sense_is_refused(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    answer = register(app, **fields)
    assert answer.status_code == 422
    assert pointers(answer) == {pointer: code}
    assert collection("devices").count_documents({}) == 0


@pytest.mark.parametrize("language", ["pt", "pt-BR", "pt_BR", "zh-Hant-TW", "sr-Latn"])
def test_languages_may_be_written_as_devices_write_them(app: App, language: str) -> None:
    assert register(app, language=language).json()["language"] == language


def test_every_bad_field_is_named_at_once_and_no_value_is_repeated(app: App) -> None:
    answer = register(
        app,
        device_token="my secret token",
        platform="secret platform",
        language="secret language",
        timezone="secret/zone",
        os_version="secret\x07",
    )
    assert set(pointers(answer)) == {
        *("/device_token", "/platform", "/language", "/timezone", "/os_version")
    }
    assert "secret" not in answer.content.decode()


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"device_token": "a b"}, "/device_token", "invalid_token"),
        ({"device_token": None}, "/device_token", "wrong_type"),
        ({"app_version": "v" * 41}, "/app_version", "out_of_range"),
        ({"language": "?"}, "/language", "invalid_language"),
        ({"timezone": "utc+1"}, "/timezone", "unknown_timezone"),
        ({"is_active": 1}, "/is_active", "wrong_type"),
        ({"is_active": None}, "/is_active", "wrong_type"),
        ({"user_id": "bob"}, "/user_id", "unknown_field"),
        ({"platform": "ios"}, "/platform", "unknown_field"),
        ({"deactivation_reason": None}, "/deactivation_reason", "unknown_field"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused_whole(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    before = register(app).json()
    answer = call(app, "PATCH", ONE, {"os_version": "15", **fields})
    assert answer.status_code == 422
    assert pointers(answer) == {pointer: code}
    assert app.get(ONE).json() == before


ARABIC = "\u0660\u0667:\u0660\u0660"
"""07:00 in digits that are not ASCII's."""
HOURS = {"enabled": True, "start": "22:00", "end": "07:00"}
BAD_WISHES: list[tuple[Any, str, str]] = [
    ({"enabled": "yes"}, "/enabled", "wrong_type"),
    ({"enabled": None}, "/enabled", "wrong_type"),
    ({"categories": ["marketing"]}, "/categories", "wrong_type"),
    ({"categories": {"marketing": 0}}, "/categories/marketing", "wrong_type"),
    ({"categories": {"marketing": None}}, "/categories/marketing", "wrong_type"),
    ({"categories": {"$where": True}}, "/categories", "invalid_category"),
    ({"categories": {"a.b": True}}, "/categories", "invalid_category"),
    ({"categories": {"": True}}, "/categories", "invalid_category"),
    ({"categories": {"Marketing": True}}, "/categories", "invalid_category"),
    ({"categories": {"m" * 65: True}}, "/categories", "invalid_category"),
    ({"categories": {f"c{n}": True for n in range(101)}}, "/categories", "out_of_range"),
    ({"quiet_hours": {"start": "22:00"}}, "/quiet_hours/enabled", "required"),
    ({"quiet_hours": {**HOURS, "start": "24:00"}}, "/quiet_hours/start", "invalid_time"),
    ({"quiet_hours": {**HOURS, "end": "7:00"}}, "/quiet_hours/end", "invalid_time"),
    (
        {"quiet_hours": {**HOURS, "end": ARABIC}},
        "/quiet_hours/end",
        "invalid_time",
    ),
    ({"quiet_hours": {**HOURS, "end": "07:00:00"}}, "/quiet_hours/end", "out_of_range"),
    ({"quiet_hours": {**HOURS, "end": "22:00"}}, "/quiet_hours/end", "empty_quiet_hours"),
    ({"quiet_hours": {**HOURS, "timezone": "X"}}, "/quiet_hours/timezone", "unknown_timezone"),
    ({"quiet_hours": {**HOURS, "days": []}}, "/quiet_hours/days", "unknown_field"),
    ({"channels": []}, "/channels", "unknown_field"),
]


@pytest.mark.parametrize(("wishes", "pointer", "code"), BAD_WISHES)
def test_wishes_that_make_no_sense_are_refused(
    app: App, wishes: Any, pointer: str, code: str
) -> None:
    register(app)
    answer = call(app, "PUT", PREFERENCES, wishes)
    assert answer.status_code == 422
    assert pointers(answer) == {pointer: code}
    document = queries.get(ID)
    assert document is not None
    assert "notification_preferences" not in document


@pytest.mark.parametrize("name", list(AWAKE))
@pytest.mark.parametrize(("value", "code"), [(..., "required"), ("yes", "wrong_type")])
def test_a_heartbeat_tells_all_three(app: App, name: str, value: Any, code: str) -> None:
    register(app)
    body = {**AWAKE, name: value}
    answer = call(app, "POST", HEARTBEAT, {n: v for n, v in body.items() if v is not ...})
    assert (answer.status_code, pointers(answer)) == (422, {f"/{name}": code})


@pytest.mark.parametrize(
    ("query", "pointer", "code"),
    [
        ({}, "/user_id", "required"),
        ({"user_id": ""}, "/user_id", "required"),
        ({"user_id": "u" * 129}, "/user_id", "invalid"),
        ({"user_id": "a\x00"}, "/user_id", "invalid"),
        ({"user_id": "ada", "limit": "0"}, "/limit", "out_of_range"),
        ({"user_id": "ada", "limit": "101"}, "/limit", "out_of_range"),
        ({"user_id": "ada", "limit": "\u0663"}, "/limit", "out_of_range"),
        ({"user_id": "ada", "limit": "-1"}, "/limit", "out_of_range"),
    ],
)
def test_a_list_that_cannot_be_is_refused(
    app: App, query: dict[str, str], pointer: str, code: str
) -> None:
    answer = app.get("/devices", **query)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"user_id[$ne]": "x"}, "unknown_parameter"),
        ({"order": "last_seen"}, "unknown_parameter"),
        ({"user_id": ["ada", "bob"]}, "repeated_parameter"),
        ({"cursor": "forged"}, "invalid_cursor"),
        ({"cursor": ""}, "invalid_cursor"),
    ],
)
def test_parameters_that_are_none_are_refused(app: App, query: dict[str, Any], code: str) -> None:
    answer = app.get("/devices", **{"user_id": "ada", **query})
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_a_cursor_of_another_list_is_none_of_this(app: App) -> None:
    for _ in range(2):
        app.notify(user_id="ada")
    cursor = app.get("/notifications", limit=1).json()["next"]
    answer = app.get("/devices", user_id="ada", cursor=cursor)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")


@pytest.mark.parametrize("one", ["x", "0" * 64, "A" * 64, "0" * 63, ID[:-1] + "g", "%00"])
def test_a_device_that_is_not_there_is_not_found(app: App, one: str) -> None:
    calls = [
        ("GET", "", None),
        ("PATCH", "", {"language": "pt"}),
        ("PATCH", "", {"device_token": "new"}),
        ("PATCH", "", {"is_active": True}),
        ("DELETE", "", None),
        ("POST", "/heartbeat", AWAKE),
        ("PUT", "/preferences", {}),
    ]
    for method, below, body in calls:
        answer = call(app, method, f"/devices/{one}{below}", body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), method
    assert collection("devices").count_documents({}) == 0


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/devices"), ("PATCH", ONE), ("POST", HEARTBEAT), ("PUT", PREFERENCES)],
)
def test_a_body_is_a_json_object(app: App, method: str, path: str) -> None:
    assert call(app, method, path).json()["code"] == "empty_body"
    assert call(app, method, path, []).status_code == 422
    register(app)
    answer = call(app, method, path, {**device(), "extra": {"a": 1}})
    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/devices"), ("DELETE", "/devices"), ("PUT", ONE), ("GET", HEARTBEAT)],
)
def test_a_method_that_is_none_is_refused(app: App, method: str, path: str) -> None:
    assert call(app, method, path, {}).status_code == 405


def test_when_the_store_cannot_keep_it_the_app_is_asked_to_come_again(
    app: App, caplog: pytest.LogCaptureFixture
) -> None:
    with failing("findAndModify", "devices", NO_DISK):
        answer = register(app)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert "request_failed" in caplog.text
    assert TOKEN not in caplog.text
    assert answer.headers["Retry-After"]
