"""Rotation of a push token, as apps do it: early, late, twice, and while another user signs in.

https://github.com/xtrinch/fcm-django/issues/35, https://github.com/xtrinch/fcm-django/pull/42,
https://github.com/tinode/chat/issues/50, https://github.com/zulip/zulip-mobile/issues/3695.
"""

import json
from typing import Any

import pytest
from pymongo.errors import AutoReconnect

from devices import queries, registration, status
from devices.models import DeactivationReason
from devices.status import Evidence
from devices.tokens import device_id
from domain.content import Recipient
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pointers
from tests.support.factories.notifications import NOON, device
from tests.support.factories.push import RETRY, deliver, push, tokens
from tests.support.fakes.provider import (
    ScriptedProvider,
    accepted,
    by_recipient,
    invalid_token,
    provider_error,
)

FIRST, SECOND, THIRD = "first-token", "second-token", "third-token"
ONE, TWO, THREE = (f"/devices/{device_id(token)}" for token in (FIRST, SECOND, THIRD))
HOURS = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "UTC"}


def register(app: App, token: str = FIRST, user_id: str = "ada") -> Answer:
    body = {"user_id": user_id, "device_token": token, "platform": "android", "language": "pt"}
    return app.put("/devices", body)


def change(app: App, path: str, **fields: Any) -> Answer:
    return app.send(path, json.dumps(fields).encode(), method="PATCH")


def receivers(user_id: str = "ada", **named: Any) -> list[str]:
    """Return the tokens that a push to a user, or to named devices, goes to."""
    found = queries.find_push_targets(user_ids=[user_id], device_ids=named.get("device_ids", ()))
    targets = found.for_notification(user_id=user_id, device_ids=named.get("device_ids", ()))
    return sorted(target.token for target in targets)


def test_rotation_keeps_the_data_and_wishes_of_an_active_device(app: App) -> None:
    register(app)
    app.put(f"{ONE}/preferences", {"categories": {"marketing": False}, "quiet_hours": HOURS})
    shown = change(app, ONE, device_token=SECOND).json()
    assert (shown["user_id"], shown["language"], shown["is_active"]) == ("ada", "pt", True)
    assert shown["notification_preferences"]["categories"] == {"marketing": False}
    assert shown["notification_preferences"]["quiet_hours"] == HOURS
    assert receivers() == [SECOND]
    old = app.get(ONE).json()
    assert (old["is_active"], old["deactivation_reason"]) == (False, "replaced")
    assert old["replaced_by"] == device_id(SECOND)


@pytest.mark.parametrize("rotations", [[SECOND], [SECOND, THIRD], [SECOND, FIRST]])
def test_rotation_wakes_no_device_that_its_user_signed_out(app: App, rotations: list[str]) -> None:
    register(app)
    change(app, ONE, is_active=False)
    path = ONE
    for token in rotations:
        shown = change(app, path, device_token=token).json()
        assert (shown["is_active"], shown["deactivation_reason"]) == (False, "by_user")
        path = f"/devices/{shown['id']}"
    assert receivers() == []
    assert change(app, path, is_active=True).json()["is_active"]
    assert receivers() == rotations[-1:]


def test_rotation_wakes_no_device_that_an_operator_deactivated(app: App) -> None:
    register(app)
    reason, evidence = DeactivationReason.BY_OPERATOR, Evidence(at=NOON, source="maria")
    status.deactivate(device_ids=[device_id(FIRST)], reason=reason, evidence=evidence, now=NOON)
    assert change(app, ONE, device_token=SECOND).json()["deactivation_reason"] == "by_operator"
    assert receivers() == []


@pytest.mark.parametrize("reason", [DeactivationReason.UNREGISTERED, DeactivationReason.SUSPECT])
def test_token_that_the_provider_rejected_is_followed_by_an_active_device(
    app: App, reason: DeactivationReason
) -> None:
    register(app)
    collection("devices").update_one({}, {"$unset": {"proven_at": ""}})
    evidence = Evidence(at=NOON, source="fcm")
    status.deactivate(device_ids=[device_id(FIRST)], reason=reason, evidence=evidence, now=NOON)
    assert receivers() == []
    assert change(app, ONE, device_token=SECOND).json()["is_active"]
    assert receivers() == [SECOND]


def test_registration_activates_what_a_rotation_left_inactive(app: App) -> None:
    register(app)
    change(app, ONE, is_active=False)
    change(app, ONE, device_token=SECOND)
    assert register(app, SECOND).json()["is_active"]
    assert receivers() == [SECOND]


def test_rotation_and_sign_out_in_one_call(app: App) -> None:
    register(app)
    assert not change(app, ONE, device_token=SECOND, is_active=False).json()["is_active"]
    assert receivers() == []


