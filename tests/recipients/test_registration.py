"""Writes of recipients: registration, preferences, and erasure."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from notifyproject.db.collections import collection
from recipients import queries, registration
from recipients.registration import PreferenceChanges, RecipientProfile, Registration
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db")
LATER = NOON + timedelta(hours=1)


def register(at: Any = NOON, **fields: Any) -> Registration:
    return registration.register(RecipientProfile(user_id="ada", **fields), now=at)


def stored() -> dict[str, Any] | None:
    return collection("recipients").find_one({"_id": "ada"})


def test_first_registration_is_new() -> None:
    first = register(email="ada@example.com")
    again = register(LATER, email="ada@example.com")
    assert (first.is_new, again.is_new) == (True, False)
    assert (again.document["created_at"], again.document["updated_at"]) == (NOON, LATER)


def test_omitted_fields_are_not_stored() -> None:
    """Sparse indexes contain only recipients that have the address."""
    register(email="ada@example.com", phone="+351912345678")
    register(LATER, phone="+351912345678")
    recipient = stored()
    assert recipient is not None
    assert {"email", "name", "locale", "timezone", "quiet_hours"}.isdisjoint(recipient)


def test_concurrent_registrations_create_one_recipient() -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: register(name=f"Ada {n}"), range(16)))
    assert collection("recipients").count_documents({}) == 1


def test_preferences_of_an_unknown_recipient_are_not_stored() -> None:
    changes = PreferenceChanges(by_name={"marketing": {"muted": True}}, quiet_hours=None)
    assert registration.set_preferences(user_id="ada", changes=changes, now=NOON) is None
    assert stored() is None


def test_representation_holds_no_address() -> None:
    person = RecipientProfile(
        user_id="ada", email="ada@example.com", phone="+351912345678", name="Ada L"
    )
    assert not any(secret in repr(person) for secret in ("example.com", "351", "Ada L"))


def test_recipient_under_erasure_is_not_found() -> None:
    register(email="ada@example.com")
    begun = registration.begin_erasure("ada", now=LATER)
    assert begun["email"] == "ada@example.com"
    assert registration.get("ada") is None
    assert queries.find_registered(["ada"]) == {}
    assert registration.begin_erasure("ada", now=LATER) is not None, "an interrupted call continues"
    assert registration.finish_erasure("ada")
    assert not registration.finish_erasure("ada")
    assert registration.begin_erasure("ada", now=LATER) is None


def test_registration_during_erasure_is_kept() -> None:
    register(email="ada@example.com")
    registration.begin_erasure("ada", now=LATER)
    register(LATER, email="ada@new.example")
    assert not registration.finish_erasure("ada")
    assert queries.find_registered(["ada"])["ada"].email == "ada@new.example"


def test_every_command_is_by_id() -> None:
    collection("recipients").insert_many(
        [{"_id": f"user-{n}", "is_active": True} for n in range(500)]
    )
    with plans("recipients") as found:
        register()
        registration.get("ada")
        registration.set_preferences(user_id="ada", changes=PreferenceChanges(), now=NOON)
        registration.begin_erasure("ada", now=NOON)
        registration.finish_erasure("ada")
    assert len(found) == 5
    assert all(plan.is_by_id and plan.examined <= 1 for plan in found)
