"""Idempotency keys of single requests."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec
import pytest
from bson import ObjectId
from django.test import Client

from domain.time import utc_now
from notifications import validation
from notifications.intake import acceptance, requests
from notifications.intake.requests import Caller, NotificationRecipientRequest, NotificationRequest
from notifyproject.db.collections import collection
from tests.support.clients.api import App, request
from tests.support.tables import each_case
from tests.support.threads import at_once


def ask(app: App, key: str, **fields: Any) -> Any:
    return app.post("/notifications", request(**fields), headers={"Idempotency-Key": key})


def test_same_request_is_replayed(app: App) -> None:
    first, again = ask(app, "k-1"), ask(app, "k-1")
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.json()["id"] == again.json()["id"]
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert collection("notifications").count_documents({}) == 1


def test_field_order_does_not_matter(app: App) -> None:
    body = request()
    reordered = dict(reversed(body.items())) | {"data": dict(reversed(body["data"].items()))}
    first = app.post("/notifications", body, headers={"Idempotency-Key": "k"})
    again = app.post("/notifications", reordered, headers={"Idempotency-Key": "k"})
    assert first.json()["id"] == again.json()["id"]


def test_other_request_with_the_same_key_is_refused(app: App) -> None:
    ask(app, "k-1")
    answer = ask(app, "k-1", external_id="other")
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")


def test_request_is_replayed_while_its_encryption_key_is_listed(app: App, settings: Any) -> None:
    old, new = b"o" * 32, b"n" * 32
    settings.FIELD_ENCRYPTION_KEYS = {"old": old}
    first = ask(app, "k-1")
    settings.FIELD_ENCRYPTION_KEYS = {"new": new, "old": old}
    assert ask(app, "k-1").json()["id"] == first.json()["id"]
    settings.FIELD_ENCRYPTION_KEYS = {"new": new}
    assert ask(app, "k-1").json()["code"] == "idempotency_key_reused"


def test_key_is_per_client(app: App, other_app: App) -> None:
    assert ask(app, "k-1").json()["id"] != ask(other_app, "k-1").json()["id"]


def test_refused_request_does_not_use_its_key(app: App) -> None:
    assert ask(app, "k-1", priority="nope").status_code == 422
    assert ask(app, "k-1").status_code == 202


@each_case("key", ["", " ", "a b", "é", "x" * 256, "a\tb"])
def test_invalid_key_is_refused(app: App, key: str) -> None:
    answer = ask(app, key)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_idempotency_key")


def test_crash_after_storing_the_key_is_recovered(app: App) -> None:
    first = ask(app, "k-1").json()["id"]
    collection("notifications").delete_one({"_id": ObjectId(first)})
    assert ask(app, "k-1").json()["id"] == first
    assert collection("notifications").count_documents({}) == 1


def test_concurrent_requests_create_one_notification(app: App) -> None:
    notification_request = NotificationRequest(
        type="payment_confirmed",
        recipient=NotificationRecipientRequest(email="ada@example.com"),
        data=request()["data"],
    )
    caller = Caller(client_id=app.id, idempotency_key="k-1")

    def accept() -> list[ObjectId]:
        accepted = (
            acceptance.accept(notification_request, caller=caller, now=utc_now()) for _ in range(4)
        )
        return [acceptance_.document["_id"] for acceptance_ in accepted]

    ids = [item for some in at_once(*[accept] * 50) for item in some]
    assert (len(ids), len(set(ids))) == (200, 1)
    assert collection("notifications").count_documents({}) == 1


def test_concurrent_equal_requests_get_one_answer(app: App) -> None:
    def send() -> Any:
        return replace(app, http=Client(raise_request_exception=False)).post(
            "/notifications", request(), headers={"Idempotency-Key": "k-1"}
        )

    answers = at_once(*[send] * 6)
    assert {answer.status_code for answer in answers} == {202}
    assert len({answer.content for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert collection("notifications").count_documents({}) == 1


def test_concurrent_different_requests_have_one_winner(app: App) -> None:
    def accept(name: str) -> str:
        notification_request = NotificationRequest(
            type="transactional",
            recipient=NotificationRecipientRequest(email="ada@example.com"),
            content=requests.ContentRequest(body=name),
        )
        try:
            acceptance.accept(
                notification_request,
                caller=Caller(client_id=app.id, idempotency_key="k-2"),
                now=utc_now(),
            )
        except requests.KeyReusedError:
            return "refused"
        return "accepted"

    outcomes = at_once(partial(accept, "a"), partial(accept, "b"))
    assert sorted(outcomes) == ["accepted", "refused"]


def test_replay_after_the_send_time_returns_the_first_answer(app: App) -> None:
    local = {"at": "2026-03-29T01:30", "timezone": "Europe/London"}
    notification_request = NotificationRequest(
        type="payment_confirmed",
        recipient=NotificationRecipientRequest(email="ada@example.com"),
        data=request()["data"],
        scheduled_local=requests.LocalTime(**local),
    )
    caller = Caller(client_id=app.id, idempotency_key="k-1")
    before = datetime(2026, 3, 28, 12, tzinfo=UTC)
    first = acceptance.accept(notification_request, caller=caller, now=before)
    for now in (before, before + timedelta(days=2)):
        again = acceptance.accept(notification_request, caller=caller, now=now)
        assert again.document["_id"] == first.document["_id"]
        assert (again.is_replayed, again.is_time_adjusted) == (True, True)
    other = msgspec.structs.replace(notification_request, external_id="other")
    with pytest.raises(validation.InvalidRequestError):
        acceptance.accept(other, caller=caller, now=before + timedelta(days=2))
    assert collection("notifications").count_documents({}) == 1
