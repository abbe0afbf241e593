"""Devices that are registered, moved and removed by many at once."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from pymongo.errors import AutoReconnect, WTimeoutError

from devices import queries, registration, status
from devices.models import DeactivationReason, Platform
from devices.preferences import Preferences
from devices.registration import MAX_DEVICES, ConflictError, Registration
from devices.status import Evidence
from devices.tokens import device_id
from notifyproject.db.collections import Document, collection
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import CUT, LOST_ANSWER, failing
from tests.support.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("db")

THREADS = 16
TAKEN = {"errorCode": 12582}
"""Another has just inserted the same key, by the number that may be given without the key."""
LATER = NOON + timedelta(hours=1)


def register(token: str, user_id: str = "ada", **fields: Any) -> Document:
    new = Registration(user_id=user_id, token=token, platform=Platform.WEB)
    return registration.register(new, **({"now": NOON} | fields))


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


def test_a_new_token_registered_by_many_at_once_is_one_device() -> None:
    for n in range(10):
        at_once([lambda n=n: register(f"token-{n}")] * THREADS)
    assert len(everything()) == 10


def test_a_token_that_two_users_claim_at_once_is_one_users_whole() -> None:
    users = [f"user-{n}" for n in range(THREADS)]
    for n in range(10):
        token = f"token-{n}"
        answers = at_once([lambda u=u, t=token: register(t, u) for u in users])
        assert {answer["user_id"] for answer in answers} == set(users)
        owner = queries.get(device_id(token))
        assert owner is not None
        assert owner in answers
    assert len(everything()) == 10


def test_a_user_keeps_to_the_cap_when_many_register_at_once() -> None:
    for n in range(MAX_DEVICES):
        register(f"old-{n}", now=NOON - timedelta(minutes=n))
    at_once([lambda n=n: register(f"new-{n}", now=LATER) for n in range(THREADS)])
    kept = {document["device_token"] for document in everything()}
    assert len(kept) == MAX_DEVICES
    assert {f"new-{n}" for n in range(THREADS)} <= kept


def test_a_refusal_that_races_with_a_registration_switches_nothing_off() -> None:
    """The send began before the app registered: whoever is first, the device is active."""
    evidence = Evidence(at=NOON + timedelta(minutes=1), source="fcm")
    reason = DeactivationReason.UNREGISTERED
    for n in range(20):
        one = register(f"token-{n}")["_id"]
        at_once(
            [
                lambda t=f"token-{n}": register(t, now=LATER),
                lambda one=one: status.deactivate(
                    device_ids=[one], reason=reason, evidence=evidence, now=LATER
                ),
            ]
        )
    assert [d["_id"] for d in everything() if not d["is_active"]] == []


def test_suspicions_from_many_workers_are_each_counted_once() -> None:
    one = register("token")["_id"]
    evidence = Evidence(at=LATER, source="fcm")
    counted = at_once(
        [lambda: status.record_suspicion(device_ids=[one], evidence=evidence, now=LATER)] * THREADS
    )
    assert sum(counted) == 1
    (document,) = everything()
    assert (document["suspicions"], document["is_active"]) == (1, True)


def test_proofs_of_life_from_many_workers_keep_the_latest() -> None:
    one = register("token")["_id"]
    times = [LATER + timedelta(seconds=n) for n in range(THREADS)]
    at_once([lambda t=t: status.record_success(accepted={one: t}) for t in times])
    (document,) = everything()
    assert document["last_accepted_at"] == document["proven_at"] == times[-1]


def test_a_device_that_is_removed_while_it_is_changed_is_not_half_there() -> None:
    def change(one: str) -> None:
        registration.set_preferences(device_id=one, preferences=Preferences(), now=LATER)
        registration.heartbeat(device_id=one, now=LATER)
        status.record_success(accepted={one: LATER})

    for n in range(10):
        one = register(f"token-{n}")["_id"]
        at_once([lambda o=one: change(o), lambda o=one: registration.remove(device_id=o)])
    assert everything() == []


def test_a_registration_whose_answer_was_lost_is_repeated_by_the_driver() -> None:
    with failing("findAndModify", "devices", CUT):
        register("token")
    assert len(everything()) == 1


def test_a_registration_that_collides_with_another_is_tried_again() -> None:
    with failing("findAndModify", "devices", TAKEN, times=2):
        register("token")
    assert len(everything()) == 1


def test_one_that_collides_again_and_again_is_given_up_without_a_word_of_the_token() -> None:
    with failing("findAndModify", "devices", TAKEN, times=3), pytest.raises(ConflictError) as error:
        register("a-secret-token")
    assert "a-secret-token" not in str(error.value)
    assert error.value.__context__ is None
    assert everything() == []


def test_a_proof_of_life_that_could_not_be_stored_may_be_repeated() -> None:
    one = register("token")["_id"]
    with failing("update", "devices", CUT), pytest.raises(AutoReconnect):
        status.record_success(accepted={one: LATER})
    with failing("update", "devices", LOST_ANSWER), pytest.raises(WTimeoutError):
        status.record_success(accepted={one: LATER})
    assert status.record_success(accepted={one: LATER}) == 0
    (document,) = everything()
    assert document["last_accepted_at"] == LATER


def test_a_suspicion_whose_answer_was_lost_counts_once_when_it_is_repeated() -> None:
    one = register("token")["_id"]
    evidence = Evidence(at=LATER, source="fcm")
    with failing("update", "devices", LOST_ANSWER), pytest.raises(WTimeoutError):
        status.record_suspicion(device_ids=[one], evidence=evidence, now=LATER)
    assert status.record_suspicion(device_ids=[one], evidence=evidence, now=LATER) == 0
    (document,) = everything()
    assert document["suspicions"] == 1
