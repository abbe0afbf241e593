"""Keys in test mode: whatever comes in by them is a test, by whichever door."""

from collections.abc import Callable
from typing import Any

import pytest
from bson import ObjectId

from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, request

Stored = Callable[[Any], dict[str, Any]]


@pytest.fixture
def rehearsal(db: None, broker: Any) -> App:
    """Give an app in test mode."""
    return new_app("rehearsal", is_test=True)


def test_what_a_key_in_test_mode_sends_is_a_test(rehearsal: App, stored: Stored) -> None:
    answer = rehearsal.notify()
    assert (answer.status_code, answer.json()["is_test"]) == (202, True)
    assert stored(answer)["is_test"] is True
    assert rehearsal.get(f"/notifications/{answer.json()['id']}").json()["is_test"] is True


def test_what_any_other_key_sends_is_none(app: App, stored: Stored) -> None:
    answer = app.notify()
    assert answer.json()["is_test"] is False
    assert "is_test" not in stored(answer)


def test_many_at_once_are_tests_too(rehearsal: App) -> None:
    answer = rehearsal.post(
        "/notifications/bulk",
        {"notifications": [request(external_id=one) for one in ("1", "2")]},
        headers={"Idempotency-Key": "all-of-them"},
    )
    ids = [ObjectId(one["id"]) for one in answer.json()["results"]]
    found = collection("notifications").find({"_id": {"$in": ids}})
    assert [one["is_test"] for one in found] == [True, True]


def test_so_is_a_resend(rehearsal: App) -> None:
    first = rehearsal.notify().json()["id"]
    assert rehearsal.post(f"/notifications/{first}/resend").json()["is_test"] is True


def test_nobody_else_sees_it(rehearsal: App, app: App) -> None:
    first = rehearsal.notify().json()["id"]
    assert app.get(f"/notifications/{first}").status_code == 404
    assert app.get("/notifications").json()["results"] == []


def test_nobody_makes_a_test_of_a_request(app: App) -> None:
    assert app.notify(is_test=True).status_code == 422
