"""An app registers its users' devices, and tells what becomes of them."""

import json
from typing import Any

import pytest

from access.models import Scope
from devices import queries, status
from devices.models import DeactivationReason
from devices.status import Evidence
from devices.tokens import device_id
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app, pointers

pytestmark = pytest.mark.usefixtures("valkey_anew")

TOKEN = "dGhpcyBpcyBh:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"
ID = device_id(TOKEN)
ONE = f"/devices/{ID}"
TOLD = {
    "app_version": "3.2.1",
    "device_model": "Pixel 8",
    "os_version": "15",
    "language": "pt-BR",
    "timezone": "Europe/Lisbon",
}
AWAKE = {"online": True, "app_foreground": False, "notification_enabled": True}


def call(app: App, method: str, path: str, body: Any = None) -> Answer:
    """Call the API with a JSON body, or with none."""
    raw = json.dumps(body).encode() if body is not None else b""
    headers = app._headers({})
    return app._checked(
        app.http.generic(
            method, f"/api/v1{path}", raw, content_type="application/json", headers=headers
        )
    )


def device(**fields: Any) -> dict[str, Any]:
    """Return a registration; ``fields`` replace its own, ... leaves one out."""
    body = {"user_id": "ada", "device_token": TOKEN, "platform": "android", **fields}
    return {name: value for name, value in body.items() if value is not ...}


def register(app: App, **fields: Any) -> Answer:
    return call(app, "PUT", "/devices", device(**fields))


def switch_off(one: str = ID) -> None:
    now = utc_now()
    status.deactivate(
        device_ids=[one],
        reason=DeactivationReason.UNREGISTERED,
        evidence=Evidence(at=now.replace(year=now.year + 1), source="fcm"),
        now=now,
    )


# Registering.


def test_a_device_is_registered_and_shown(app: App) -> None:
    answer = register(app, **TOLD)
    assert answer.status_code == 200
    shown = answer.json()
    at = shown["created_at"]
    assert shown == {
        "id": ID,
        "user_id": "ada",
        "device_token": "dGhpcy…RYqx",
        "platform": "android",
        **TOLD,
        "notification_preferences": {"enabled": True, "categories": {}, "quiet_hours": None},
        "is_active": True,
        "deactivated_at": None,
        "deactivation_reason": None,
        "last_accepted_at": None,
        "last_receipt_at": None,
        "last_seen": at,
        "state": None,
        "created_at": at,
        "updated_at": at,
    }
    assert app.get(ONE).json() == shown


def test_registering_again_is_the_same_device(app: App) -> None:
    first, again = register(app), register(app, **TOLD)
    assert first.json()["id"] == again.json()["id"]
    assert collection("devices").count_documents({}) == 1
    assert again.json()["device_model"] == "Pixel 8"


def test_a_token_that_moves_to_another_user_leaves_the_first(app: App) -> None:
    register(app, **TOLD)
    call(app, "PUT", f"{ONE}/preferences", {"enabled": False})
    moved = register(app, user_id="bob").json()
    assert moved["user_id"] == "bob"
    assert moved["notification_preferences"]["enabled"] is True
    assert app.get("/devices", user_id="ada").json()["results"] == []
    assert [d["id"] for d in app.get("/devices", user_id="bob").json()["results"]] == [ID]


@pytest.mark.parametrize(
    ("spelling", "meant"), [("ios", "ios"), ("IOS", "ios"), ("ANDROID", "android"), ("web", "web")]
)
def test_a_platform_may_be_written_in_capitals(app: App, spelling: str, meant: str) -> None:
    assert register(app, platform=spelling).json()["platform"] == meant


def test_registering_switches_a_device_on_again(app: App) -> None:
    register(app)
    switch_off()
    shown = app.get(ONE).json()
    assert (shown["is_active"], shown["deactivation_reason"]) == (False, "unregistered")
    shown = register(app).json()
    assert (shown["is_active"], shown["deactivation_reason"]) == (True, None)


def test_no_answer_and_no_log_holds_a_token(app: App, caplog: pytest.LogCaptureFixture) -> None:
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
    assert [a.status_code for a in answers] == [200, 200, 200, 200, 200, 422, 204]
    assert not any(TOKEN in answer.content.decode() for answer in answers)
    assert "devices_deactivated" in caplog.text
    assert TOKEN not in caplog.text


# Lists.


