"""Export of everything stored about a recipient."""

import json

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry

from access.models import Scope
from devices import presence
from devices.presence import Presence
from domain.time import utc_now
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor
from privacy import export
from recipients import whatsapp_learning
from tests.support.clients.api import App, new_app
from tests.support.clients.recipients import ADA, ONE, TOKEN, notify, register, unsubscribe
from tests.support.mongo.query_plans import plans


@pytest.fixture
def ada(app: App, valkey_anew: None) -> App:
    register(app)
    unsubscribe("email", ADA["email"])
    return app


def test_export_holds_everything_about_a_recipient(ada: App) -> None:
    first, second = notify(ada), notify(ada)
    device = ada.get("/devices", user_id="ada").json()["results"][0]["id"]
    presence_of_ada = Presence(
        online=True, app_foreground=False, notification_enabled=True, last_active=utc_now()
    )
    presence.store(device, presence_of_ada)
    exported = ada.get(f"{ONE}/export").json()
    assert exported["person"] == ada.get(ONE).json()
    assert exported["preferences"] == ada.get(f"{ONE}/preferences").json()
    assert [d["id"] for d in exported["devices"]] == [device]
    assert exported["devices"][0]["state"]["online"] is True
    assert exported["topics"] == ["news"]
    assert [s["reason"] for s in exported["suppressions"]] == ["unsubscribed"]
    assert exported["last_inbound_at"]
    assert [n["id"] for n in exported["notifications"]] == [second, first]
    assert (exported["attempts"], exported["next"]) == ([], None)
    assert TOKEN not in str(exported)


def test_export_has_what_else_whatsapp_and_devices_are_called(ada: App) -> None:
    user, other = "PT.13491208655302741918", "+351912345679"
    whatsapp_learning.learn({user: ADA["phone"], ADA["phone"]: other}, now=utc_now())
    unsubscribe("whatsapp", other)
    (first,) = ada.get("/devices", user_id="ada").json()["results"]
    token = json.dumps({"device_token": TOKEN[::-1]}).encode()
    second = ada.send(f"/devices/{first['id']}", token, method="PATCH").json()["id"]
    exported = ada.get(f"{ONE}/export").json()
    assert sorted(exported["whatsapp_ids"]) == [other, user]
    addresses = {suppression["address"] for suppression in exported["suppressions"]}
    assert addresses == {ADA["email"], ADA["phone"], other}
    devices = {device["id"]: device for device in exported["devices"]}
    assert devices[first["id"]]["replaced_by"] == second
    assert devices[second]["replaces"] == [first["id"]]
    ada.delete(ONE)
    assert collection("whatsapp_identities").count_documents({}) == 0
    assert collection("devices").count_documents({}) == 0


def test_export_is_paginated(ada: App) -> None:
    ids = [notify(ada) for _ in range(3)]
    first = ada.get(f"{ONE}/export", limit=2).json()
    second = ada.get(f"{ONE}/export", limit=2, cursor=first["next"]).json()
    assert [n["id"] for n in (*first["notifications"], *second["notifications"])] == ids[::-1]
    assert second["next"] is None
    assert ada.get(f"{ONE}/export", cursor="x").json()["code"] == "invalid_cursor"


def test_deleted_notifications_are_exported(ada: App) -> None:
    notify(ada)
    collection("notifications").update_one({}, {"$set": {"is_active": False}})
    assert len(ada.get(f"{ONE}/export").json()["notifications"]) == 1


def test_export_has_own_notifications_and_all_for_admins(ada: App, other_app: App) -> None:
    mine, others = notify(ada), notify(other_app)
    narrow = new_app("narrow", Scope.RECIPIENTS_WRITE, Scope.NOTIFICATIONS_WRITE)
    own = notify(narrow)
    exported = narrow.get(f"{ONE}/export").json()
    assert ([n["id"] for n in exported["notifications"]], exported["of_all_apps"]) == ([own], False)
    exported = ada.get(f"{ONE}/export").json()
    assert [n["id"] for n in exported["notifications"]] == [own, others, mine]
    assert exported["of_all_apps"] is True


def test_sensitive_data_is_masked(ada: App) -> None:
    notify(ada, type="mfa_code", data={"code": "271828", "expires_in": 5})
    assert "271828" not in ada.get(f"{ONE}/export").content.decode()


def test_export_is_audited(ada: App) -> None:
    ada.get(f"{ONE}/export")
    assert LogEntry.objects.latest("pk").get_change_message() == "By client app: Exported."


def test_export_of_an_unknown_recipient_is_not_found(app: App) -> None:
    assert app.get("/recipients/nobody/export").status_code == 404
    assert LogEntry.objects.count() == 0


def test_export_reads_pages_by_indexes(ada: App) -> None:
    notify(ada)
    (model,) = collection("notifications").find()
    copies = [{**model, "_id": ObjectId(), "user_id": f"user-{n % 20}"} for n in range(2_000)]
    collection("notifications").insert_many(copies)
    attempts = [
        {"_id": f"{copy['_id']}.email.1", "notification_id": copy["_id"], "attempted_at": utc_now()}
        for copy in copies
    ]
    collection("delivery_attempts").insert_many(attempts)
    for client_id in (None, ada.id):
        held = export.export("user-7", client_id=client_id, limit=10)
        last = held.notifications[-1]
        place = Cursor((last["created_at"], last["_id"]))
        for name in ("notifications", "delivery_attempts"):
            with plans(name) as found:
                held = export.export("user-7", client_id=client_id, limit=10, cursor=place)
            (plan,) = found
            assert plan.is_indexed
            assert not plan.sorts
            assert plan.examined <= 2 * plan.returned
        assert (len(held.notifications), len(held.attempts)) == (10, 10)
