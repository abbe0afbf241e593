"""Bulk create: a result for each item, refused calls, and overload."""

import json
from typing import Any

import pytest
from bson import ObjectId

from notifications.queueing import backlog
from notifyproject.db.collections import collection
from tests.support.clients.api import App
from tests.support.clients.bulk import PATH, ids, item, post_bulk, problems, stored
from tests.support.factories import notifications as factories
from tests.support.tables import each_case


def test_each_item_creates_a_notification(app: App) -> None:
    answer = post_bulk(app, item(0), item(1), item(2))
    assert answer.status_code == 200
    body = answer.json()
    assert (body["accepted"], body["rejected"]) == (3, 0)
    assert [result["index"] for result in body["results"]] == [0, 1, 2]
    assert all(result.keys() == {"index", "id"} for result in body["results"])
    found = {str(d["_id"]): d["external_id"] for d in stored()}
    assert [found[result["id"]] for result in body["results"]] == ["o-0", "o-1", "o-2"]


def test_bulk_item_is_stored_like_a_single_request(app: App) -> None:
    same = item(0, user_id="ada", channels=["email", "in_app"], entity_id=None, ttl=3600)
    app.post("/notifications", same, headers={"Idempotency-Key": "same"})
    post_bulk(app, same, key="same-in-bulk")
    alone, in_bulk = stored()
    differing = {"_id", "created_at", "updated_at", "request_id", "idempotency_key", "search_keys"}
    differing |= {"due_at", "expires_at", "purge_at", "sent_at", "inbox_at", "delivery"}
    assert {k: v for k, v in alone.items() if k not in differing} == {
        k: v for k, v in in_bulk.items() if k not in differing
    }
    assert alone.keys() == in_bulk.keys()
    assert in_bulk["idempotency_key"] == "same-in-bulk"


def test_thousand_items_are_accepted_in_one_call(app: App, broker: Any) -> None:
    answer = post_bulk(app, *(item(n, user_id=f"user-{n}") for n in range(1_000)))
    assert (answer.json()["accepted"], answer.json()["rejected"]) == (1_000, 0)
    assert len({result["id"] for result in answer.json()["results"]}) == 1_000
    assert collection("notifications").count_documents({"status": "queued"}) == 1_000
    assert broker.llen("email.high") > 0, "workers are woken"


def test_invalid_items_do_not_stop_the_others(app: App) -> None:
    bad: list[Any] = [
        5,
        None,
        [],
        item(1, nonsense=1),
        item(2, type="payment_confirmde"),
        item(3, recipient={"email": "ada@example.com\r\nBcc: eve@example.com"}),
        item(4, data={"order_id": 1}),
        item(5, data={"$where": "1"}),
        item(6, scheduled_at="2026-02-30T00:00:00Z"),
        item(7, recipient=...),
        item(8, ttl=2**63),
        item(9, channels=["fax"]),
    ]
    answer = post_bulk(app, item(100), *bad, item(101))
    body = answer.json()
    assert (answer.status_code, body["accepted"], body["rejected"]) == (200, 2, len(bad))
    assert [problems(result) for result in body["results"][1:-1]] == [
        {"": "wrong_type"},
        {"": "wrong_type"},
        {"": "wrong_type"},
        {"/nonsense": "unknown_field"},
        {"/type": "unknown_type"},
        {"/recipient/email": "invalid_email"},
        {"/data/video_title": "missing_variable", "/data/amount": "missing_variable"},
        {"/data/$where": "forbidden_key"},
        {"/scheduled_at": "invalid_datetime"},
        {"/recipient": "no_address"},
        {"/ttl": "integer_too_large"},
        {"/channels/0": "unknown_channel"},
    ]
    assert [d["external_id"] for d in stored()] == ["o-100", "o-101"]


def test_item_problems_equal_those_of_a_single_request(app: App) -> None:
    wrong = item(1, priority="urgent", recipient={"email": "nobody", "phone": "12"})
    error = post_bulk(app, wrong).json()["results"][0]["error"]
    alone = app.post("/notifications", wrong).json()
    differing = {"instance": None, "request_id": None}
    assert error | differing == alone | differing
    assert len(error["errors"]) == 3


