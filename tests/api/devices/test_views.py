"""The device routes: registration, changes, preferences, heartbeats, and validation."""

import json
from typing import Any

import pytest
import redis

from devices import queries, status
from devices.models import DeactivationReason
from devices.registration import DESCRIPTIVE_FIELDS
from devices.status import Evidence
from devices.tokens import device_id
from domain.time import utc_now
from notifyproject.db.collections import collection
from notifyproject.platform import valkey
from notifyproject.stack.servers import free_port
from tests.support.clients.api import Answer, App, pages, pointers
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("valkey_anew")
TOKEN = "dGhpcyBpcyBh:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"
ID = device_id(TOKEN)
ONE = f"/devices/{ID}"

DESCRIPTION = dict.fromkeys(DESCRIPTIVE_FIELDS, "3.2.1") | {
    "device_model": "Pixel 8",
    "language": "pt-BR",
    "timezone": "Europe/Lisbon",
}

PRESENCE = {"online": True, "app_foreground": False, "notification_enabled": True}


def call(app: App, method: str, path: str, body: Any = None) -> Answer:
    raw = json.dumps(body).encode() if body is not None else b""
    return app.send(path, raw, method=method)


def device(**fields: Any) -> dict[str, Any]:
    """Return a registration with these fields. The value ... leaves a field out."""
    body = {"user_id": "ada", "device_token": TOKEN, "platform": "android", **fields}
    return {name: value for name, value in body.items() if value is not ...}


def register(app: App, **fields: Any) -> Answer:
    return call(app, "PUT", "/devices", device(**fields))


def deactivate_device(device_id: str = ID) -> None:
    now = utc_now()
    status.deactivate(
        device_ids=[device_id],
        reason=DeactivationReason.UNREGISTERED,
        evidence=Evidence(at=now.replace(year=now.year + 1), source="fcm"),
        now=now,
    )


def test_device_is_registered_and_shown(app: App) -> None:
    answer = register(app, **DESCRIPTION)
    assert answer.status_code == 201
    shown = answer.json()
    at = shown["created_at"]
    assert shown == {
        "id": ID,
        "user_id": "ada",
        "device_token": "dGhpcy…RYqx",
        "subscription": None,
        "platform": "android",
        **DESCRIPTION,
        "notification_preferences": {"enabled": True, "categories": {}, "quiet_hours": None},
        "is_active": True,
        "deactivated_at": None,
        "deactivation_reason": None,
        "replaced_by": None,
        "replaces": [],
        "warnings": [],
        "last_accepted_at": None,
        "last_receipt_at": None,
        "last_seen": at,
        "state": None,
        "created_at": at,
        "updated_at": at,
    }
    assert app.get(ONE).json() == shown


def test_heartbeat_and_preferences_take_one_command_unless_the_device_was_replaced(
    app: App,
) -> None:
    register(app)
    changes = {"categories": {"marketing": False}}
    calls = (("POST", "heartbeat", PRESENCE), ("PUT", "preferences", changes))
    for method, route, body in calls:
        with plans("devices") as commands:
            assert call(app, method, f"{ONE}/{route}", body).json()["id"] == ID
        assert len(commands) == 1, route
    new = call(app, "PATCH", ONE, {"device_token": f"{TOKEN}-2"}).json()["id"]
    for method, route, body in calls:
        assert call(app, method, f"{ONE}/{route}", body).json()["id"] == new
    shown = app.get(f"/devices/{new}").json()
    assert shown["notification_preferences"]["categories"] == {"marketing": False}
    assert shown["state"]["online"] is True


def test_first_registration_is_201_and_others_are_200(app: App) -> None:
    assert register(app).status_code == 201
    assert register(app).status_code == 200
    assert register(app, user_id="bob").status_code == 200
    assert register(app, device_token=f"{TOKEN}-2").status_code == 201
    call(app, "DELETE", ONE)
    assert register(app).status_code == 201


