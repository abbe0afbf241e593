"""Device status: deactivation, reactivation, and malformed tokens."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import permutations
from typing import Any

import pytest

from devices import queries, registration, status
from devices.models import BY_PROVIDER, DeactivationReason, Platform
from devices.registration import Registration
from devices.status import MAX_TOKEN_REJECTIONS, Evidence
from devices.tokens import device_id
from notifyproject.db.collections import Document, collection
from tests.support.factories.notifications import NOON

TOKEN = "token"
ID = device_id(TOKEN)


def at(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def register(token: str = TOKEN, *, minute: float = 0) -> str:
    new = Registration(user_id="ada", token=token, platform=Platform.IOS)
    return str(registration.register(new, now=at(minute))["_id"])


def suspect(*, began: float) -> int:
    """Record the answer "malformed token" to a send that began at this minute."""
    evidence = Evidence(at=at(began), source="fcm", code="INVALID_ARGUMENT")
    return status.record_suspect_result(device_ids=[ID], evidence=evidence, now=at(began))


def accept(*, answered: float) -> int:
    return status.record_success(accepted={ID: at(answered)})


def device(device_id: str = ID) -> Document:
    document = queries.get(device_id)
    assert document is not None
    return document


pytestmark = pytest.mark.usefixtures("db")
R = DeactivationReason
BY_PEOPLE = tuple(reason for reason in R if reason not in BY_PROVIDER)


def refuse(*ids: str, began: float, stored: float | None = None, reason: R = R.UNREGISTERED) -> int:
    evidence = Evidence(at=at(began), source="fcm", code="UNREGISTERED", notification_id="a" * 24)
    now = at(began if stored is None else stored)
    return status.deactivate(device_ids=ids or (ID,), reason=reason, evidence=evidence, now=now)


def test_deactivation_stores_reason_and_evidence() -> None:
    register()
    assert refuse(began=5, stored=6) == 1
    document = device()
    assert document["is_active"] is False
    assert document["deactivated_at"] == document["updated_at"] == at(6)
    assert document["deactivation_reason"] == "unregistered"
    assert document["deactivation_evidence"] == {
        "at": at(5),
        "source": "fcm",
        "code": "UNREGISTERED",
        "notification_id": "a" * 24,
    }


def test_devices_are_deactivated_in_one_write() -> None:
    ids = [register(f"token-{n}") for n in range(5)]
    assert refuse(*ids[:3], ids[0], "nobody", began=5) == 3
    assert [device(device_id)["is_active"] for device_id in ids] == [False] * 3 + [True] * 2
    assert refuse(began=5) == 0


def test_results_without_devices_change_nothing() -> None:
    nothing: dict[str, Any] = {"device_ids": [], "evidence": Evidence(at=at(5), source="fcm")}
    assert status.deactivate(**nothing, reason=R.SUSPECT, now=at(5)) == 0
    assert status.record_suspect_result(**nothing, now=at(5)) == 0
    assert status.record_success(accepted={}) == 0


def test_later_reason_replaces_the_earlier_and_keeps_the_time() -> None:
    register()
    refuse(began=5)
    assert refuse(began=6, reason=R.SENDER_MISMATCH) == 1
    assert refuse(began=4, reason=R.UNREGISTERED) == 0
    assert device()["deactivation_reason"] == "sender_mismatch"
    assert device()["deactivated_at"] == at(5)


@pytest.mark.parametrize("first", ["people", "provider"])
def test_decision_by_people_overrides_the_provider(first: str) -> None:
    register()
    decisions = [lambda: refuse(began=5, reason=R.BY_USER), lambda: refuse(began=6)]
    for decide in decisions if first == "people" else decisions[::-1]:
        decide()
    accept(answered=9)
    assert (device()["is_active"], device()["deactivation_reason"]) == (False, "by_user")


@pytest.mark.parametrize("began", [3.0, 4.0])
@pytest.mark.parametrize("reason", BY_PROVIDER)
def test_refusal_before_the_registration_is_ignored(reason: R, began: float) -> None:
    register()
    register(minute=4)
    assert refuse(began=began, stored=5, reason=reason) == 0
    assert device()["is_active"] is True


@pytest.mark.parametrize("proof", ["accepted", "receipts"])
def test_refusal_before_a_success_is_ignored(proof: str) -> None:
    register()
    status.record_success(**{"accepted": {}, proof: {ID: at(4)}})
    assert refuse(began=4, stored=5) == 0
    assert refuse(began=4.1, stored=5) == 1


@pytest.mark.parametrize("reason", BY_PEOPLE)
def test_decision_by_people_outlives_successes(reason: R) -> None:
    register()
    accept(answered=10)
    assert refuse(began=5, reason=reason) == 1
    accept(answered=11)
    assert (device()["is_active"], device()["deactivation_reason"]) == (False, reason.value)


def test_batch_successes_keep_their_own_times() -> None:
    ids = [register(f"token-{n}") for n in range(4)]
    accepted = {ids[0]: at(1), ids[1]: at(2), "nobody": at(9)}
    receipts = {ids[1]: at(3), ids[2]: at(4)}
    assert status.record_success(accepted=accepted, receipts=receipts) == 3
    found = [
        (d.get("last_accepted_at"), d.get("last_receipt_at"), d["proven_at"])
        for d in map(device, ids)
    ]
    assert found == [
        (at(1), None, at(1)),
        (at(2), at(3), at(3)),
        (None, at(4), at(4)),
        (None, None, at(0)),
    ]
    assert not any(name.startswith("__") for device_id in ids for name in device(device_id))


def test_older_success_changes_nothing() -> None:
    register()
    accept(answered=5)
    before = device()
    assert accept(answered=4) == 0
    assert device() == before


@pytest.mark.parametrize("reason", BY_PROVIDER)
def test_later_acceptance_reactivates(reason: R) -> None:
    register()
    refuse(began=5, reason=reason)
    accept(answered=6)
    assert device()["is_active"] is True
    assert device().keys().isdisjoint(status.DEACTIVATION_FIELDS)


def test_earlier_acceptance_does_not_reactivate() -> None:
    register()
    refuse(began=5)
    accept(answered=4)
    assert device()["is_active"] is False
    assert device()["last_accepted_at"] == at(4)


def test_receipt_does_not_reactivate() -> None:
    register()
    refuse(began=5)
    status.record_success(accepted={}, receipts={ID: at(6)})
    assert device()["is_active"] is False


EVENTS: dict[str, Callable[[], Any]] = {
    "registered at 0": register,
    "registered at 3": lambda: register(minute=3),
    "refused, began at 2": lambda: refuse(began=2, stored=9),
    "refused, began at 4": lambda: refuse(began=4, stored=9),
    "accepted at 5": lambda: accept(answered=5),
}


@pytest.mark.parametrize("order", list(permutations(list(EVENTS)[1:])), ids=" / ".join)
def test_results_in_any_order_give_the_same_device(order: tuple[str, ...]) -> None:
    EVENTS["registered at 0"]()
    for name in order:
        EVENTS[name]()
    expected = {
        "is_active": True,
        "deactivation_reason": None,
        "token_rejections": 0,
        "proven_at": at(5),
    }
    assert {name: device().get(name) for name in expected} == expected


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_newest_refusal_wins_in_any_order(order: tuple[int, ...]) -> None:
    register()
    events: list[Callable[[], Any]] = [
        lambda: accept(answered=3),
        lambda: refuse(began=2, stored=9),
        lambda: refuse(began=4, stored=9),
    ]
    for number in order:
        events[number]()
    assert (device()["is_active"], device()["deactivation_reason"]) == (False, "unregistered")


def test_operator_reactivation_clears_failures() -> None:
    register()
    suspect(began=1)
    refuse(began=5)
    assert status.reactivate(device_id=ID, now=at(7))
    document = device()
    assert (document["is_active"], document["token_rejections"]) == (True, 0)
    assert document.keys().isdisjoint({*status.DEACTIVATION_FIELDS, "suspected_at"})
    assert not status.reactivate(device_id=ID, now=at(8))


def test_refusal_before_the_reactivation_is_ignored() -> None:
    register()
    refuse(began=5)
    status.reactivate(device_id=ID, now=at(7))
    assert refuse(began=6, stored=8) == 0
    assert refuse(began=8) == 1


def test_minimal_device_can_be_deactivated_and_reactivated() -> None:
    collection("devices").insert_one(
        {"_id": ID, "user_id": "ada", "device_token": TOKEN, "platform": "web", "is_active": True}
    )
    assert suspect(began=1) == 1
    accept(answered=2)
    assert refuse(began=3) == 1
    assert status.reactivate(device_id=ID, now=at(4))


def test_three_suspect_results_in_a_row_deactivate() -> None:
    register()
    for minute in range(1, MAX_TOKEN_REJECTIONS):
        assert suspect(began=minute) == 1
        assert (device()["is_active"], device()["token_rejections"]) == (True, minute)
    assert "deactivated_at" not in device()
    assert suspect(began=MAX_TOKEN_REJECTIONS) == 1
    document = device()
    assert (document["is_active"], document["deactivation_reason"]) == (False, "suspect")
    assert document["deactivated_at"] == at(MAX_TOKEN_REJECTIONS)
    assert document["deactivation_evidence"]["code"] == "INVALID_ARGUMENT"
    assert suspect(began=9) == 0


def test_acceptance_resets_suspect_results() -> None:
    register()
    suspect(began=1)
    suspect(began=2)
    accept(answered=3)
    assert device()["token_rejections"] == 0
    suspect(began=4)
    assert (device()["is_active"], device()["token_rejections"]) == (True, 1)


@pytest.mark.parametrize("proof", ["earlier acceptance", "receipt"])
def test_acceptance_before_or_receipt_does_not_reset_suspect_results(proof: str) -> None:
    register()
    suspect(began=5)
    if proof == "earlier acceptance":
        accept(answered=4)
    else:
        status.record_success(accepted={}, receipts={ID: at(6)})
    assert device()["token_rejections"] == 1


def test_simultaneous_or_earlier_suspect_results_count_once() -> None:
    register()
    assert suspect(began=5) == 1
    assert suspect(began=5) == 0
    assert suspect(began=4) == 0
    assert device()["token_rejections"] == 1


def test_suspect_result_before_the_registration_is_ignored() -> None:
    register(minute=5)
    assert suspect(began=5) == 0
    assert device()["token_rejections"] == 0


def mismatch(*, began: float) -> int:
    evidence = Evidence(at=at(began), source="fcm", code="SENDER_ID_MISMATCH")
    return status.record_suspect_result(
        device_ids=[ID], reason=R.SENDER_MISMATCH, evidence=evidence, now=at(began)
    )


def test_three_sender_mismatches_in_a_row_deactivate() -> None:
    register()
    for minute in (1, 1, 2):
        mismatch(began=minute)
        assert device()["is_active"]
    assert mismatch(began=3) == 1
    assert (device()["is_active"], device()["deactivation_reason"]) == (False, "sender_mismatch")
    assert device()["deactivation_evidence"]["code"] == "SENDER_ID_MISMATCH"
    assert mismatch(began=4) == 0


def test_accepted_token_ignores_sender_mismatches() -> None:
    """A token belongs to one project forever, so the service account must have changed."""
    register()
    accept(answered=0.5)
    assert [mismatch(began=minute) for minute in range(1, 9)] == [0] * 8
    assert (device()["is_active"], device()["token_rejections"]) == (True, 0)