def test_item_has_at_most_ten_problems(app: App) -> None:
    result = post_bulk(app, item(1, data={f"${n}": 1 for n in range(90)})).json()["results"][0]
    assert len(result["error"]["errors"]) == 10
    deep = {f"${n}" + "k" * 120: {"k" * 128: {"$" * 128: 1}} for n in range(90)}
    result = post_bulk(app, item(2, data=deep)).json()["results"][0]
    assert sum(len(error["pointer"]) for error in result["error"]["errors"]) < 4_000


def test_repeated_items_are_rejected(app: App) -> None:
    reordered = dict(reversed(item(1).items()))
    body = post_bulk(app, item(0), item(1), item(0), reordered, item(0)).json()
    assert (body["accepted"], body["rejected"]) == (2, 3)
    assert [result.get("error", {}).get("code") for result in body["results"]] == [
        None,
        None,
        *["duplicate_item"] * 3,
    ]
    assert body["results"][2]["error"]["status"] == 409
    assert body["results"][3]["error"]["detail"].startswith("Identical to item 1 ")
    assert len(stored()) == 2


def test_repeated_invalid_item_is_reported_as_repeated(app: App) -> None:
    body = post_bulk(app, 5, 5).json()
    assert [result["error"]["code"] for result in body["results"]] == [
        "validation_failed",
        "duplicate_item",
    ]


def test_recipient_is_notified_once_per_entity(app: App) -> None:
    items = [item(n, user_id=f"user-{n}", entity_id="order-1") for n in range(3)]
    post_bulk(app, items[0])
    first = stored()[0]["_id"]
    again = item(9, user_id="user-1", entity_id="order-1")
    body = post_bulk(app, items[0], items[1], items[2], again).json()
    assert (body["accepted"], body["rejected"]) == (2, 2)
    assert body["results"][0]["error"]["code"] == "already_notified"
    assert body["results"][0]["error"]["notification_id"] == str(first)
    assert body["results"][3]["error"]["notification_id"] == body["results"][1]["id"]


def test_client_is_not_blocked_by_another_client(app: App, other_app: App) -> None:
    same = item(0, user_id="ada", entity_id="order-1")
    for client in (other_app, app):
        assert post_bulk(client, same).json()["accepted"] == 1
    post_bulk(app, item(1, user_id="bob", entity_id="order-1"))
    mine, bobs = (
        post_bulk(app, item(n, user_id=user_id, entity_id="order-1")).json()["results"][0]["error"]
        for n, user_id in ((2, "ada"), (3, "bob"))
    )
    ids_ = [d["_id"] for d in stored() if d["client_id"] == app.id]
    assert [mine["notification_id"], bobs["notification_id"]] == [
        str(stored_id) for stored_id in ids_
    ]


def test_recipients_are_loaded_for_all_items(app: App) -> None:
    person = {"_id": "ada", "email": "ada@example.com", "is_active": True, "preferences": {}}
    collection("recipients").insert_one(person)
    body = post_bulk(
        app, item(0, user_id="ada", recipient=...), item(1, user_id="nobody", recipient=...)
    ).json()
    assert body["accepted"] == 1
    assert problems(body["results"][1]) == {"/recipient": "no_address"}
    assert stored()[0]["recipient"]["email"] == "ada@example.com"


def test_items_are_rendered_per_locale_and_timezone(app: App) -> None:
    event = {"contest_name": "Round 900", "hours_until_start": 2, "platform": "codeforces"}
    people = [
        item(
            n,
            type="contest_reminder",
            recipient={"email": "a@example.com", "timezone": zone, "locale": locale},
            data={**event, "start_time": "2027-02-20T14:35:00Z"},
        )
        for n, (zone, locale) in enumerate(
            [("UTC", "en"), ("UTC", "en"), ("Asia/Tokyo", "en"), ("UTC", "pt")]
        )
    ]
    assert post_bulk(app, *people).json()["accepted"] == 4
    bodies = [d["content"]["body"] for d in stored()]
    assert bodies[0] == bodies[1]
    assert "14:35 (UTC)" in bodies[0]
    assert "23:35 (Asia/Tokyo)" in bodies[2]
    assert len(set(bodies)) == 3
    for request, body in zip(people, bodies, strict=True):
        assert app.post("/notifications", request).json()["content"]["body"] == body


