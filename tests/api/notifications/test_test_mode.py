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


def test_notification_of_a_test_key_is_a_test(rehearsal: App, stored: Stored) -> None:
    answer = rehearsal.notify()
    assert (answer.status_code, answer.json()["is_test"]) == (202, True)
    assert stored(answer)["is_test"] is True
    assert rehearsal.get(f"/notifications/{answer.json()['id']}").json()["is_test"] is True


def test_notification_of_a_live_key_is_not_a_test(app: App, stored: Stored) -> None:
    answer = app.notify()
    assert answer.json()["is_test"] is False
    assert "is_test" not in stored(answer)


def test_bulk_notifications_of_a_test_key_are_tests(rehearsal: App) -> None:
    answer = rehearsal.post(
        "/notifications/bulk",
        {"notifications": [request(external_id=one) for one in ("1", "2")]},
        headers={"Idempotency-Key": "all-of-them"},
    )
    ids = [ObjectId(one["id"]) for one in answer.json()["results"]]
    found = collection("notifications").find({"_id": {"$in": ids}})
    assert [one["is_test"] for one in found] == [True, True]


def test_resend_of_a_test_is_a_test(rehearsal: App) -> None:
    first = rehearsal.notify().json()["id"]
    assert rehearsal.post(f"/notifications/{first}/resend").json()["is_test"] is True


def test_test_notification_is_hidden_from_other_clients(rehearsal: App, app: App) -> None:
    first = rehearsal.notify().json()["id"]
    assert app.get(f"/notifications/{first}").status_code == 404
    assert app.get("/notifications").json()["results"] == []


def test_is_test_is_no_request_field(app: App) -> None:
    assert app.notify(is_test=True).status_code == 422