def test_device_of_nobody_or_of_another_user_is_refused_at_once(app: App) -> None:
    phone = register(app).json()["id"]
    tablet = register(app, user_id="bob", device_token=f"{TOKEN}-2").json()["id"]
    named = [phone, "0" * 64, tablet, "a\nb"]
    unknown = dict.fromkeys((f"/recipient/device_ids/{n}" for n in (1, 2, 3)), "unknown_device")
    push = {"type": "order_shipped", "channels": ["push"], "data": {"order": "1"}}
    body = {**push, "user_id": "ada", "recipient": {"device_ids": named}}
    for path in ("/notifications", "/notifications/preview"):
        answer = app.post(path, body)
        assert (answer.status_code, pointers(answer)) == (422, unknown), path
    headers = {"Idempotency-Key": "1"}
    bulk = app.post("/notifications/bulk", {"notifications": [body]}, headers=headers).json()
    assert {e["pointer"] for e in bulk["results"][0]["error"]["errors"]} == set(unknown)
    assert collection("notifications").count_documents({}) == 0
    assert (
        app.post("/notifications", {**push, "recipient": {"device_ids": named[:1]}}).status_code
        == 202
    )
    body["recipient"] = {"device_ids": [phone]}
    assert app.post("/notifications", body).status_code == 202
    deactivate_device(phone)
    assert app.post("/notifications", body).status_code == 202


@each_case(
    "spelling, meant", [("ios", "ios"), ("IOS", "ios"), ("ANDROID", "android"), ("web", "web")]
)
def test_platform_is_accepted_in_capitals(app: App, spelling: str, meant: str) -> None:
    assert register(app, platform=spelling).json()["platform"] == meant


def test_token_is_in_no_response_and_no_log(app: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", logger="devices")
    answers = [
        register(app),
        app.get(ONE),
        app.get("/devices", user_id="ada"),
        call(app, "PATCH", ONE, {"is_active": False}),
        call(app, "PATCH", ONE, {"device_token": f"{TOKEN}-new"}),
        call(app, "PUT", "/devices", device(platform="fax")),
        call(app, "DELETE", ONE),
    ]
    assert [a.status_code for a in answers] == [201, 200, 200, 200, 200, 422, 204]
    assert not any(TOKEN in answer.content.decode() for answer in answers)
    assert "devices_deactivated" in caplog.text
    assert TOKEN not in caplog.text


def test_devices_are_paginated_newest_first(app: App) -> None:
    for n in range(5):
        register(app, device_token=f"token-{n}")
    newest = [d["_id"] for d in queries.page(user_id="ada", limit=9).documents]
    found = pages(app.get, "/devices", user_id="ada", limit=2)
    assert [[d["id"] for d in page] for page in found] == [newest[:2], newest[2:4], newest[4:]]


def test_inactive_devices_are_listed(app: App) -> None:
    register(app)
    deactivate_device()
    (shown,) = app.get("/devices", user_id="ada").json()["results"]
    assert shown["is_active"] is False


def test_patch_keeps_other_fields_and_null_clears(app: App) -> None:
    register(app, **DESCRIPTION)
    answer = call(app, "PATCH", ONE, {"app_version": "4.0", "language": None})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["app_version"], shown["language"]) == ("4.0", None)
    assert (shown["device_model"], shown["timezone"]) == ("Pixel 8", "Europe/Lisbon")
    assert app.get(ONE).json() == call(app, "PATCH", ONE, {}).json() == shown


def test_each_field_that_describes_a_device_can_be_changed_and_cleared(app: App) -> None:
    register(app)
    for changes in (DESCRIPTION, dict.fromkeys(DESCRIPTION)):
        shown = call(app, "PATCH", ONE, changes).json()
        assert {name: shown[name] for name in DESCRIPTIVE_FIELDS} == changes


def test_device_is_deactivated_and_reactivated_by_patch(app: App) -> None:
    register(app)
    shown = call(app, "PATCH", ONE, {"is_active": False}).json()
    assert (shown["is_active"], shown["deactivation_reason"]) == (False, "by_user")
    assert shown["deactivated_at"]
    shown = call(app, "PATCH", ONE, {"is_active": True}).json()
    assert (shown["is_active"], shown["deactivation_reason"]) == (True, None)