def test_items_belong_to_the_calling_client(app: App, other_app: App) -> None:
    post_bulk(app, item(0), key="k")
    post_bulk(other_app, item(0), key="k")
    assert {d["client_id"] for d in stored()} == {app.id, other_app.id}
    mine = app.get("/notifications").json()["results"]
    assert [ObjectId(notification["id"]) for notification in mine] == [stored()[0]["_id"]]
    theirs = factories.read(stored()[1]["_id"])
    assert app.get(f"/notifications/{theirs['_id']}").status_code == 404


def send(app: App, raw: bytes, **options: Any) -> Any:
    return app.send(PATH, raw, **({"headers": {"Idempotency-Key": "k-1"}} | options))


def padded(size: int) -> bytes:
    raw = json.dumps({"notifications": [item(0)]}).encode()
    return raw + b" " * (size - len(raw))


def test_body_is_limited_to_4_mb(app: App) -> None:
    most = 4 * 1024 * 1024
    assert send(app, padded(most)).json()["accepted"] == 1
    answer = send(app, padded(most + 1), headers={"Idempotency-Key": "k-2"})
    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_missing_idempotency_key_is_refused(app: App) -> None:
    answer = app.post(PATH, {"notifications": [item(0)]})
    assert (answer.status_code, answer.json()["code"]) == (400, "missing_idempotency_key")
    assert collection("notifications").count_documents({}) == 0


@each_case("key", ["", " ", "a b", "é", "x" * 256, "a\tb"])
def test_invalid_idempotency_key_is_refused(app: App, key: str) -> None:
    answer = send(app, padded(1_000), headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_idempotency_key")


def test_refused_call_does_not_use_its_key(app: App) -> None:
    assert send(app, b'{"notifications": []}').status_code == 422
    assert post_bulk(app, item(0), key="k-1").json()["accepted"] == 1


@pytest.fixture
def overloaded(backlog_anew: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "is_overloaded", lambda **_: True)


def critical(number: int) -> dict[str, Any]:
    return item(number, priority="critical")


@pytest.mark.usefixtures("overloaded")
class TestOverloaded:
    def test_call_is_refused_with_retry_after_and_keeps_its_key(
        self, app: App, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answer = post_bulk(app, item(0), 5, key="k")
        assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
        assert int(answer.headers["Retry-After"]) >= 1
        assert stored() == []
        monkeypatch.setattr(backlog, "is_overloaded", lambda **_: False)
        assert post_bulk(app, item(0), 5, key="k").json()["accepted"] == 1

    def test_critical_items_are_accepted_and_others_rejected(self, app: App) -> None:
        login = item(2, type="mfa_code", data={"code": "123456", "expires_in": 5})
        answer = post_bulk(app, item(0), critical(1), login, item(3, type="nope"), key="k")
        codes = [result.get("error", {}).get("code") for result in answer.json()["results"]]
        assert codes == ["overloaded", None, None, "overloaded"]
        assert answer.json()["results"][0]["error"]["status"] == 503
        assert int(answer.headers["Retry-After"]) >= 1
        assert [d["priority"] for d in stored()] == ["critical", "critical"]
        again = post_bulk(app, item(0), critical(1), login, item(3, type="nope"), key="k")
        assert ids(again) == ids(answer)

    def test_call_of_critical_items_and_single_request_are_accepted(self, app: App) -> None:
        answer = post_bulk(app, critical(0), critical(1))
        assert (answer.status_code, answer.json()["accepted"]) == (200, 2)
        assert "Retry-After" not in answer.headers
        assert app.notify().status_code == 202

    def test_accepted_call_is_replayed(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(backlog, "is_overloaded", lambda **_: False)
        first = post_bulk(app, item(0), key="k")
        monkeypatch.setattr(backlog, "is_overloaded", lambda **_: True)
        again = post_bulk(app, item(0), key="k")
        assert (again.status_code, ids(again)) == (200, ids(first))


@pytest.mark.usefixtures("backlog_anew")
def test_real_backlog_over_the_limit_refuses_calls(app: App, settings: Any) -> None:
    settings.BULK_PENDING_LIMIT = 2
    assert post_bulk(app, item(0), item(1), item(2)).status_code == 200
    assert post_bulk(app, item(3)).status_code == 200, "measured a moment ago"
    backlog.clear()
    assert post_bulk(app, item(4)).status_code == 503
