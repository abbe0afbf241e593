"""The callback routes: endpoint, secret, deliveries, and validation."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from django.contrib.admin.models import LogEntry

from api.callbacks.schemas import CallbackEvent
from callbacks import outbox, subscriptions, worker
from callbacks.events import SUBSCRIBABLE, DisabledReason
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications import callback_events
from notifyproject.db.collections import collection
from tests.support.clients.api import App, new_app, pages, pointers
from tests.support.factories import notifications as factories
from tests.support.fakes.callback_receiver import Receiver, receiving
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")
URL = "https://shop.example.com/hooks"
HOOK = {"url": URL, "events": ["delivery.failed", "notification.completed"]}


@pytest.fixture
def shop(db: None) -> App:
    return new_app("shop")


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    settings.CALLBACK_LOOPBACK = True
    with receiving() as server:
        yield server


def deliveries(app: App, **query: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = app.get("/callbacks/deliveries", **query).json()["results"]
    return results


def test_put_returns_the_secret_once(shop: App) -> None:
    made = shop.put("/callbacks", HOOK)
    assert made.status_code == 200
    assert made.headers["Cache-Control"] == "no-store"
    assert made.json()["secret"].startswith("whsec_")
    assert (made.json()["url"], made.json()["events"]) == (URL, HOOK["events"])
    again = shop.put("/callbacks", {**HOOK, "events": ["delivery.sent", "delivery.sent"]})
    assert (again.json()["secret"], again.json()["events"]) == (None, ["delivery.sent"])
    seen = shop.get("/callbacks").json()
    assert (seen["state"], seen["secret"]) == ("active", None)


def test_every_event_but_test_can_be_subscribed(shop: App) -> None:
    everything = [event.value for event in SUBSCRIBABLE]
    assert shop.put("/callbacks", {"url": URL, "events": everything}).status_code == 200
    assert shop.put("/callbacks", {"url": URL, "events": ["test"]}).status_code == 422


@each_case(
    "change, pointer, code",
    [
        ({"url": "http://shop.example.com/"}, "/url", "not_https"),
        ({"url": "https://10.0.0.1/"}, "/url", "not_public"),
        ({"url": "https://shop.example.com/" + "x" * 2_048}, "/url", "out_of_range"),
        ({"events": []}, "/events", "out_of_range"),
        ({"events": ["delivery.failed"] * 21}, "/events", "out_of_range"),
        ({"events": [5]}, "/events/0", "wrong_type"),
        ({"events": ["delivery.failed", "test"]}, "/events/1", "unknown_event"),
        ({"events": ["DELIVERY.FAILED"]}, "/events/0", "unknown_event"),
        ({"secret": "whsec_eA=="}, "/secret", "unknown_field"),
    ],
)
def test_invalid_callback_is_refused_and_changes_nothing(
    shop: App, change: dict[str, Any], pointer: str, code: str
) -> None:
    shop.put("/callbacks", HOOK)
    before = shop.get("/callbacks").json()
    answer = shop.put("/callbacks", HOOK | change)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    assert "url" not in change or change["url"].encode() not in answer.content
    assert shop.get("/callbacks").json() == before


def test_rotated_secret_stays_valid_for_a_day(shop: App) -> None:
    first = shop.put("/callbacks", HOOK).json()["secret"]
    answer = shop.post("/callbacks/secret")
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.json()["secret"] != first
    until = datetime.fromisoformat(answer.json()["previous_until"])
    assert timedelta(hours=23) < until - utc_now() <= timedelta(hours=24)
    for _ in range(3):
        shop.post("/callbacks/secret")
    refused = shop.post("/callbacks/secret")
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_secrets")


def test_test_event_is_sent_whatever_is_subscribed(shop: App, receiver: Receiver) -> None:
    shop.put("/callbacks", {**HOOK, "url": receiver.url})
    sent = shop.post("/callbacks/test")
    assert (sent.status_code, sent.json()["status"], sent.json()["type"]) == (
        202,
        "pending",
        "test",
    )
    worker.run_round(shop.id, clock=utc_now)
    (request,) = receiver.requests
    assert request.id == sent.json()["id"]
    assert request.body == sent.json()["body"]
    (delivery,) = deliveries(shop, status="delivered")
    assert delivery["history"][0]["status_code"] == 204
    assert deliveries(shop, status="failed") == []


def test_deliveries_are_paginated(shop: App) -> None:
    shop.put("/callbacks", HOOK)
    ids = [shop.post("/callbacks/test").json()["id"] for _ in range(5)]
    found = pages(shop.get, "/callbacks/deliveries", limit=2)
    assert [len(page) for page in found] == [2, 2, 1]
    assert sorted(message["id"] for page in found for message in page) == sorted(ids)
    assert shop.get("/callbacks/deliveries", status="lost").status_code == 422


def test_delivery_is_replayed(shop: App, receiver: Receiver) -> None:
    shop.put("/callbacks", {**HOOK, "url": receiver.url})
    sent = shop.post("/callbacks/test").json()["id"]
    early = shop.post(f"/callbacks/deliveries/{sent}/replay")
    assert (early.status_code, early.json()["code"]) == (409, "callback_pending")
    worker.run_round(shop.id, clock=utc_now)
    again = shop.post(f"/callbacks/deliveries/{sent}/replay")
    assert (again.status_code, again.json()["tries"]) == (202, 0)
    worker.run_round(shop.id, clock=utc_now)
    assert receiver.ids() == [sent, sent]


def test_another_clients_delivery_is_not_replayed(shop: App) -> None:
    other = new_app("other")
    for message in (shop, other):
        message.put("/callbacks", HOOK)
    sent = shop.post("/callbacks/test").json()["id"]
    outbox.fail_pending(client_id=shop.id, reason="HTTP 500.")
    assert other.post(f"/callbacks/deliveries/{sent}/replay").status_code == 404
    assert deliveries(other) == []


def test_put_enables_a_disabled_callback(shop: App) -> None:
    shop.put("/callbacks", HOOK)
    subscriptions.disable(client_id=shop.id, reason=DisabledReason.FAILING, now=utc_now())
    seen = shop.get("/callbacks").json()
    assert (seen["state"], seen["disabled_reason"]) == ("disabled", "failing")
    refused = shop.post("/callbacks/test")
    assert (refused.status_code, refused.json()["code"]) == (409, "callback_disabled")
    assert shop.put("/callbacks", HOOK).json()["state"] == "active"


def test_removal_fails_pending_deliveries(shop: App) -> None:
    shop.put("/callbacks", HOOK)
    shop.post("/callbacks/test")
    assert shop.delete("/callbacks").status_code == 204
    assert shop.delete("/callbacks").status_code == 404
    for path in ("/callbacks/secret", "/callbacks/test"):
        assert shop.post(path).status_code == 404
    (delivery,) = deliveries(shop)
    assert (delivery["status"], delivery["error"]) == (
        "failed",
        "The callback endpoint was removed.",
    )


def test_event_body_identifies_its_subject(shop: App) -> None:
    shop.put("/callbacks", HOOK)
    document = factories.settled(
        DeliveryStatus.FAILED, client_id=shop.id, has_callback=True, external_id="order-7"
    )
    callback_events.publish_events(now=utc_now())
    by_type = {delivery["type"]: delivery for delivery in deliveries(shop)}
    assert set(by_type) == {"delivery.failed", "notification.completed"}
    failed = by_type["delivery.failed"]
    assert failed["notification_id"] == str(document["_id"])
    assert failed["body"]["data"] == {
        "notification_id": str(document["_id"]),
        "external_id": "order-7",
        "entity_id": None,
        "notification_type": "payment_confirmed",
        "is_test": False,
        "channel": "email",
        "status": "failed",
        "attempt_count": 1,
        "failure_code": "provider_error",
    }
    assert by_type["notification.completed"]["body"]["data"]["status"] == "failed"
    for event in by_type.values():
        described = msgspec.convert(event["body"], CallbackEvent)
        assert set(event["body"]["data"]) <= set(described.data.__struct_fields__)


def test_notification_is_marked_only_after_the_callback_exists(shop: App) -> None:
    before = shop.notify(type="payment_confirmed").json()["id"]
    shop.put("/callbacks", HOOK)
    after = shop.notify(type="payment_confirmed").json()["id"]
    marked = collection("notifications").find({"callback_revision": 1}, {"_id": 1})
    assert [str(document["_id"]) for document in marked] == [after]
    assert before != after


def test_callback_changes_are_audited(shop: App) -> None:
    shop.put("/callbacks", HOOK)
    shop.put("/callbacks", HOOK | {"events": ["delivery.sent"]})
    shop.put("/callbacks", HOOK | {"url": "https://elsewhere.example.com/hooks"})
    shop.post("/callbacks/secret")
    shop.delete("/callbacks")
    entries = LogEntry.objects.filter(object_id=str(shop.id)).order_by("pk")
    assert [entry.change_message for entry in entries] == [
        f"By client shop: Endpoint set to shop.example.com for {', '.join(HOOK['events'])}.",
        "By client shop: Endpoint set to shop.example.com for delivery.sent.",
        f"By client shop: Endpoint set to elsewhere.example.com for {', '.join(HOOK['events'])}.",
        "By client shop: Secret rotated.",
        "By client shop: Endpoint deleted.",
    ]


@each_case("identifier", ["x", "a" * 24, "msg_" + "a" * 24, "$ne", "%00", "a" * 121])
def test_unknown_delivery_is_not_found(shop: App, identifier: str) -> None:
    shop.put("/callbacks", HOOK)
    assert shop.post(f"/callbacks/deliveries/{identifier}/replay").status_code == 404