def test_a_users_devices_are_listed_newest_first_page_by_page(app: App) -> None:
    for n in range(5):
        register(app, device_token=f"token-{n}")
    newest = [d["_id"] for d in queries.page(user_id="ada", limit=9).documents]
    first = app.get("/devices", user_id="ada", limit=2).json()
    assert [d["id"] for d in first["results"]] == newest[:2]
    assert first["previous"] is None
    second = app.get("/devices", user_id="ada", limit=2, cursor=first["next"]).json()
    assert [d["id"] for d in second["results"]] == newest[2:4]
    back = app.get("/devices", user_id="ada", limit=2, cursor=second["previous"]).json()
    assert [d["id"] for d in back["results"]] == newest[:2]
    last = app.get("/devices", user_id="ada", limit=2, cursor=second["next"]).json()
    assert [d["id"] for d in last["results"]] == newest[4:]
    assert last["next"] is None


def test_inactive_devices_are_listed_too(app: App) -> None:
    register(app)
    switch_off()
    (shown,) = app.get("/devices", user_id="ada").json()["results"]
    assert shown["is_active"] is False


def test_a_user_without_devices_has_an_empty_list(app: App) -> None:
    assert app.get("/devices", user_id="nobody").json() == {
        "results": [],
        "next": None,
        "previous": None,
    }


# Changes.


def test_a_change_leaves_the_rest_alone_and_null_forgets(app: App) -> None:
    register(app, **TOLD)
    answer = call(app, "PATCH", ONE, {"app_version": "4.0", "language": None})
    assert answer.status_code == 200
    shown = answer.json()
    assert (shown["app_version"], shown["language"]) == ("4.0", None)
    assert (shown["device_model"], shown["timezone"]) == ("Pixel 8", "Europe/Lisbon")
    assert app.get(ONE).json() == shown


def test_a_change_of_nothing_changes_nothing(app: App) -> None:
    before = register(app, **TOLD).json()
    assert call(app, "PATCH", ONE, {}).json() == before


def test_a_device_is_switched_off_when_its_user_signs_out_and_on_again(app: App) -> None:
    register(app)
    shown = call(app, "PATCH", ONE, {"is_active": False}).json()
    assert (shown["is_active"], shown["deactivation_reason"]) == (False, "by_user")
    assert shown["deactivated_at"]
    shown = call(app, "PATCH", ONE, {"is_active": True}).json()
    assert (shown["is_active"], shown["deactivation_reason"]) == (True, None)


def test_a_new_token_makes_a_new_device_with_all_that_is_known(app: App) -> None:
    register(app, **TOLD)
    call(app, "PUT", f"{ONE}/preferences", {"categories": {"marketing": False}})
    body = {"device_token": "new-token", "app_version": "4.0"}
    shown = call(app, "PATCH", ONE, body).json()
    assert shown["id"] == device_id("new-token")
    assert (shown["user_id"], shown["app_version"]) == ("ada", "4.0")
    assert shown["device_model"] == "Pixel 8"
    assert shown["notification_preferences"]["categories"] == {"marketing": False}
    old = app.get(ONE).json()
    assert (old["is_active"], old["deactivation_reason"]) == (False, "replaced")


def test_a_device_is_forgotten(app: App) -> None:
    register(app)
    answer = call(app, "DELETE", ONE)
    assert (answer.status_code, answer.content) == (204, b"")
    assert app.get(ONE).status_code == 404
    assert call(app, "DELETE", ONE).status_code == 404


# Who may.


def test_every_call_needs_the_scope(db: None, broker: Any) -> None:
    others = new_app("others", *(scope for scope in Scope if scope not in _ENOUGH))
    calls = [
        ("PUT", "/devices", device()),
        ("GET", "/devices?user_id=ada", None),
        ("GET", ONE, None),
        ("PATCH", ONE, {}),
        ("DELETE", ONE, None),
        ("POST", f"{ONE}/heartbeat", AWAKE),
        ("PUT", f"{ONE}/preferences", {}),
    ]
    for method, path, body in calls:
        assert call(others, method, path, body).status_code == 403, (method, path)
    assert collection("devices").count_documents({}) == 0
    keeper = new_app("keeper", Scope.DEVICES_WRITE)
    assert register(keeper).status_code == 200


_ENOUGH = (Scope.DEVICES_WRITE, Scope.ADMIN)


def test_people_and_their_devices_are_shared_by_the_apps(app: App, other_app: App) -> None:
    """As registered recipients are: a user is the same person to all of a company's apps."""
    register(app)
    assert other_app.get(ONE).status_code == 200
    assert pointers(other_app.get("/devices")) == {"/user_id": "required"}