def test_device_is_deleted(app: App) -> None:
    register(app)
    answer = call(app, "DELETE", ONE)
    assert (answer.status_code, answer.content) == (204, b"")
    assert app.get(ONE).status_code == 404
    assert call(app, "DELETE", ONE).status_code == 404


def test_devices_are_shared_by_all_clients(app: App, other_app: App) -> None:
    """A user is the same person to all apps of a company, as with registered recipients."""
    register(app)
    assert other_app.get(ONE).status_code == 200
    assert pointers(other_app.get("/devices")) == {"/user_id": "required"}


NO_DISK = {"errorCode": 14031}

BAD_FIELDS: list[tuple[dict[str, Any], str, str]] = [
    ({"user_id": ""}, "/user_id", "out_of_range"),
    ({"user_id": "u" * 129}, "/user_id", "out_of_range"),
    ({"device_token": ""}, "/device_token", "invalid_token"),
    ({"device_token": "abc"}, "/device_token", "invalid_token"),
    ({"device_token": "<script>"}, "/device_token", "invalid_token"),
    ({"device_token": "a token"}, "/device_token", "invalid_token"),
    ({"device_token": "x" * 4097}, "/device_token", "invalid_token"),
    ({"platform": "fax"}, "/platform", "unknown_platform"),
    ({"platform": "Ios"}, "/platform", "unknown_platform"),
    ({"app_version": "v" * 41}, "/app_version", "out_of_range"),
    *(({name: "1\r\n2"}, f"/{name}", "control_characters") for name in DESCRIPTIVE_FIELDS),
    ({"device_model": "m" * 121}, "/device_model", "out_of_range"),
    ({"device_model": "\x1b[31m"}, "/device_model", "control_characters"),
    ({"os_version": "o" * 41}, "/os_version", "out_of_range"),
    ({"language": "p" * 36}, "/language", "out_of_range"),
    ({"is_active": True}, "/is_active", "unknown_field"),
    ({"token_rejections": 0}, "/token_rejections", "unknown_field"),
]


