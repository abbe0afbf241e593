"""Idempotency of bulk calls: replays, crashes, and concurrency."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
import pytest
from bson import ObjectId

from domain.time import utc_now
from notifications import queries
from notifications.catalog import types
from notifications.intake import bulk
from notifications.intake import requests as intake_requests
from notifications.intake.requests import Caller, NotificationRequest
from notifications.validation import InvalidRequestError
from notifyproject.db.collections import collection
from tests.support.clients.api import App, request
from tests.support.clients.bulk import ids, item, post_bulk, stored
from tests.support.tables import each_case
from tests.support.threads import at_once

MIXED = [item(0), 5, item(1), item(0), item(2, user_id="ada", entity_id="order-1")]


class Crash(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def crash_before_storing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that lets the next call crash after it has stored its key."""

    def arm() -> None:
        def crash(*_: Any, **__: Any) -> None:
            monkeypatch.undo()
            raise Crash

        monkeypatch.setattr(bulk, "_store_accepted", crash)

    return arm


def accept(app: App, count: int, *, key: str = "k", name: str = "x") -> bulk.BulkAcceptance:
    requests = [
        msgspec.convert(request(external_id=f"{name}-{n}"), NotificationRequest)
        for n in range(count)
    ]
    return bulk.accept_bulk(
        requests,
        contents=[msgspec.json.encode(request) for request in requests],
        caller=Caller(client_id=app.id, idempotency_key=key),
        now=utc_now(),
    )


def test_same_call_is_replayed(app: App) -> None:
    first, again = post_bulk(app, *MIXED, key="k"), post_bulk(app, *MIXED, key="k")
    assert (first.status_code, again.status_code) == (200, 200)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    differing = {"request_id": None}
    for result, other in zip(first.json()["results"], again.json()["results"], strict=True):
        if "error" in result:
            assert result["error"] | differing == other["error"] | differing
        else:
            assert result == other
    assert len(stored()) == 3


def test_rejections_are_replayed(app: App) -> None:
    repeated = item(0, user_id="ada", entity_id="order-1")
    post_bulk(app, repeated)
    first = post_bulk(app, repeated, item(1), key="k")
    collection("notifications").delete_many({})
    again = post_bulk(app, repeated, item(1), key="k")
    assert first.json()["results"][0]["error"]["code"] == "already_notified"
    assert ids(first) == ids(again)
    assert collection("notifications").count_documents({}) == 0, "nothing is sent again"


@each_case(
    "others",
    [[item(0)], [item(1), item(0)], [item(0), item(1), item(2)], [item(0), item(1, ttl=5)]],
)
def test_other_call_with_the_same_key_is_refused(app: App, others: list[Any]) -> None:
    post_bulk(app, item(0), item(1), key="k")
    answer = post_bulk(app, *others, key="k")
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")
    assert len(stored()) == 2


def test_single_and_bulk_keys_are_not_interchangeable(app: App) -> None:
    app.post("/notifications", item(0), headers={"Idempotency-Key": "one"})
    assert post_bulk(app, item(0), key="one").status_code == 422
    post_bulk(app, item(0), key="many")
    answer = app.post("/notifications", item(0), headers={"Idempotency-Key": "many"})
    assert (answer.status_code, answer.json()["code"]) == (422, "idempotency_key_reused")


def test_call_without_accepted_items_is_replayed(app: App) -> None:
    first, again = post_bulk(app, 5, {}, key="k"), post_bulk(app, 5, {}, key="k")
    assert first.json()["rejected"] == again.json()["rejected"] == 2
    assert again.headers["Idempotent-Replayed"] == "true"


def test_crash_after_storing_the_key_is_recovered(
    app: App, crash_before_storing: Callable[[], None]
) -> None:
    crash_before_storing()
    with pytest.raises(Crash):
        accept(app, 5)
    stored_ids = collection("idempotency_keys").find_one({})["notification_ids"]
    assert stored() == []
    again = accept(app, 5)
    assert (list(again.outcomes), again.is_replayed) == (stored_ids, True)
    assert [d["_id"] for d in stored()] == stored_ids


def test_crash_during_storing_is_recovered(app: App) -> None:
    first = post_bulk(app, *MIXED, key="k")
    lost = [ObjectId(notification_id) for notification_id in ids(first)[2:] if notification_id]
    collection("notifications").delete_many({"_id": {"$in": lost}})
    collection("idempotency_keys").update_many({}, {"$unset": {"stored_at": ""}})
    again = post_bulk(app, *MIXED, key="k")
    assert again.json()["results"][0] == first.json()["results"][0]
    assert ids(again) == ids(first)
    assert len(stored()) == 3


def test_recovered_call_keeps_its_original_times(
    app: App, crash_before_storing: Callable[[], None]
) -> None:
    """The send time and expiry are in the past when the call is repeated."""
    now = utc_now()
    at = (now + timedelta(minutes=1)).isoformat().replace("+00:00", "Z")
    wanted = msgspec.convert(request(scheduled_at=at, ttl=60), NotificationRequest)
    caller = Caller(client_id=app.id, idempotency_key="k")
    crash_before_storing()
    with pytest.raises(Crash):
        bulk.accept_bulk([wanted], contents=[b"1"], caller=caller, now=now)
    later = now + timedelta(hours=1)
    (notification_id,) = bulk.accept_bulk(
        [wanted], contents=[b"1"], caller=caller, now=later
    ).outcomes
    (document,) = stored()
    assert (document["_id"], document["created_at"]) == (notification_id, now)
    assert document["expires_at"] == now + timedelta(minutes=2)


def test_recovery_rejects_items_that_became_invalid(
    app: App, crash_before_storing: Callable[[], None]
) -> None:
    crash_before_storing()
    with pytest.raises(Crash):
        accept(app, 2)
    collection("notification_types").update_one(
        {"_id": "payment_confirmed"}, {"$set": {"is_active": False}}
    )
    types.invalidate_types()
    for _ in range(2):
        outcomes = accept(app, 2).outcomes
        assert all(isinstance(outcome, InvalidRequestError) for outcome in outcomes)
    assert stored() == []


def test_incomplete_record_is_completed_on_replay(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_complete", lambda record, **_: record)
    first = accept(app, 3)
    monkeypatch.undo()
    assert accept(app, 3).outcomes == first.outcomes
    assert collection("idempotency_keys").find_one({})["stored_at"] is not None
    assert len(stored()) == 3


def test_complete_record_is_replayed_without_reading_notifications(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = accept(app, 3)

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(queries, "existing_ids", forbidden)
    monkeypatch.setattr(bulk, "load_recipients", forbidden)
    assert accept(app, 3).outcomes == first.outcomes


def test_concurrent_calls_create_one_set_of_notifications(app: App) -> None:
    def ask() -> list[bulk.BulkAcceptance]:
        return [accept(app, 4) for _ in range(8)]

    answers = [answer for some in at_once(*[ask] * 25) for answer in some]
    assert len(answers) == 200
    assert sum(not answer.is_replayed for answer in answers) == 1
    assert {tuple(answer.outcomes) for answer in answers} == {tuple(d["_id"] for d in stored())}
    assert len(stored()) == 4


def test_concurrent_different_calls_have_one_winner(app: App) -> None:
    def ask(number: int) -> str:
        try:
            accept(app, 3, name=f"call-{number}")
        except intake_requests.KeyReusedError:
            return "refused"
        return "accepted"

    outcomes = at_once(*(partial(ask, number) for number in range(8)))
    assert sorted(outcomes) == ["accepted", *["refused"] * 7]
    assert len({d["external_id"].rpartition("-")[0] for d in stored()}) == 1
