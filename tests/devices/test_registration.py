"""Registering devices: repeated, moved to another user, removed, and concurrent."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
from pymongo.errors import AutoReconnect, WTimeoutError

from devices import queries, registration, status
from devices.models import DeactivationReason, Device, Platform
from devices.preferences import DevicePreferenceChanges
from devices.registration import (
    DESCRIPTIVE_FIELDS,
    HEARTBEAT_INTERVAL,
    MAX_DEVICES,
    ConflictError,
    Registration,
)
from devices.status import Evidence
from devices.tokens import device_id
from notifyproject.db.collections import Document, collection
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import CUT, LOST_ANSWER, Trouble, fail_commands
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db")
TOKEN = "dGhpcyBpcyBh:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx"
ID = device_id(TOKEN)
LATER = NOON + timedelta(hours=1)
MUTED = DevicePreferenceChanges(categories={"marketing": False})

DESCRIPTION = dict.fromkeys(DESCRIPTIVE_FIELDS, "3.2.1") | {
    "device_model": "Pixel 8",
    "language": "pt-BR",
    "timezone": "Europe/Lisbon",
}


def register(
    token: str = TOKEN, *, user_id: str = "ada", at: datetime = NOON, **fields: Any
) -> Document:
    new = Registration(user_id=user_id, token=token, **({"platform": Platform.ANDROID} | fields))
    return registration.register(new, now=at)


def stored(device_id: str = ID) -> Document:
    document = queries.get(device_id)
    assert document is not None
    return document


def deactivate(device_id: str = ID, *, at: datetime = LATER) -> None:
    reason, evidence = DeactivationReason.UNREGISTERED, Evidence(at=at, source="fcm")
    assert status.deactivate(device_ids=[device_id], reason=reason, evidence=evidence, now=at) == 1


def owned(user_id: str) -> set[str]:
    return {d["_id"] for d in queries.page(user_id=user_id, limit=100).documents}


def test_device_is_stored_as_registered() -> None:
    document = register(**DESCRIPTION)
    assert document == stored()
    assert document == {
        "_id": ID,
        "user_id": "ada",
        "device_token": TOKEN,
        "platform": "android",
        **DESCRIPTION,
        "is_active": True,
        "token_rejections": 0,
        "proven_at": NOON,
        "created_at": NOON,
        "updated_at": NOON,
        "last_seen": NOON,
    }


def test_model_reads_the_stored_device() -> None:
    register(**DESCRIPTION)
    quiet = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": None}
    preferences = DevicePreferenceChanges(categories={"marketing": False}, quiet_hours=quiet)
    registration.set_preferences(device_id=ID, changes=preferences, now=NOON)
    deactivate()
    device = Device.objects.get()
    assert (device.pk, device.device_model, device.is_active) == (ID, "Pixel 8", False)
    assert device.notification_preferences.categories == {"marketing": False}
    assert device.notification_preferences.quiet_hours.start == "22:00"
    assert device.deactivation_evidence.source == "fcm"


def test_second_registration_updates_the_device() -> None:
    register(**DESCRIPTION)
    assert register(at=LATER, **DESCRIPTION) == {
        **stored(),
        "created_at": NOON,
        "updated_at": LATER,
        "last_seen": LATER,
        "proven_at": LATER,
    }
    assert owned("ada") == {ID}


def test_second_registration_clears_omitted_fields_and_keeps_preferences() -> None:
    register(**DESCRIPTION)
    registration.set_preferences(device_id=ID, changes=MUTED, now=NOON)
    document = register(at=LATER, app_version="4.0")
    assert document["app_version"] == "4.0"
    assert document.keys() & DESCRIPTION == {"app_version"}
    assert document["notification_preferences"]["categories"] == {"marketing": False}


def test_values_are_stored_as_text() -> None:
    document = register(user_id="$user_id", device_model="$$ROOT", app_version="$device_token")
    assert document["user_id"] == "$user_id"
    assert (document["device_model"], document["app_version"]) == ("$$ROOT", "$device_token")


def test_token_moves_to_another_user() -> None:
    register(**DESCRIPTION)
    registration.set_preferences(device_id=ID, changes=MUTED, now=NOON)
    status.record_success(accepted={ID: NOON}, receipts={ID: NOON})
    document = register(user_id="bob", at=LATER)
    assert owned("ada") == set()
    assert owned("bob") == {ID}
    assert document["created_at"] == LATER
    fields_of_the_first = {"notification_preferences", "last_accepted_at", "last_receipt_at"}
    assert document.keys().isdisjoint({*fields_of_the_first, *DESCRIPTION})


def test_registration_reactivates_and_clears_failures() -> None:
    register()
    for minute in (1, 2):
        evidence = Evidence(at=NOON + timedelta(minutes=minute), source="fcm")
        status.record_suspect_result(device_ids=[ID], evidence=evidence, now=evidence.at)
    deactivate()
    document = register(at=LATER + timedelta(hours=1))
    assert (document["is_active"], document["token_rejections"]) == (True, 0)
    assert document.keys().isdisjoint({*status.DEACTIVATION_FIELDS, "suspected_at"})


def test_registration_with_a_lagging_clock_keeps_later_times() -> None:
    register(at=LATER)
    document = register(at=NOON)
    assert (document["last_seen"], document["proven_at"]) == (LATER, LATER)


def fill(count: int = MAX_DEVICES) -> list[str]:
    """Register devices of one user, last seen at intervals of a minute; return their IDs."""
    return [register(f"token-{n}", at=NOON + timedelta(minutes=n))["_id"] for n in range(count)]


def test_device_over_the_limit_replaces_the_least_recently_seen() -> None:
    ids = fill()
    new = register(at=LATER)["_id"]
    assert owned("ada") == {*ids[1:], new}


def test_inactive_devices_are_replaced_first() -> None:
    ids = fill()
    deactivate(ids[20], at=LATER)
    deactivate(ids[10], at=LATER + timedelta(minutes=1))
    register("new-1", at=LATER + timedelta(hours=1))
    assert ids[20] not in owned("ada")
    assert ids[10] in owned("ada")
    register("new-2", at=LATER + timedelta(hours=1))
    assert ids[10] not in owned("ada")
    assert len(owned("ada")) == MAX_DEVICES


def test_registering_device_is_never_replaced() -> None:
    fill()
    new = register(at=NOON - timedelta(days=1))["_id"]
    assert new in owned("ada")


def test_other_users_devices_are_never_replaced() -> None:
    others = register("bobs", user_id="bob")["_id"]
    fill(MAX_DEVICES + 5)
    assert owned("bob") == {others}


@pytest.mark.parametrize("name", ["user_id", "device_token", "is_active", "_id", "$set"])
def test_read_only_field_is_not_updated(name: str) -> None:
    register()
    with pytest.raises(ValueError, match="read-only"):
        registration.update(device_id=ID, changes={name: "x"}, now=LATER)


def test_unknown_device_is_not_created_by_a_change() -> None:
    assert registration.update(device_id=ID, changes={"language": "pt"}, now=NOON) is None
    assert registration.set_preferences(device_id=ID, changes=MUTED, now=NOON) is None
    assert registration.heartbeat(device_id=ID, now=NOON) is None
    assert registration.replace_token(device_id=ID, token="new", now=NOON) is None
    assert status.record_success(accepted={ID: NOON}) == 0
    assert not status.reactivate(device_id=ID, now=NOON)
    assert collection("devices").count_documents({}) == 0


def test_token_replacement_is_idempotent() -> None:
    register(**DESCRIPTION)
    first = registration.replace_token(device_id=ID, token="new", now=LATER)
    assert registration.replace_token(device_id=ID, token="new", now=LATER) == first


def test_same_token_is_not_replaced() -> None:
    before = register(**DESCRIPTION)
    assert registration.replace_token(device_id=ID, token=TOKEN, now=LATER) == before
    assert stored() == before


def test_token_of_another_persons_device_is_not_replaced() -> None:
    register(user_id="bob")
    before = stored()
    found = registration.replace_token(device_id=ID, token="new", user_id="ada", now=LATER)
    assert (found, stored()) == (None, before)


def test_heartbeat_is_stored_once_in_five_minutes() -> None:
    register()
    early, late = NOON + HEARTBEAT_INTERVAL - timedelta(seconds=1), NOON + HEARTBEAT_INTERVAL
    assert registration.heartbeat(device_id=ID, now=early) == stored()
    assert stored()["last_seen"] == NOON
    assert registration.heartbeat(device_id=ID, now=late) == stored()
    assert stored()["last_seen"] == late


THREADS = 16
TAKEN = {"errorCode": 12582}
"""A duplicate key error, by the number that needs no key."""


def at_once(calls: Iterable[Callable[[], Any]]) -> list[Any]:
    """Run calls in threads that begin together."""
    waiting = list(calls)
    together = Barrier(len(waiting), timeout=LIMIT)

    def run(call: Callable[[], Any]) -> Any:
        together.wait()
        return call()

    with ThreadPoolExecutor(len(waiting)) as pool:
        return list(pool.map(run, waiting))


def everything() -> list[dict[str, Any]]:
    return list(collection("devices").find({}))


def test_concurrent_registrations_create_one_device() -> None:
    for n in range(10):
        at_once([lambda n=n: register(f"token-{n}")] * THREADS)
    assert len(everything()) == 10


def test_concurrent_users_share_no_device() -> None:
    users = [f"user-{n}" for n in range(THREADS)]
    for n in range(10):
        token = f"token-{n}"
        answers = at_once([lambda u=u, t=token: register(t, user_id=u) for u in users])
        assert {answer["user_id"] for answer in answers} == set(users)
        owner = queries.get(device_id(token))
        assert owner is not None
        assert owner in answers
    assert len(everything()) == 10


def test_concurrent_registrations_keep_the_limit() -> None:
    for n in range(MAX_DEVICES):
        register(f"old-{n}", at=NOON - timedelta(minutes=n))
    at_once([lambda n=n: register(f"new-{n}", at=LATER) for n in range(THREADS)])
    kept = {document["device_token"] for document in everything()}
    assert len(kept) == MAX_DEVICES
    assert {f"new-{n}" for n in range(THREADS)} <= kept


def test_registration_wins_over_a_concurrent_refusal() -> None:
    """The send began before the registration: the device is active in either order."""
    evidence = Evidence(at=NOON + timedelta(minutes=1), source="fcm")
    reason = DeactivationReason.UNREGISTERED
    for n in range(20):
        device_id = register(f"token-{n}")["_id"]
        at_once(
            [
                lambda t=f"token-{n}": register(t, at=LATER),
                lambda device=device_id: status.deactivate(
                    device_ids=[device], reason=reason, evidence=evidence, now=LATER
                ),
            ]
        )
    assert [d["_id"] for d in everything() if not d["is_active"]] == []


def test_concurrent_suspect_results_count_once() -> None:
    device_id = register("token")["_id"]
    evidence = Evidence(at=LATER, source="fcm")
    counted = at_once(
        [lambda: status.record_suspect_result(device_ids=[device_id], evidence=evidence, now=LATER)]
        * THREADS
    )
    assert sum(counted) == 1
    (document,) = everything()
    assert (document["token_rejections"], document["is_active"]) == (1, True)


def test_concurrent_successes_keep_the_latest() -> None:
    device_id = register("token")["_id"]
    times = [LATER + timedelta(seconds=n) for n in range(THREADS)]
    at_once([lambda t=t: status.record_success(accepted={device_id: t}) for t in times])
    (document,) = everything()
    assert document["last_accepted_at"] == document["proven_at"] == times[-1]


def test_removal_during_a_change_leaves_nothing() -> None:
    def change(device_id: str) -> None:
        registration.set_preferences(
            device_id=device_id, changes=DevicePreferenceChanges(), now=LATER
        )
        registration.heartbeat(device_id=device_id, now=LATER)
        status.record_success(accepted={device_id: LATER})

    for n in range(10):
        device_id = register(f"token-{n}")["_id"]
        at_once(
            [lambda o=device_id: change(o), lambda o=device_id: registration.remove(device_id=o)]
        )
    assert everything() == []


@pytest.mark.parametrize(("failure", "times"), [(CUT, 1), (TAKEN, 2)], ids=["cut", "conflict"])
def test_failed_registration_is_repeated(failure: Trouble, times: int) -> None:
    with fail_commands("findAndModify", "devices", failure, times=times):
        register("token")
    assert len(everything()) == 1


def test_repeated_conflict_fails_without_the_token() -> None:
    with (
        fail_commands("findAndModify", "devices", TAKEN, times=3),
        pytest.raises(ConflictError) as error,
    ):
        register("a-secret-token")
    assert "a-secret-token" not in str(error.value)
    assert error.value.__context__ is None
    assert everything() == []


def test_failed_success_write_can_be_repeated() -> None:
    device_id = register("token")["_id"]
    with fail_commands("update", "devices", CUT), pytest.raises(AutoReconnect):
        status.record_success(accepted={device_id: LATER})
    with fail_commands("update", "devices", LOST_ANSWER), pytest.raises(WTimeoutError):
        status.record_success(accepted={device_id: LATER})
    assert status.record_success(accepted={device_id: LATER}) == 0
    (document,) = everything()
    assert document["last_accepted_at"] == LATER


def test_suspect_result_with_a_lost_answer_counts_once() -> None:
    device_id = register("token")["_id"]
    evidence = Evidence(at=LATER, source="fcm")
    with fail_commands("update", "devices", LOST_ANSWER), pytest.raises(WTimeoutError):
        status.record_suspect_result(device_ids=[device_id], evidence=evidence, now=LATER)
    assert status.record_suspect_result(device_ids=[device_id], evidence=evidence, now=LATER) == 0
    (document,) = everything()
    assert document["token_rejections"] == 1