@each_case("fields, pointer, code", BAD_FIELDS)
def test_invalid_registration_is_refused(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    answer = register(app, **fields)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    assert collection("devices").count_documents({}) == 0


@each_case(
    "field, value, code",
    [
        *(
            ("timezone", zone, "unknown_timezone")
            for zone in ("GMT+05:30", "Etc/Unknown", "", "utc+15")
        ),
        *(("timezone", zone, "unknown_timezone") for zone in ("localtime", "Mars/Olympus")),
        *(("language", tag, "invalid_language") for tag in ("portuguese please", "", "?")),
    ],
)
def test_zone_and_language_that_nobody_knows_are_left_out_with_a_warning(
    app: App, field: str, value: str, code: str
) -> None:
    answer = register(app, **{field: value})
    assert (answer.status_code, answer.json()[field]) == (201, None)
    (warning,) = answer.json()["warnings"]
    assert (warning["pointer"], warning["code"]) == (f"/{field}", code)
    assert value == "" or value not in warning["detail"]
    known = {"timezone": "Europe/Lisbon", "language": "pt"}
    assert call(app, "PATCH", ONE, known).json()["warnings"] == []
    changed = call(app, "PATCH", ONE, {field: value, "app_version": "7"}).json()
    assert (changed[field], changed["app_version"]) == (None, "7")
    assert changed["warnings"][0]["code"] == code
    call(app, "DELETE", ONE)


def test_all_invalid_fields_are_reported_without_values(app: App) -> None:
    answer = register(
        app,
        device_token="my secret token",
        platform="secret platform",
        os_version="secret\x07",
    )
    assert set(pointers(answer)) == {"/device_token", "/platform", "/os_version"}
    assert "secret" not in answer.content.decode()


@each_case(
    "fields, pointer, code",
    [
        ({"device_token": "abc"}, "/device_token", "invalid_token"),
        ({"user_id": "bob"}, "/user_id", "unknown_field"),
        ({"platform": "ios"}, "/platform", "unknown_field"),
        ({"deactivation_reason": None}, "/deactivation_reason", "unknown_field"),
    ],
)
def test_invalid_patch_changes_nothing(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    before = register(app).json()
    answer = call(app, "PATCH", ONE, {"os_version": "15", **fields})
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    assert app.get(ONE).json() == before


ARABIC = "\u0660\u0667:\u0660\u0660"
"""07:00 in digits that are not ASCII's."""
HOURS = {"enabled": True, "start": "22:00", "end": "07:00"}

BAD_PREFERENCES: list[tuple[Any, str, str]] = [
    ({"categories": {"marketing": 0}}, "/categories/marketing", "wrong_type"),
    ({"categories": {"marketing": "no"}}, "/categories/marketing", "wrong_type"),
    ({"categories": {"$where": True}}, "/categories", "invalid_category"),
    ({"categories": {"a.b": True}}, "/categories", "invalid_category"),
    ({"categories": {"": True}}, "/categories", "invalid_category"),
    ({"categories": {"Marketing": True}}, "/categories", "invalid_category"),
    ({"categories": {"m" * 65: True}}, "/categories", "invalid_category"),
    ({"categories": {f"c{n}": True for n in range(101)}}, "/categories", "out_of_range"),
    ({"quiet_hours": {"start": "22:00"}}, "/quiet_hours/enabled", "required"),
    ({"quiet_hours": {**HOURS, "start": "24:00"}}, "/quiet_hours/start", "invalid_time"),
    ({"quiet_hours": {**HOURS, "end": "7:00"}}, "/quiet_hours/end", "invalid_time"),
    ({"quiet_hours": {**HOURS, "end": ARABIC}}, "/quiet_hours/end", "invalid_time"),
    ({"quiet_hours": {**HOURS, "end": "07:00:00"}}, "/quiet_hours/end", "out_of_range"),
    ({"quiet_hours": {**HOURS, "end": "22:00"}}, "/quiet_hours/end", "empty_quiet_hours"),
    ({"quiet_hours": {**HOURS, "timezone": "X"}}, "/quiet_hours/timezone", "unknown_timezone"),
    ({"quiet_hours": {**HOURS, "days": []}}, "/quiet_hours/days", "unknown_field"),
    ({"channels": []}, "/channels", "unknown_field"),
]


@each_case("preferences, pointer, code", BAD_PREFERENCES)
def test_invalid_preferences_are_refused(
    app: App, preferences: Any, pointer: str, code: str
) -> None:
    register(app)
    answer = call(app, "PUT", f"{ONE}/preferences", preferences)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    document = queries.get(ID)
    assert document is not None
    assert "notification_preferences" not in document


@each_case(
    "query, pointer, code",
    [
        ({}, "/user_id", "required"),
        *(({"user_id": text}, "/user_id", "required") for text in ("", " ", " \t")),
        ({"user_id": "u" * 129}, "/user_id", "invalid"),
        ({"user_id": "a\x00"}, "/user_id", "invalid"),
    ],
)
def test_invalid_list_query_is_refused(
    app: App, query: dict[str, str], pointer: str, code: str
) -> None:
    answer = app.get("/devices", **query)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})


@each_case("device_id", ["x", "0" * 64, "A" * 64, "0" * 63, ID[:-1] + "g", "%00"])
def test_unknown_device_is_not_found(app: App, device_id: str) -> None:
    calls = [
        ("GET", "", None),
        ("PATCH", "", {"language": "pt"}),
        ("PATCH", "", {"device_token": "new-token"}),
        ("PATCH", "", {"is_active": True}),
        ("DELETE", "", None),
        ("POST", "/heartbeat", PRESENCE),
        ("PUT", "/preferences", {}),
    ]
    for method, below, body in calls:
        answer = call(app, method, f"/devices/{device_id}{below}", body)
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), method
    assert collection("devices").count_documents({}) == 0