def test_earlier_id_leads_to_the_newest_device(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    change(app, TWO, device_token=THIRD)
    for path in (ONE, TWO, THREE):
        awake = {"online": True, "app_foreground": True, "notification_enabled": True}
        assert app.post(f"{path}/heartbeat", awake).json()["id"] == device_id(THIRD)
        shown = change(app, path, app_version="2").json()
        assert (shown["id"], shown["app_version"]) == (device_id(THIRD), "2")
        wishes = app.put(f"{path}/preferences", {"categories": {"marketing": False}}).json()
        assert wishes["id"] == device_id(THIRD)
        assert receivers(device_ids=[device_id(FIRST), device_id(SECOND)]) == [THIRD]
    assert change(app, ONE, is_active=False).json()["id"] == device_id(THIRD)
    assert receivers() == []


def test_rotation_by_an_earlier_id_continues_from_the_newest_device(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    assert change(app, ONE, device_token=THIRD).json()["id"] == device_id(THIRD)
    assert receivers() == [THIRD]
    assert app.get(TWO).json()["replaced_by"] == device_id(THIRD)


def test_rotation_back_to_an_earlier_token(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    back = change(app, TWO, device_token=FIRST).json()
    assert (back["id"], back["is_active"], back["replaced_by"]) == (device_id(FIRST), True, None)
    assert receivers() == [FIRST]
    assert receivers(device_ids=[device_id(SECOND)]) == [FIRST]


def test_rotation_to_a_token_of_the_same_user_keeps_that_device(app: App) -> None:
    register(app)
    register(app, SECOND)
    change(app, ONE, is_active=False)
    assert change(app, ONE, device_token=SECOND).json()["is_active"]
    assert receivers() == [SECOND]
    register(app, THIRD)
    change(app, THREE, is_active=False)
    assert not change(app, TWO, device_token=THIRD).json()["is_active"]
    assert receivers() == []


def test_rotation_takes_no_token_from_another_user(app: App) -> None:
    register(app)
    register(app, SECOND, user_id="bob")
    answer = change(app, ONE, device_token=SECOND)
    assert (answer.status_code, pointers(answer)) == (422, {"/device_token": "token_in_use"})
    assert (receivers("ada"), receivers("bob")) == ([FIRST], [SECOND])


def test_user_who_signs_in_between_keeps_the_device(app: App) -> None:
    register(app)
    register(app, FIRST, user_id="bob")
    assert change(app, ONE, device_token=SECOND).json()["user_id"] == "bob"
    assert (receivers("ada"), receivers("bob")) == ([], [SECOND])


def test_user_who_signs_in_after_a_rotation_gets_nothing_of_the_other(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    register(app, SECOND, user_id="bob")
    assert receivers("ada", device_ids=[device_id(FIRST)]) == []
    # The app of the first user is late: its ID leads nowhere, and takes nothing.
    for answer in (
        change(app, ONE, device_token=THIRD),
        change(app, ONE, is_active=True),
        app.put(f"{ONE}/preferences", {"enabled": False}),
        app.notify(recipient={"device_ids": [device_id(FIRST)]}, channels=["push"]),
    ):
        assert answer.status_code in (404, 422)
    assert (receivers("ada"), receivers("bob")) == ([], [SECOND])


def test_user_who_signs_in_during_a_rotation_keeps_the_device(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(app)
    found = queries.current

    def read_then_signed_in(device_id: str) -> Any:
        document = found(device_id)
        monkeypatch.setattr(queries, "current", found)
        register(app, FIRST, user_id="bob")
        return document

    monkeypatch.setattr(queries, "current", read_then_signed_in)
    assert change(app, ONE, device_token=SECOND).json()["user_id"] == "bob"
    assert (receivers("ada"), receivers("bob")) == ([], [SECOND])


def test_rotation_that_ended_between_its_writes_is_completed_by_repetition(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    registration.remove(device_id=device_id(SECOND))
    assert change(app, ONE, device_token=SECOND).json()["is_active"]
    assert receivers() == [SECOND]


def test_removal_by_an_earlier_id_removes_the_newest_device(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    assert app.delete(ONE).status_code == 204
    assert receivers() == []
    assert (app.get(ONE).status_code, app.get(TWO).status_code) == (404, 404)


def test_request_that_names_an_earlier_id(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    named = {"recipient": {"device_ids": [device_id(FIRST), device_id(SECOND)]}}
    assert app.notify(**named, user_id="ada", channels=["push"]).status_code == 202
    assert app.notify(**named, channels=["push"]).status_code == 202
    app.delete(TWO)
    answer = app.notify(**named, channels=["push"])
    assert pointers(answer)["/recipient/device_ids/0"] == "unknown_device"


@pytest.mark.usefixtures("db", "broker")
def test_push_that_waits_for_an_earlier_device_goes_to_its_successor(
    fcm: ScriptedProvider,
) -> None:
    phone = device("phone")
    notification_id = push(recipient=Recipient(device_ids=(phone,)))
    registration.replace_token(device_id=phone, token="phone-2", now=NOON)
    assert deliver(notification_id).counts == {"sent": 1}
    assert tokens(fcm) == ["phone-2"]


@pytest.mark.usefixtures("db", "broker")
def test_device_that_has_a_push_does_not_get_it_again_by_a_new_token(
    fcm: ScriptedProvider,
) -> None:
    phone, _ = device("phone"), device("tablet")
    fcm.behave = by_recipient({"tablet": provider_error})
    notification_id = push()
    deliver(notification_id)
    assert tokens(fcm) == ["phone", "tablet"]
    registration.replace_token(device_id=phone, token="phone-2", now=NOON)
    fcm.always(accepted)
    assert deliver(notification_id, at=RETRY).counts == {"sent": 1}
    assert tokens(fcm) == ["tablet"]


@pytest.mark.usefixtures("db", "broker")
def test_device_whose_token_was_rejected_gets_the_push_by_its_new_token(
    fcm: ScriptedProvider,
) -> None:
    phone, _ = device("phone"), device("tablet")
    fcm.behave = by_recipient({"phone": invalid_token, "tablet": provider_error})
    notification_id = push()
    deliver(notification_id)
    registration.replace_token(device_id=phone, token="phone-2", now=NOON)
    tokens(fcm)
    fcm.always(accepted)
    deliver(notification_id, at=RETRY)
    assert tokens(fcm) == ["phone-2", "tablet"]


@pytest.mark.usefixtures("broker")
def test_receipt_may_name_any_id_of_the_installation(app: App, fcm: ScriptedProvider) -> None:
    phone = device("phone")
    first, two = push(client_id=app.id), push(client_id=app.id)
    deliver(first)
    registration.replace_token(device_id=phone, token="phone-2", now=NOON)
    deliver(two)
    assert tokens(fcm) == ["phone", "phone-2"]
    for sent in (first, two):
        for named in (phone, device_id("phone-2")):
            body = {"notification_id": str(sent), "event": "opened"}
            assert app.post(f"/devices/{named}/receipts", body).status_code == 204
    other = device("other")
    body = {"notification_id": str(first), "event": "opened"}
    assert app.post(f"/devices/{other}/receipts", body).status_code == 404


@pytest.mark.parametrize("named", [False, True])
def test_push_has_a_device_at_each_moment_of_a_rotation(
    app: App, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    """Between two writes, or after a crash there, exactly one device gets a push."""
    register(app, FIRST)
    seen: list[int] = []

    def devices_now() -> None:
        seen.append(len(receivers(**({"device_ids": [device_id(FIRST)]} if named else {}))))

    for name in ("_mark_replaced", "_store_successor", "_end_replaced"):
        write = getattr(registration, name)

        def spied(*args: Any, _write: Any = write, **options: Any) -> Any:
            devices_now()
            result = _write(*args, **options)
            devices_now()
            return result

        monkeypatch.setattr(registration, name, spied)
    registration.replace_token(device_id=device_id(FIRST), token=SECOND, now=NOON)
    assert seen == [1] * 6


@pytest.mark.parametrize("is_repeated", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_sign_out_after_a_rotation_that_a_crash_ended_reaches_the_old_token(
    app: App, monkeypatch: pytest.MonkeyPatch, is_repeated: bool, named: bool
) -> None:
    register(app)
    with monkeypatch.context() as patch:
        patch.setattr(registration, "_end_replaced", _crash)
        with pytest.raises(AutoReconnect):
            registration.replace_token(device_id=device_id(FIRST), token=SECOND, now=NOON)
    if is_repeated:
        change(app, ONE, device_token=SECOND)
        assert not app.get(ONE).json()["is_active"]
    device_ids = [device_id(FIRST)] if named else []
    assert receivers(device_ids=device_ids) == [SECOND]
    change(app, ONE, is_active=False)
    assert receivers(device_ids=device_ids) == []


def test_token_that_moves_to_another_user_during_a_rotation_leaves_nobody_a_push(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(app)
    monkeypatch.setattr(registration, "_end_replaced", _crash)
    with pytest.raises(AutoReconnect):
        registration.replace_token(device_id=device_id(FIRST), token=SECOND, now=NOON)
    register(app, SECOND, user_id="bob")
    assert (receivers("ada"), receivers("bob")) == ([], [SECOND])


def _crash(*_: Any, **__: Any) -> None:
    raise AutoReconnect


def test_earlier_tokens_of_both_devices_lead_to_the_one_that_succeeds_them(app: App) -> None:
    register(app)
    change(app, ONE, device_token=SECOND)
    register(app, THIRD)
    change(app, THREE, device_token=SECOND)
    document = collection("devices").find_one({"_id": device_id(SECOND)}) or {}
    assert sorted(document["replaces"]) == sorted([device_id(FIRST), device_id(THIRD)])
