"""Registering devices, and what an app tells of them later."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from devices import queries, registration, status
from devices.models import DeactivationReason, Device, Platform
from devices.preferences import Preferences
from devices.registration import HEARTBEAT_INTERVAL, MAX_DEVICES, Registration
from devices.status import Evidence
from devices.tokens import device_id
from notifyproject.db.collections import Document, collection
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")

TOKEN = "dGhpcyBpcyBh:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"
ID = device_id(TOKEN)
LATER = NOON + timedelta(hours=1)
MUTED = Preferences(categories={"marketing": False})
TOLD = {
    "app_version": "3.2.1",
    "device_model": "Pixel 8",
    "os_version": "15",
    "language": "pt-BR",
    "timezone": "Europe/Lisbon",
}


def register(
    token: str = TOKEN, *, user_id: str = "ada", at: datetime = NOON, **fields: Any
) -> Document:
    new = Registration(user_id=user_id, token=token, **({"platform": Platform.ANDROID} | fields))
    return registration.register(new, now=at)


def stored(one: str = ID) -> Document:
    document = queries.get(one)
    assert document is not None
    return document


def switch_off(one: str = ID, *, at: datetime = LATER) -> None:
    reason, evidence = DeactivationReason.UNREGISTERED, Evidence(at=at, source="fcm")
    assert status.deactivate(device_ids=[one], reason=reason, evidence=evidence, now=at) == 1


def owned(user_id: str) -> set[str]:
    return {d["_id"] for d in queries.page(user_id=user_id, limit=100).documents}


# Registering.


def test_a_device_is_stored_as_it_was_told() -> None:
    document = register(**TOLD)
    assert document == stored()
    assert document == {
        "_id": ID,
        "user_id": "ada",
        "device_token": TOKEN,
        "platform": "android",
        **TOLD,
        "is_active": True,
        "suspicions": 0,
        "proven_at": NOON,
        "created_at": NOON,
        "updated_at": NOON,
        "last_seen": NOON,
    }


def test_the_model_reads_what_the_registry_writes() -> None:
    register(**TOLD)
    registration.set_preferences(
        device_id=ID,
        preferences=Preferences(
            categories={"marketing": False},
            quiet_hours={"enabled": True, "start": "22:00", "end": "07:00", "timezone": None},
        ),
        now=NOON,
    )
    switch_off()
    device = Device.objects.get()
    assert (device.pk, device.device_model, device.is_active) == (ID, "Pixel 8", False)
    assert device.notification_preferences.categories == {"marketing": False}
    assert device.notification_preferences.quiet_hours.start == "22:00"
    assert device.deactivation_evidence.source == "fcm"


def test_registering_again_is_registering_once() -> None:
    register(**TOLD)
    assert register(at=LATER, **TOLD) == {
        **stored(),
        "created_at": NOON,
        "updated_at": LATER,
        "last_seen": LATER,
        "proven_at": LATER,
    }
    assert owned("ada") == {ID}


def test_what_a_registration_does_not_tell_is_forgotten_but_not_the_wishes() -> None:
    register(**TOLD)
    registration.set_preferences(device_id=ID, preferences=MUTED, now=NOON)
    document = register(at=LATER, app_version="4.0")
    assert document["app_version"] == "4.0"
    assert not {"device_model", "os_version", "language", "timezone"} & document.keys()
    assert document["notification_preferences"]["categories"] == {"marketing": False}


def test_what_is_told_is_text_and_nothing_else() -> None:
    document = register(user_id="$user_id", device_model="$$ROOT", app_version="$device_token")
    assert document["user_id"] == "$user_id"
    assert (document["device_model"], document["app_version"]) == ("$$ROOT", "$device_token")


def test_a_token_that_moves_to_another_user_leaves_the_first() -> None:
    register(**TOLD)
    registration.set_preferences(device_id=ID, preferences=MUTED, now=NOON)
    status.record_success(accepted={ID: NOON}, receipts={ID: NOON})
    document = register(user_id="bob", at=LATER)
    assert owned("ada") == set()
    assert owned("bob") == {ID}
    assert document["created_at"] == LATER
    told_of_the_first = {"notification_preferences", "last_accepted_at", "last_receipt_at", *TOLD}
    assert not told_of_the_first & document.keys()


def test_registering_switches_on_again_and_clears_what_was_held_against_it() -> None:
    register()
    for minute in (1, 2):
        evidence = Evidence(at=NOON + timedelta(minutes=minute), source="fcm")
        status.record_suspicion(device_ids=[ID], evidence=evidence, now=evidence.at)
    switch_off()
    document = register(at=LATER + timedelta(hours=1))
    assert (document["is_active"], document["suspicions"]) == (True, 0)
    gone = {"deactivated_at", "deactivation_reason", "deactivation_evidence", "suspected_at"}
    assert not gone & document.keys()


def test_a_clock_that_lags_does_not_make_a_device_look_older() -> None:
    register(at=LATER)
    document = register(at=NOON)
    assert (document["last_seen"], document["proven_at"]) == (LATER, LATER)


# The cap.


def fill(count: int = MAX_DEVICES) -> list[str]:
    """Register devices of one user, each seen a minute after the one before it."""
    return [register(f"token-{n}", at=NOON + timedelta(minutes=n))["_id"] for n in range(count)]


def test_a_further_device_takes_the_place_of_the_one_that_was_not_seen_longest() -> None:
    ids = fill()
    new = register(at=LATER)["_id"]
    assert owned("ada") == {*ids[1:], new}


def test_inactive_devices_make_way_first_the_one_that_is_so_longest_before_the_others() -> None:
    ids = fill()
    switch_off(ids[20], at=LATER)
    switch_off(ids[10], at=LATER + timedelta(minutes=1))
    register("new-1", at=LATER + timedelta(hours=1))
    assert ids[20] not in owned("ada")
    assert ids[10] in owned("ada")
    register("new-2", at=LATER + timedelta(hours=1))
    assert ids[10] not in owned("ada")
    assert len(owned("ada")) == MAX_DEVICES


def test_the_device_that_registers_never_makes_way_itself() -> None:
    fill()
    new = register(at=NOON - timedelta(days=1))["_id"]
    assert new in owned("ada")


def test_another_users_devices_never_make_way() -> None:
    others = register("bobs", user_id="bob")["_id"]
    fill(MAX_DEVICES + 5)
    assert owned("bob") == {others}


# What is told later.


def test_a_change_leaves_the_rest_alone_and_none_forgets() -> None:
    register(**TOLD)
    changes = {"app_version": "4.0", "language": None}
    document = registration.update(device_id=ID, changes=changes, now=LATER)
    assert document == stored()
    assert document is not None
    assert (document["app_version"], document["device_model"]) == ("4.0", "Pixel 8")
    assert "language" not in document
    assert (document["updated_at"], document["last_seen"]) == (LATER, NOON)


@pytest.mark.parametrize("name", ["user_id", "device_token", "is_active", "_id", "$set"])
def test_only_the_description_is_changed_so(name: str) -> None:
    register()
    with pytest.raises(ValueError, match="not to be changed"):
        registration.update(device_id=ID, changes={name: "x"}, now=LATER)


def test_preferences_are_replaced_whole() -> None:
    register()
    registration.set_preferences(device_id=ID, preferences=MUTED, now=NOON)
    registration.set_preferences(device_id=ID, preferences=Preferences(enabled=False), now=LATER)
    assert stored()["notification_preferences"] == {"enabled": False, "categories": {}}


def test_a_removed_device_is_gone_with_its_token() -> None:
    register()
    assert registration.remove(device_id=ID)
    assert collection("devices").count_documents({}) == 0
    assert not registration.remove(device_id=ID)


def test_what_is_not_there_is_not_made_by_changing_it() -> None:
    assert registration.update(device_id=ID, changes={"language": "pt"}, now=NOON) is None
    assert registration.set_preferences(device_id=ID, preferences=MUTED, now=NOON) is None
    assert registration.heartbeat(device_id=ID, now=NOON) is None
    assert registration.replace_token(device_id=ID, token="new", now=NOON) is None
    assert status.record_success(accepted={ID: NOON}) == 0
    assert not status.reactivate(device_id=ID, now=NOON)
    assert collection("devices").count_documents({}) == 0


# A new token.


def test_a_new_token_takes_along_all_that_is_known_and_leaves_the_old_one_off() -> None:
    register(**TOLD)
    registration.set_preferences(device_id=ID, preferences=MUTED, now=NOON)
    document = registration.replace_token(device_id=ID, token="new", now=LATER)
    assert document is not None
    assert document == stored(device_id("new"))
    assert (document["user_id"], document["platform"]) == ("ada", "android")
    assert {name: document[name] for name in TOLD} == TOLD
    assert document["notification_preferences"]["categories"] == {"marketing": False}
    assert (stored()["is_active"], stored()["deactivation_reason"]) == (False, "replaced")


def test_a_new_token_may_be_told_twice() -> None:
    register(**TOLD)
    first = registration.replace_token(device_id=ID, token="new", now=LATER)
    assert registration.replace_token(device_id=ID, token="new", now=LATER) == first


def test_the_same_token_is_no_new_one() -> None:
    before = register(**TOLD)
    assert registration.replace_token(device_id=ID, token=TOKEN, now=LATER) == before
    assert stored() == before


# Heartbeats.


def test_a_heartbeat_is_stored_once_in_five_minutes() -> None:
    register()
    early, late = NOON + HEARTBEAT_INTERVAL - timedelta(seconds=1), NOON + HEARTBEAT_INTERVAL
    assert registration.heartbeat(device_id=ID, now=early) == stored()
    assert stored()["last_seen"] == NOON
    assert registration.heartbeat(device_id=ID, now=late) == stored()
    assert stored()["last_seen"] == late


def test_a_heartbeat_does_not_switch_a_device_on() -> None:
    register()
    switch_off()
    document = registration.heartbeat(device_id=ID, now=LATER)
    assert document is not None
    assert document["is_active"] is False
    assert document["last_seen"] == LATER