def test_store_failure_answers_503(app: App, caplog: pytest.LogCaptureFixture) -> None:
    with fail_commands("findAndModify", "devices", NO_DISK):
        answer = register(app)
    assert (answer.status_code, answer.json()["code"]) == (503, "store_unavailable")
    assert "request_failed" in caplog.text
    assert TOKEN not in caplog.text
    assert answer.headers["Retry-After"]


def test_preferences_are_changed_and_shown(app: App) -> None:
    register(app)
    preferences = {
        "enabled": True,
        "categories": {"marketing": False, "mfa_code": True},
        "quiet_hours": {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "UTC"},
    }
    assert call(app, "PUT", f"{ONE}/preferences", preferences).status_code == 200
    assert app.get(ONE).json()["notification_preferences"] == preferences
    assert queries.find_push_targets(device_ids=[ID]).by_device[ID].preferences.categories == {
        "marketing": False,
        "mfa_code": True,
    }
    for kept in ({}, {"enabled": True}, {"categories": {"marketing": False}}):
        assert call(app, "PUT", f"{ONE}/preferences", kept).status_code == 200
        assert app.get(ONE).json()["notification_preferences"] == preferences
    call(app, "PUT", f"{ONE}/preferences", {"categories": {"mfa_code": None, "alert": False}})
    shown = app.get(ONE).json()["notification_preferences"]
    assert shown == {**preferences, "categories": {"marketing": False, "alert": False}}
    nothing = {"enabled": None, "categories": None, "quiet_hours": None}
    call(app, "PUT", f"{ONE}/preferences", nothing)
    shown = app.get(ONE).json()["notification_preferences"]
    assert shown == {"enabled": True, "categories": {}, "quiet_hours": None}


def test_disabled_quiet_hours_need_no_times(app: App) -> None:
    register(app)
    answer = call(app, "PUT", f"{ONE}/preferences", {"quiet_hours": {"enabled": False}})
    hours = answer.json()["notification_preferences"]["quiet_hours"]
    assert hours == {"enabled": False, "start": "22:00", "end": "07:00", "timezone": None}


def test_heartbeat_is_shown_and_expires_after_an_hour(app: App, broker: redis.Redis) -> None:
    register(app)
    answer = call(app, "POST", f"{ONE}/heartbeat", PRESENCE)
    assert answer.status_code == 200
    state = answer.json()["state"]
    assert {name: state[name] for name in PRESENCE} == PRESENCE
    assert state["last_active"]
    assert 0 < broker.ttl(f"device:{ID}:presence") <= 3600
    assert app.get(ONE).json()["state"] == state
    (listed,) = app.get("/devices", user_id="ada").json()["results"]
    assert listed["state"] == state


def test_heartbeat_reports_an_inactive_device(app: App) -> None:
    register(app)
    deactivate_device()
    assert call(app, "POST", f"{ONE}/heartbeat", PRESENCE).json()["is_active"] is False


def test_heartbeat_is_accepted_without_valkey(app: App, settings: Any) -> None:
    register(app)
    settings.REDIS_URL = f"redis://127.0.0.1:{free_port()}/0"
    valkey.clear()
    answer = call(app, "POST", f"{ONE}/heartbeat", PRESENCE)
    assert (answer.status_code, answer.json()["state"]) == (200, None)
    assert app.get(ONE).json()["state"] is None
    assert app.get("/devices", user_id="ada").status_code == 200


def test_language_is_stored_in_its_usual_form_wherever_it_is_accepted(app: App) -> None:
    """RFC 5646 2.1.1, and https://github.com/wikimedia/jquery.i18n/issues/120."""
    person = {"email": "ada@example.com", "locale": "iw_IL.UTF-8"}
    assert app.put("/recipients/ada", person).json()["locale"] == "he-IL"
    assert app.notify(recipient=person).json()["recipient"]["locale"] == "he-IL"
    device = {"user_id": "ada", "device_token": "a-token-of-ada", "platform": "ios"}
    shown = app.put("/devices", {**device, "language": "pt_br"}).json()
    assert shown["language"] == "pt-BR"
    changed = app.send(f"/devices/{shown['id']}", b'{"language": "PT"}', method="PATCH").json()
    assert changed["language"] == "pt"
