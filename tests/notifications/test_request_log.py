"""Requests of clients wait in their process, and are stored together and without values."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo.errors import AutoReconnect

from notifications import request_log
from notifications.documents.records import REQUEST_LOG
from notifications.request_log import MAX_READ, PER_MINUTE, Answered, RequestLog
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, request
from tests.support.waiting import until

NOW = datetime(2026, 12, 1, 14, 2, tzinfo=UTC)
CLIENT = ObjectId()


def answered(**fields: Any) -> Answered:
    given: dict[str, Any] = {
        "client_id": CLIENT,
        "request_id": "request-1",
        "method": "GET",
        "route": r"api/v1/notifications\Z",
        "status": 200,
        "took": timedelta(milliseconds=12),
        "at": NOW,
    }
    return Answered(**given | fields)


def stored(log: RequestLog) -> list[dict[str, Any]]:
    log.store()
    return list(collection("request_log").find().sort("_id"))


def test_accepted_notification_is_stored_with_its_masked_body(app: App, noted: RequestLog) -> None:
    headers = {"X-Request-Id": "checkout-17"}
    answer = app.post("/notifications", request(), headers=headers)
    (found,) = stored(noted)
    assert found["client_id"] == app.id
    assert (found["method"], found["path"]) == ("POST", "/api/v1/notifications")
    assert (found["request_id"], found["status"]) == ("checkout-17", 202)
    assert str(found["notification_id"]) == answer.json()["id"]
    body = json.loads(found["body"])
    assert body["type"] == "payment_confirmed"
    assert body["recipient"] == {"email": "… (15 characters)"}
    assert found["purge_at"] - found["at"] == timedelta(days=7)
    assert "code" not in found


def test_refusal_is_stored_with_its_code_and_fields(app: App, noted: RequestLog) -> None:
    app.notify(recipient={"email": "ada"}, priority="urgent")
    (found,) = stored(noted)
    assert (found["status"], found["code"]) == (422, "validation_failed")
    assert any(error.startswith("/priority ") for error in found["errors"])
    assert "ada" not in str({**found, "path": ""})


def test_path_has_the_names_of_its_parameters(app: App, noted: RequestLog) -> None:
    app.put("/recipients/ada", {"email": "ada@example.com"})
    sent = app.notify().json()["id"]
    app.post(f"/notifications/{sent}/cancel")
    put, _, cancelled = stored(noted)
    assert put["path"] == "/api/v1/recipients/{user_id}"
    assert cancelled["path"] == "/api/v1/notifications/{notification_id}/cancel"
    assert str(cancelled["notification_id"]) == sent
    assert "ada" not in str(put)


def test_requests_without_a_known_client_are_not_kept(db: None, noted: RequestLog) -> None:
    stranger = new_app("stranger")
    stranger.key = "ntf_wrong_wrong"
    assert stranger.notify().status_code == 401
    assert stored(noted) == []


def test_long_and_broken_bodies_are_not_kept(app: App, noted: RequestLog) -> None:
    app.notify(data={"text": "a" * MAX_READ})
    app.send("/notifications", b'{"type": "ada')
    long, broken = stored(noted)
    assert "body" not in long
    assert long["body_bytes"] > MAX_READ
    assert "body" not in broken
    assert broken["code"] == "malformed_json"


def test_client_fills_neither_the_log_nor_the_place_of_refusals(db: None) -> None:
    log = RequestLog()
    assert [log.add(answered()) for _ in range(PER_MINUTE + 1)] == [True] * PER_MINUTE + [False]
    assert log.add(answered(status=422))
    assert log.add(answered(client_id=ObjectId()))
    assert log.add(answered(at=NOW + timedelta(minutes=1)))
    assert len(stored(log)) == PER_MINUTE + 3


def test_requests_that_cannot_be_stored_are_lost(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    log = RequestLog()
    log.add(answered())

    def fail(*_given: Any, **_options: Any) -> None:
        raise AutoReconnect

    with monkeypatch.context() as patch:
        patch.setattr(type(REQUEST_LOG()), "insert_many", fail)
        assert log.store() == 1
    assert stored(log) == []


def test_thread_stores_what_is_noted(app: App, settings: Any) -> None:
    settings.REQUEST_LOG_DAYS = 7
    app.get("/notifications")
    app.notify()
    until(lambda: collection("request_log").count_documents({}) == 2)


def test_nothing_is_noted_without_days(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "_Storing", None)  # Would fail if it were started
    assert app.notify().status_code == 202
